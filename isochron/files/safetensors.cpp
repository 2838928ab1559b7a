// The safetensors format: 8 bytes with the size of the header (little endian), the header, the
// bytes of the tensors.
//
//   {"__metadata__": {"k": "v"}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0,
//   24]}}
//
// Offsets count from the end of the header. A sound file covers its bytes without a gap or an
// overlap, so nothing can hide in it and no two tensors share memory.

#include "isochron/files/safetensors.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <set>
#include <stdexcept>

#include "isochron/core/json.h"
#include "isochron/core/require.h"

namespace isochron {

namespace {

static_assert(std::endian::native == std::endian::little, "the format is little endian");

constexpr std::uint64_t max_header_bytes = 100'000'000;  // the limit of the reference reader
constexpr const char* metadata_key = "__metadata__";

// The number of elements of a shape, unless it overflows.
std::optional<std::int64_t> find_product(std::span<const std::int64_t> shape) {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) {
    if (__builtin_mul_overflow(product, size, &product)) return std::nullopt;
  }
  return product;
}

struct Header {
  std::uint64_t num_bytes = 0;  // of the text
  Json json;
};

Header read_header(std::span<const std::byte> bytes, const std::string& where) {
  require(bytes.size() >= 8, where, "has {} bytes, a safetensors file has at least 8",
          bytes.size());
  Header header;
  std::memcpy(&header.num_bytes, bytes.data(), 8);
  require(header.num_bytes <= max_header_bytes, where, "its header has {} bytes, allowed are {}",
          header.num_bytes, max_header_bytes);
  require(header.num_bytes <= bytes.size() - 8, where,
          "is cut off: its header has {} bytes, {} are there", header.num_bytes, bytes.size() - 8);
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + 8;
  header.json = parse_json({text, header.num_bytes}, where);
  require_object(header.json, where, "the header");
  return header;
}

StoredTensor read_tensor(const std::string& name, const Json& json, const std::string& file,
                         std::span<const std::byte> data) {
  const std::string where = fmt::format("{}: {}", file, shown(name));
  require_object(json, where, "the entry");
  static const std::vector<std::string> keys = {"dtype", "shape", "data_offsets"};
  require_known_keys(json, where, keys);
  StoredTensor tensor;
  tensor.name = name;
  tensor.type = field_from_json<ElementType>(member(json, where, "dtype"), where, "dtype");
  const Json& shape = member(json, where, "shape");
  require(shape.is_array(), where, "shape is {}, must be an array", shown(shape));
  for (const Json& size : shape) {
    tensor.shape.push_back(
        integer_of(size, where, "shape", 0, std::numeric_limits<std::int64_t>::max()));
  }
  const Json& offsets = member(json, where, "data_offsets");
  require(offsets.is_array() && offsets.size() == 2, where,
          "data_offsets is {}, must be two integers", shown(offsets));
  const auto num_data = static_cast<std::int64_t>(data.size());
  const std::int64_t begin = integer_of(offsets[0], where, "data_offsets", 0, num_data);
  const std::int64_t end = integer_of(offsets[1], where, "data_offsets", begin, num_data);
  const auto elements = find_product(tensor.shape);
  std::int64_t num_bytes = 0;
  require(elements.has_value() &&
              !__builtin_mul_overflow(*elements, element_bytes(tensor.type), &num_bytes),
          where, "shape is [{}], more elements than 64 bits can count",
          fmt::join(tensor.shape, ", "));
  require(num_bytes == end - begin, where, "has {} bytes, the shape [{}] of {} takes {}",
          end - begin, fmt::join(tensor.shape, ", "), name_of(tensor.type), num_bytes);
  tensor.bytes = data.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(num_bytes));
  return tensor;
}

void require_covered(std::span<const StoredTensor> tensors, std::span<const std::byte> data,
                     const std::string& where) {
  const std::byte* end = data.data();
  for (const StoredTensor& tensor : tensors) {
    require(tensor.bytes.empty() || tensor.bytes.data() == end, where,
            "{} starts at byte {} of the data, must start at {}, where the tensor before it ends",
            shown(tensor.name), tensor.bytes.data() - data.data(), end - data.data());
    if (!tensor.bytes.empty()) end = tensor.bytes.data() + tensor.bytes.size();
  }
  require(end == data.data() + data.size(), where, "has {} bytes of data, its tensors take {}",
          data.size(), end - data.data());
}

// Writes all bytes or throws.
class Output {
 public:
  explicit Output(const std::filesystem::path& path)
      : path_(path),
        descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) fail();
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() { ::close(descriptor_); }

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      // The kernel takes at most 2^31 - 4096 bytes at a time.
      const ssize_t written =
          ::write(descriptor_, bytes.data(), std::min(bytes.size(), std::size_t{1} << 30));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail();
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }
  void sync() {
    if (::fsync(descriptor_) != 0) fail();
  }

 private:
  [[noreturn]] void fail() {
    throw std::runtime_error(
        fmt::format("[{}] cannot be written: {}", path_.string(), std::strerror(errno)));
  }

  std::filesystem::path path_;
  int descriptor_;
};

}  // namespace

std::int64_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::BOOL:
    case ElementType::U8:
    case ElementType::I8:
      return 1;
    case ElementType::I16:
    case ElementType::F16:
    case ElementType::BF16:
      return 2;
    case ElementType::I32:
    case ElementType::F32:
      return 4;
    case ElementType::I64:
    case ElementType::F64:
      return 8;
  }
  return 0;
}

std::int64_t StoredTensor::num_elements() const {
  return static_cast<std::int64_t>(bytes.size()) / element_bytes(type);
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path), file_(path) {
  const std::string where = path.string();
  const Header header = read_header(file_.bytes(), where);
  const auto data = file_.bytes().subspan(8 + header.num_bytes);
  for (const auto& [name, value] : header.json.items()) {
    if (name == metadata_key) {
      require_object(value, where, metadata_key);
      for (const auto& [key, text] : value.items()) {
        metadata_[key] = text_of(text, where, std::string(metadata_key) + "." + key);
      }
    } else {
      tensors_.push_back(read_tensor(name, value, where, data));
    }
  }
  std::ranges::stable_sort(tensors_, {}, [](const StoredTensor& tensor) {
    return std::pair(tensor.bytes.data(), tensor.bytes.size());
  });
  require_covered(tensors_, data, where);
  for (std::size_t i = 0; i < tensors_.size(); ++i) index_of_[tensors_[i].name] = i;
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = index_of_.find(name);
  return found == index_of_.end() ? nullptr : &tensors_[found->second];
}

const StoredTensor& SafetensorsFile::get(
    std::string_view name, ElementType type,
    const std::optional<std::vector<std::int64_t>>& shape) const {
  const std::string where = path_.string();
  const StoredTensor* tensor = find(name);
  require(tensor != nullptr, where, "has no tensor {}", name);
  require(tensor->type == type, where, "{} is of {}, must be of {}", name, name_of(tensor->type),
          name_of(type));
  if (shape) {
    const auto fits = [](std::int64_t size, std::int64_t wanted) {
      return wanted == -1 || size == wanted;
    };
    require(std::ranges::equal(tensor->shape, *shape, fits), where,
            "{} has the shape [{}], must have [{}]", name, fmt::join(tensor->shape, ", "),
            fmt::join(*shape, ", "));
  }
  return *tensor;
}

void write_safetensors(const std::filesystem::path& path, std::span<const StoredTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  const std::string where = path.string();
  Json header = Json::object();
  if (!metadata.empty()) header[metadata_key] = metadata;
  std::uint64_t offset = 0;
  std::set<std::string_view> names;
  for (const StoredTensor& tensor : tensors) {
    require(tensor.name != metadata_key, where, "a tensor must not be named {}", metadata_key);
    require(names.insert(tensor.name).second, where, "the tensor {} occurs twice", tensor.name);
    const auto elements = find_product(tensor.shape);
    require(elements && *elements >= 0 && *elements == tensor.num_elements() &&
                tensor.bytes.size() % static_cast<std::size_t>(element_bytes(tensor.type)) == 0,
            where, "{} has {} bytes, not those of the shape [{}] of {}", tensor.name,
            tensor.bytes.size(), fmt::join(tensor.shape, ", "), name_of(tensor.type));
    header[tensor.name] = {{"dtype", name_of(tensor.type)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data is aligned
  const std::uint64_t num_bytes = text.size();
  Output output(path);
  output.write(std::as_bytes(std::span(&num_bytes, 1)));
  output.write(std::as_bytes(std::span(text)));
  for (const StoredTensor& tensor : tensors) output.write(tensor.bytes);
  output.sync();
}

}  // namespace isochron

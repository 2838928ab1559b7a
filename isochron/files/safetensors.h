#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "isochron/core/enum_names.h"
#include "isochron/files/mapped_file.h"

namespace isochron {

// The element types of the format that isochron reads and writes, under its own names.
enum class ElementType { BOOL, U8, I8, I16, I32, I64, F16, BF16, F32, F64 };

template <>
struct EnumNames<ElementType> {
  static constexpr std::array<std::pair<ElementType, std::string_view>, 10> values = {
      {{ElementType::BOOL, "BOOL"},
       {ElementType::U8, "U8"},
       {ElementType::I8, "I8"},
       {ElementType::I16, "I16"},
       {ElementType::I32, "I32"},
       {ElementType::I64, "I64"},
       {ElementType::F16, "F16"},
       {ElementType::BF16, "BF16"},
       {ElementType::F32, "F32"},
       {ElementType::F64, "F64"}}};
};

[[nodiscard]] std::int64_t element_bytes(ElementType type);

// A tensor of a file: name, type, shape, and its bytes, row by row. For a tensor that was read the
// bytes are those of the mapped file.
struct StoredTensor {
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;

  [[nodiscard]] std::int64_t num_elements() const;
};

// A safetensors file, mapped into memory: nothing is read before it is touched. Tensors stand in
// the order of their bytes.
class SafetensorsFile {
 public:
  // Throws std::runtime_error if the file cannot be opened or mapped, std::invalid_argument, naming
  // the file and what is wrong with it, unless its header is sound: JSON of at most 100 MB with
  // known types, shapes whose product fits, byte ranges that match them, lie in the file, and cover
  // it without a gap or an overlap.
  explicit SafetensorsFile(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::span<const StoredTensor> tensors() const { return tensors_; }
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const { return metadata_; }
  [[nodiscard]] const StoredTensor* find(std::string_view name) const;

  // The tensor of that name. Throws std::invalid_argument, naming file and tensor, if it is missing
  // or has another type or (if given) another shape; -1 in a shape stands for any size.
  [[nodiscard]] const StoredTensor& get(
      std::string_view name, ElementType type,
      const std::optional<std::vector<std::int64_t>>& shape = {}) const;

 private:
  std::filesystem::path path_;
  MappedFile file_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::string> metadata_;
  std::map<std::string, std::size_t, std::less<>> index_of_;
};

// Writes the tensors in the given order, with the header padded to 8 bytes, and syncs the file to
// disk. Equal inputs give equal bytes. Throws std::invalid_argument for a name that occurs twice or
// is `__metadata__` and for bytes that do not match the shape, std::runtime_error if the file
// cannot be written; it may then exist in part.
void write_safetensors(const std::filesystem::path& path, std::span<const StoredTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace isochron

#include "isochron/engine/checkpoint/state_file.h"

#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "isochron/core/field_text.h"
#include "isochron/files/safetensors.h"

namespace isochron {

namespace {

constexpr const char* where = "checkpoint";

// Elements [begin, begin + values.size()) of a parameter, in a mapped file.
struct StoredPiece {
  std::int64_t begin = 0;
  std::span<const float> values;

  [[nodiscard]] std::int64_t end() const {
    return begin + static_cast<std::int64_t>(values.size());
  }
};

// Kind and parameter, as "kind/parameter".
using PiecesOf = std::map<std::string, std::vector<StoredPiece>>;

std::string name_of(std::string_view kind, std::string_view parameter) {
  return fmt::format("{}/{}", kind, parameter);
}

void add_pieces(const SafetensorsFile& file, PiecesOf& pieces_of) {
  for (const StoredTensor& tensor : file.tensors()) {
    const std::size_t at = tensor.name.rfind('@');
    const std::int64_t begin =
        at == std::string::npos
            ? -1
            : find_integer(std::string_view(tensor.name).substr(at + 1)).value_or(-1);
    require(begin >= 0 && begin <= INT64_MAX / 8 && tensor.type == ElementType::F32 &&
                tensor.shape.size() == 1 &&
                reinterpret_cast<std::uintptr_t>(tensor.bytes.data()) % alignof(float) == 0,
            file.path().string(), "the tensor {} is no piece of a state", tensor.name);
    pieces_of[tensor.name.substr(0, at)].push_back(
        {.begin = begin,
         .values = {reinterpret_cast<const float*>(tensor.bytes.data()),
                    static_cast<std::size_t>(tensor.num_elements())}});
  }
}

// Sorts the pieces of a parameter. Rejects a gap, an overlap, and another size.
void require_cover(const std::string& name, std::vector<StoredPiece>& pieces,
                   std::int64_t num_elements) {
  std::sort(pieces.begin(), pieces.end(),
            [](const StoredPiece& a, const StoredPiece& b) { return a.begin < b.begin; });
  std::int64_t end = 0;
  for (const StoredPiece& piece : pieces) {
    require(piece.begin == end, where, "{} has a piece at {}, the one before ends at {}", name,
            piece.begin, end);
    end = piece.end();
  }
  require(end == num_elements, where, "{} has {} elements, the model has {}", name, end,
          num_elements);
}

void fill(StatePiece& target, const std::vector<StoredPiece>& pieces) {
  const std::int64_t target_end = target.begin + target.values.numel();
  for (const StoredPiece& piece : pieces) {
    const std::int64_t begin = std::max(piece.begin, target.begin);
    const std::int64_t count = std::min(piece.end(), target_end) - begin;
    if (count <= 0) continue;
    const float* source = piece.values.data() + (begin - piece.begin);
    // from_blob takes a pointer to what may be written; this copy only reads.
    target.values.narrow(0, begin - target.begin, count)
        .copy_(at::from_blob(const_cast<float*>(source), {count}, at::kFloat));
  }
}

}  // namespace

std::vector<StatePiece> host_copy(std::span<const StatePiece> pieces) {
  std::vector<StatePiece> copies(pieces.begin(), pieces.end());
  for (StatePiece& copy : copies) {
    copy.values = copy.values.detach().to(at::kCPU, at::kFloat, false, /*copy=*/true).contiguous();
  }
  return copies;
}

void write_state(const std::filesystem::path& path, std::span<const StatePiece> pieces,
                 const std::map<std::string, std::string>& metadata) {
  std::vector<StoredTensor> tensors;
  for (const StatePiece& piece : pieces) {
    const auto count = static_cast<std::size_t>(piece.values.numel());
    if (count == 0) continue;
    tensors.push_back(
        {.name = fmt::format("{}@{}", name_of(piece.kind, piece.parameter), piece.begin),
         .type = ElementType::F32,
         .shape = {piece.values.numel()},
         .bytes = std::as_bytes(std::span(piece.values.const_data_ptr<float>(), count))});
  }
  write_safetensors(path, tensors, metadata);
}

void read_state(std::span<const std::filesystem::path> files,
                const std::map<std::string, std::int64_t>& num_elements_of,
                std::span<StatePiece> pieces) {
  std::vector<SafetensorsFile> open;
  PiecesOf pieces_of;
  for (const auto& path : files) add_pieces(open.emplace_back(path), pieces_of);

  std::set<std::string> expected;
  for (const StatePiece& piece : pieces) {
    for (const auto& [parameter, count] : num_elements_of) {
      expected.insert(name_of(piece.kind, parameter));
    }
  }
  for (auto& [name, stored] : pieces_of) {
    require(expected.contains(name), where, "{} is in the checkpoint, the model has none", name);
    require_cover(name, stored, num_elements_of.at(name.substr(name.find('/') + 1)));
  }
  for (const std::string& name : expected) {
    require(pieces_of.contains(name), where, "{} is missing in the checkpoint", name);
  }
  for (StatePiece& piece : pieces) fill(piece, pieces_of.at(name_of(piece.kind, piece.parameter)));
}

}  // namespace isochron

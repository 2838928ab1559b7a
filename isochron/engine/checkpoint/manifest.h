#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "isochron/engine/checkpoint/checkpoint_options.h"

namespace isochron {

// A file of a checkpoint as it was meant to be.
struct StoredFile {
  std::string name;  // relative to the checkpoint, with / between folders
  std::int64_t bytes = 0;
  std::uint64_t hash = 0;  // xxhash64 of the bytes

  bool operator==(const StoredFile&) const = default;
};

// What a checkpoint consists of. Written last, as manifest.json: a folder without it is none.
struct Manifest {
  std::int64_t step = 0;
  std::int64_t ordinal = 0;  // counts what was saved into a run folder: larger is newer
  std::vector<Content> contents;
  std::vector<StoredFile> files;

  bool operator==(const Manifest&) const = default;
};

inline constexpr const char* manifest_name = "manifest.json";

// The document carries a checksum of itself. Reading throws std::invalid_argument for anything that
// was not written whole, and for a file name that leads out of the folder.
[[nodiscard]] std::string to_json(const Manifest& manifest);
[[nodiscard]] Manifest manifest_from_json(std::string_view json_text, std::string_view where);

// The manifest of a checkpoint. Throws std::runtime_error if there is none, and as above.
[[nodiscard]] Manifest read_manifest(const std::filesystem::path& checkpoint);

// Size and hash of `checkpoint / name` as it is.
[[nodiscard]] StoredFile stored_file(const std::filesystem::path& checkpoint,
                                     const std::string& name);

// What is wrong with a checkpoint, in words, after reading all of it; none if it is intact.
[[nodiscard]] std::optional<std::string> find_damage(const std::filesystem::path& checkpoint);

}  // namespace isochron

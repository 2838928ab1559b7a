#include "isochron/engine/checkpoint/manifest.h"

#include <algorithm>

#include "isochron/core/json.h"
#include "isochron/engine/checkpoint/xxhash64.h"
#include "isochron/files/mapped_file.h"

namespace isochron {

namespace {

constexpr const char* schema = "isochron.checkpoint.v1";

std::string hash_text(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

std::uint64_t hash_of(std::string_view text) {
  return xxhash64(std::as_bytes(std::span(text.data(), text.size())));
}

Json json_of(const Manifest& manifest) {
  Json json = {{"schema", schema},
               {"step", manifest.step},
               {"ordinal", manifest.ordinal},
               {"contents", field_to_json(manifest.contents)},
               {"files", Json::array()}};
  for (const StoredFile& file : manifest.files) {
    json["files"].push_back(
        {{"name", file.name}, {"bytes", file.bytes}, {"hash", hash_text(file.hash)}});
  }
  return json;
}

// Inside the folder, whatever stands in the manifest.
bool is_inner_name(const std::string& name) {
  const std::filesystem::path path(name);
  return !name.empty() && path.is_relative() &&
         std::none_of(path.begin(), path.end(), [](const auto& part) { return part == ".."; });
}

StoredFile file_from_json(const Json& json, std::string_view where) {
  static const std::vector<std::string> keys = {"name", "bytes", "hash"};
  require_object(json, where, "a file");
  require_known_keys(json, where, keys);
  StoredFile file = {
      .name = text_of(member(json, where, "name"), where, "name"),
      .bytes = integer_of(member(json, where, "bytes"), where, "bytes", 0, INT64_MAX)};
  require(is_inner_name(file.name), where, "name is {}, must be a file of the checkpoint",
          shown(file.name));
  const std::string hash = text_of(member(json, where, "hash"), where, "hash");
  const bool is_hash =
      hash.size() == 16 && hash.find_first_not_of("0123456789abcdef") == std::string::npos;
  require(is_hash, where, "hash is {}, must be 16 hex digits", shown(hash));
  file.hash = std::stoull(hash, nullptr, 16);
  return file;
}

}  // namespace

std::string to_json(const Manifest& manifest) {
  Json json = json_of(manifest);
  json["hash"] = hash_text(hash_of(json.dump()));
  return json.dump(1) + "\n";
}

Manifest manifest_from_json(std::string_view json_text, std::string_view where) {
  static const std::vector<std::string> keys = {"schema",   "step",  "ordinal",
                                                "contents", "files", "hash"};
  const Json json = parse_json(json_text, where);
  require_object(json, where, "the manifest");
  require_known_keys(json, where, keys);
  const std::string found = text_of(member(json, where, "schema"), where, "schema");
  require(found == schema, where, "schema is {}, must be {}", shown(found), schema);
  Manifest manifest = {
      .step = integer_of(member(json, where, "step"), where, "step", 0, INT64_MAX),
      .ordinal = integer_of(member(json, where, "ordinal"), where, "ordinal", 0, INT64_MAX),
      .contents =
          field_from_json<std::vector<Content>>(member(json, where, "contents"), where, "contents"),
      .files = {}};
  const Json& files = member(json, where, "files");
  require(files.is_array(), where, "files is {}, must be a list", shown(files));
  for (const Json& file : files) manifest.files.push_back(file_from_json(file, where));
  const std::string expected = hash_text(hash_of(json_of(manifest).dump()));
  require(member(json, where, "hash") == expected, where, "the checksum of the manifest is wrong");
  return manifest;
}

Manifest read_manifest(const std::filesystem::path& checkpoint) {
  const std::filesystem::path path = checkpoint / manifest_name;
  const MappedFile file(path);
  return manifest_from_json(
      {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path.string());
}

StoredFile stored_file(const std::filesystem::path& checkpoint, const std::string& name) {
  const MappedFile file(checkpoint / name);
  return {.name = name,
          .bytes = static_cast<std::int64_t>(file.bytes().size()),
          .hash = xxhash64(file.bytes())};
}

std::optional<std::string> find_damage(const std::filesystem::path& checkpoint) {
  try {
    for (const StoredFile& meant : read_manifest(checkpoint).files) {
      const StoredFile found = stored_file(checkpoint, meant.name);
      if (found.bytes != meant.bytes) {
        return fmt::format("[{}] has {} bytes, must have {}", (checkpoint / meant.name).string(),
                           found.bytes, meant.bytes);
      }
      if (found.hash != meant.hash) {
        return fmt::format("[{}] has another checksum than when it was written",
                           (checkpoint / meant.name).string());
      }
    }
  } catch (const std::exception& error) {
    return error.what();
  }
  return std::nullopt;
}

}  // namespace isochron

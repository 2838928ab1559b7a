#include "apps/isochron/input_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "isochron/core/field_text.h"

namespace isochron {

namespace {

constexpr std::int64_t max_builtin = 100'000'000;  // 800 MB of lengths

[[noreturn]] void fail(const std::string& path) {
  throw std::runtime_error(
      fmt::format("[file] cannot read \"{}\": {}", path, std::strerror(errno)));
}

std::string read_stream(std::FILE* stream, const std::string& path) {
  std::string text;
  std::size_t size = 0;
  while (true) {
    text.resize(size + (std::size_t{1} << 20));
    const std::size_t got = std::fread(text.data() + size, 1, text.size() - size, stream);
    size += got;
    if (got == 0) break;
  }
  if (std::ferror(stream) != 0) fail(path);  // a folder opens, but does not read
  text.resize(size);
  return text;
}

}  // namespace

std::string read_file(const std::string& path) {
  if (path == "-") return read_stream(stdin, "standard input");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(std::fopen(path.c_str(), "rb"),
                                                               std::fclose);
  if (stream == nullptr) fail(path);
  return read_stream(stream.get(), path);
}

Batch read_batch(const std::string& lengths) {
  constexpr std::string_view builtin = "builtin:";
  if (!lengths.starts_with(builtin)) return parse_batch(read_file(lengths));
  const auto count = find_integer(std::string_view(lengths).substr(builtin.size()));
  require(count && *count >= 1 && *count <= max_builtin, "lengths",
          "\"{}\" must be builtin:N with N from 1 to {}", lengths, max_builtin);
  Batch batch;
  batch.lengths = long_tailed_lengths(static_cast<std::int32_t>(*count), 1);
  return batch;
}

}  // namespace isochron

#include "apps/isochron/output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>

namespace isochron {

namespace {

[[noreturn]] void fail(const std::string& path, int error) {
  throw std::runtime_error(fmt::format("[file] cannot write {}: {}", path, std::strerror(error)));
}

// Zero, or the error number.
int write_stream(std::FILE* stream, std::string_view text) {
  errno = 0;
  const bool is_written =
      std::fwrite(text.data(), 1, text.size(), stream) == text.size() && std::fflush(stream) == 0;
  return is_written ? 0 : errno != 0 ? errno : EIO;
}

}  // namespace

void print(std::string_view text) {
  if (const int error = write_stream(stdout, text)) fail("standard output", error);
}

void write_output(const std::string& path, std::string_view text) {
  if (path == "-") return print(text);
  // A pipe or a device cannot be replaced, and has no half-written state that would stay.
  const bool is_replaced = !std::filesystem::exists(path) || std::filesystem::is_regular_file(path);
  const std::string target = is_replaced ? fmt::format("{}.{}.part", path, ::getpid()) : path;
  const std::string shown = fmt::format("\"{}\"", path);
  std::FILE* stream = std::fopen(target.c_str(), "wb");
  if (stream == nullptr) fail(shown, errno);
  int error = write_stream(stream, text);
  if (std::fclose(stream) != 0 && error == 0) error = errno;
  if (is_replaced && error == 0 && std::rename(target.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return;
  if (is_replaced) std::remove(target.c_str());
  fail(shown, error);
}

}  // namespace isochron

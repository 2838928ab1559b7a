#include "apps/isochron/output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <vector>

namespace isochron {

namespace {

[[noreturn]] void fail(const std::string& shown, int error) {
  throw std::runtime_error(fmt::format("[file] cannot write {}: {}", shown, std::strerror(error)));
}

std::string quoted(const std::string& path) { return fmt::format("\"{}\"", path); }

// Zero, or the error number.
int write_stream(std::FILE* stream, std::string_view text) {
  errno = 0;
  const bool is_written =
      std::fwrite(text.data(), 1, text.size(), stream) == text.size() && std::fflush(stream) == 0;
  return is_written ? 0 : errno != 0 ? errno : EIO;
}

void write_file(const std::string& file, const std::string& shown, std::string_view text) {
  std::FILE* stream = std::fopen(file.c_str(), "wb");
  if (stream == nullptr) fail(shown, errno);
  int error = write_stream(stream, text);
  if (std::fclose(stream) != 0 && error == 0) error = errno;
  if (error != 0) fail(shown, error);
}

// A pipe or a device cannot be replaced, and has no half-written state that would stay.
bool is_replaced(const std::string& path) {
  std::error_code error;  // what cannot be asked about cannot be written: the writing says why
  return !std::filesystem::exists(path, error) || std::filesystem::is_regular_file(path, error);
}

// Files beside their targets; those that did not take the place of theirs go away.
class Parts {
 public:
  Parts() = default;
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  ~Parts() {
    for (const std::string& path : paths_) std::remove(part_of(path).c_str());
  }

  void write(const std::string& path, std::string_view text) {
    paths_.push_back(path);
    write_file(part_of(path), quoted(path), text);
  }

  void put_in_place() {
    for (const std::string& path : paths_) {
      if (std::rename(part_of(path).c_str(), path.c_str()) != 0) fail(quoted(path), errno);
    }
    paths_.clear();
  }

 private:
  static std::string part_of(const std::string& path) {
    return fmt::format("{}.{}.part", path, ::getpid());
  }

  std::vector<std::string> paths_;
};

}  // namespace

void print(std::string_view text) {
  if (const int error = write_stream(stdout, text)) fail("standard output", error);
}

void write_outputs(std::span<const Output> outputs) {
  Parts parts;
  for (const auto& [path, text] : outputs) {
    if (path != "-" && is_replaced(path)) parts.write(path, text);
  }
  for (const auto& [path, text] : outputs) {
    if (path == "-") {
      print(text);
    } else if (!is_replaced(path)) {
      write_file(path, quoted(path), text);
    }
  }
  parts.put_in_place();
}

void write_output(const std::string& path, std::string text) {
  const Output output = {.path = path, .text = std::move(text)};
  write_outputs({&output, 1});
}

void require_writable(const std::string& path) {
  if (path == "-") return;
  if (std::filesystem::is_directory(path)) fail(quoted(path), EISDIR);
  if (is_replaced(path)) Parts().write(path, "");
}

}  // namespace isochron

#include "isochron/files/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace isochron {

namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const char* what, int error) {
  throw std::runtime_error(fmt::format("[{}] {}: {}", path.string(), what, std::strerror(error)));
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail(path, "cannot be opened", errno);
  struct stat status = {};
  int error = ::fstat(descriptor, &status) == 0 ? 0 : errno;
  if (error == 0 && !S_ISREG(status.st_mode)) error = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
  void* mapped = nullptr;
  const auto num_bytes = static_cast<std::size_t>(status.st_size);
  if (error == 0 && num_bytes > 0) {  // an empty file has no mapping
    mapped = ::mmap(nullptr, num_bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (mapped == MAP_FAILED) error = errno;
  }
  ::close(descriptor);
  if (error != 0) fail(path, "cannot be read", error);
  bytes_ = {static_cast<const std::byte*>(mapped), num_bytes};
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) {
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());  // NOLINT: munmap's signature
  }
}

}  // namespace isochron

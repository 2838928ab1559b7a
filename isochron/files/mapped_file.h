#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace isochron {

// The bytes of a file, mapped read-only: nothing is read before it is touched.
class MappedFile {
 public:
  // Throws std::runtime_error, naming the file and the reason, if it cannot be opened or mapped.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace isochron

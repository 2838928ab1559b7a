// The order of a save, each line on disk before the next:
//
//   .tmp_global_step_N/{files}     every rank
//   .tmp_global_step_N/manifest.json
//   .tmp_global_step_N  ->  global_step_N
//   latest_checkpointed_iteration.txt
//   global_step_OLD     ->  .deleted_global_step_OLD, removed
//
// A crash between two lines leaves the checkpoint before as it was.

#include "isochron/engine/checkpoint/checkpoint_folder.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>  // renameat2
#include <cstring>
#include <stdexcept>

#include "isochron/core/field_text.h"

namespace isochron {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view name_prefix = "global_step_";
constexpr std::string_view temporary_prefix = ".tmp_";
constexpr std::string_view deleted_prefix = ".deleted_";

[[noreturn]] void fail(const fs::path& path, const char* what) {
  throw std::runtime_error(fmt::format("[{}] {}: {}", path.string(), what, std::strerror(errno)));
}

class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags)
      : path_(path), number_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (number_ < 0) fail(path, "cannot be opened");
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(number_); }

  void write(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t written = ::write(number_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(path_, "cannot be written");
      text.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  void sync() const {
    if (::fsync(number_) != 0) fail(path_, "cannot be synced");
  }

 private:
  fs::path path_;
  int number_;
};

void write_synced(const fs::path& path, std::string_view text) {
  const Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC);
  file.write(text);
  file.sync();
}

// Puts `from` where `to` stands. Where the file system swaps names there is no moment without one.
void replace_folder(const fs::path& from, const fs::path& to) {
  if (!fs::exists(to)) return fs::rename(from, to);
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(from);
    return;
  }
  const fs::path old = to.parent_path() / (std::string(deleted_prefix) + to.filename().string());
  fs::remove_all(old);
  fs::rename(to, old);
  fs::rename(from, to);
  fs::remove_all(old);
}

void remove_rubbish(const fs::path& run_folder) {
  for (const auto& entry : fs::directory_iterator(run_folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(std::string(temporary_prefix) + std::string(name_prefix)) ||
        name.starts_with(std::string(deleted_prefix) + std::string(name_prefix))) {
      fs::remove_all(entry.path());
    }
  }
}

// Of all folders in it, the deepest first.
void sync_tree(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) sync_tree(entry.path());
  }
  sync_folder(folder);
}

std::int64_t next_ordinal(const fs::path& run_folder) {
  std::int64_t last = 0;
  for (const FoundCheckpoint& found : list_checkpoints(run_folder)) {
    if (found.manifest) last = std::max(last, found.manifest->ordinal);
  }
  return last + 1;
}

}  // namespace

fs::path checkpoint_path(const fs::path& run_folder, std::int64_t step) {
  return run_folder / fmt::format("{}{}", name_prefix, step);
}

fs::path temporary_path(const fs::path& run_folder, std::int64_t step) {
  return run_folder / fmt::format("{}{}{}", temporary_prefix, name_prefix, step);
}

std::optional<std::int64_t> find_step(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(name_prefix)) return std::nullopt;
  const std::string_view digits = std::string_view(name).substr(name_prefix.size());
  const auto step = find_integer(digits);
  // 007 and -1 are names that nobody gave.
  if (!step || *step < 0 || std::to_string(*step) != digits) return std::nullopt;
  return step;
}

std::vector<FoundCheckpoint> list_checkpoints(const fs::path& run_folder) {
  std::vector<FoundCheckpoint> found;
  if (!fs::is_directory(run_folder)) return found;
  for (const auto& entry : fs::directory_iterator(run_folder)) {
    const auto step = find_step(entry.path());
    if (!step || !entry.is_directory()) continue;
    found.push_back({.path = entry.path(), .step = *step, .manifest = {}});
    try {
      found.back().manifest = read_manifest(entry.path());
    } catch (const std::exception&) {
      // newest_intact() says what is wrong with it.
    }
  }
  std::sort(found.begin(), found.end(), [](const FoundCheckpoint& a, const FoundCheckpoint& b) {
    const auto age = [](const FoundCheckpoint& checkpoint) {
      const std::int64_t ordinal = checkpoint.manifest ? checkpoint.manifest->ordinal : INT64_MAX;
      return std::pair(ordinal, checkpoint.step);
    };
    return age(a) > age(b);
  });
  return found;
}

void begin_checkpoint(const fs::path& run_folder, std::int64_t step) {
  fs::create_directories(run_folder);
  remove_rubbish(run_folder);
  fs::create_directory(temporary_path(run_folder, step));
}

void publish_checkpoint(const fs::path& run_folder, Manifest manifest) {
  const fs::path temporary = temporary_path(run_folder, manifest.step);
  manifest.ordinal = next_ordinal(run_folder);
  sync_tree(temporary);
  write_synced(temporary / manifest_name, to_json(manifest));
  sync_folder(temporary);
  replace_folder(temporary, checkpoint_path(run_folder, manifest.step));
  sync_folder(run_folder);
  replace_file(run_folder / "latest_checkpointed_iteration.txt", std::to_string(manifest.step));
}

void keep_newest(const fs::path& run_folder, std::int32_t count) {
  std::int32_t num_kept = 0;
  for (const FoundCheckpoint& found : list_checkpoints(run_folder)) {
    if (!found.manifest || num_kept++ < count) continue;
    const fs::path deleted =
        run_folder / (std::string(deleted_prefix) + found.path.filename().string());
    fs::rename(found.path, deleted);
    fs::remove_all(deleted);
  }
}

ChosenCheckpoint newest_intact(const fs::path& run_folder) {
  ChosenCheckpoint chosen;
  const std::vector<FoundCheckpoint> all = list_checkpoints(run_folder);
  for (const FoundCheckpoint& found : all) {
    const auto damage = find_damage(found.path);
    if (!damage) {
      chosen.path = found.path;
      return chosen;
    }
    chosen.skipped.push_back(*damage);
  }
  if (!all.empty()) {
    throw std::runtime_error(fmt::format("[checkpoint] none of the {} in {} is intact: {}",
                                         all.size(), run_folder.string(),
                                         fmt::join(chosen.skipped, "; ")));
  }
  return chosen;
}

void replace_file(const fs::path& path, std::string_view text) {
  fs::path temporary = path;
  temporary += ".tmp";
  write_synced(temporary, text);
  fs::rename(temporary, path);
  sync_folder(path.parent_path());
}

void sync_folder(const fs::path& folder) { Descriptor(folder, O_RDONLY | O_DIRECTORY).sync(); }

}  // namespace isochron

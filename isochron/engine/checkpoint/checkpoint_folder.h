#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "isochron/engine/checkpoint/manifest.h"

namespace isochron {

// The checkpoints of a run folder as they lie on disk: `global_step_N`, and the tracker file
// latest_checkpointed_iteration.txt, which names the last one.
//
// A checkpoint is written under a temporary name and appears whole, by a rename; one that is
// deleted disappears the same way. Whatever has a temporary name is rubbish of a run that ended in
// between.

[[nodiscard]] std::filesystem::path checkpoint_path(const std::filesystem::path& run_folder,
                                                    std::int64_t step);
[[nodiscard]] std::filesystem::path temporary_path(const std::filesystem::path& run_folder,
                                                   std::int64_t step);

// The number in the name of a folder `global_step_N`; none for another name.
[[nodiscard]] std::optional<std::int64_t> find_step(const std::filesystem::path& path);

struct FoundCheckpoint {
  std::filesystem::path path;
  std::int64_t step = 0;
  std::optional<Manifest> manifest;  // none if it cannot be read
};

// The folders `global_step_N`, newest first by the ordinal of the manifest; those without a
// readable manifest in front, by step.
[[nodiscard]] std::vector<FoundCheckpoint> list_checkpoints(
    const std::filesystem::path& run_folder);

// An empty temporary folder for step `step`; removes what earlier runs left under temporary names.
void begin_checkpoint(const std::filesystem::path& run_folder, std::int64_t step);

// Writes the manifest into the temporary folder, gives the folder its name, in place of one that
// had it, and writes the tracker file. Everything is synced to disk in that order.
void publish_checkpoint(const std::filesystem::path& run_folder, Manifest manifest);

// Deletes all but the newest `count` checkpoints. What has no readable manifest is left alone:
// somebody else may have written it.
void keep_newest(const std::filesystem::path& run_folder, std::int32_t count);

struct ChosenCheckpoint {
  std::optional<std::filesystem::path> path;  // none: the folder holds no checkpoint at all
  std::vector<std::string> skipped;           // a line for each damaged one that is newer
};

// The newest intact checkpoint, after reading all of it. Throws std::runtime_error, with all that
// is damaged, if there are checkpoints and none is intact.
[[nodiscard]] ChosenCheckpoint newest_intact(const std::filesystem::path& run_folder);

// Writes a file under a temporary name, syncs it, and renames it to `path`.
void replace_file(const std::filesystem::path& path, std::string_view text);

// Makes what happened in a folder (files that appeared, renames) survive a crash.
void sync_folder(const std::filesystem::path& folder);

}  // namespace isochron

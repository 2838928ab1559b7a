#pragma once

#include <cstdint>
#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include "isochron/engine/checkpoint/checkpoint_options.h"
#include "isochron/engine/execute/engine.h"

namespace isochron {

// Where a run goes on.
struct Resumed {
  std::int64_t step = 0;             // that is complete; 0: none
  std::string extra;                 // what save() was given; empty if it was not loaded
  std::vector<std::string> notices;  // what people should know: what was loaded and skipped
};

// Saves and loads the state of a run: weights, optimizer, and whatever text the trainer adds. The
// files of a checkpoint do not depend on the number of ranks: any number continues.
//
//   global_step_N/manifest.json                      what belongs to it, with checksums
//   global_step_N/model/part_RRRRR.safetensors       fp32 weights: a part of each by rank R
//   global_step_N/optimizer/part_RRRRR.safetensors   both moments, the number of updates
//   global_step_N/extra.json
//   global_step_N/huggingface/                       with hf_model: for others to read
//
// All ranks make the same calls.
class Checkpoints {
 public:
  // `model_folder`: where the tokenizer comes from that stands beside an exported model.
  Checkpoints(std::filesystem::path run_folder, const CheckpointOptions& options, World& world,
              std::filesystem::path model_folder);
  ~Checkpoints();  // waits for a save in the background, whatever becomes of it
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  // Loads what resume_mode says. Throws std::runtime_error if that is damaged, or if there are
  // checkpoints and none is intact; std::invalid_argument if it does not fit the model or lacks
  // what load_contents asks for.
  [[nodiscard]] Resumed resume(Engine& engine);

  // Saves step `step`. With async_save it returns as soon as the state is copied. Throws
  // std::runtime_error on every rank if any failed, also for the save before in the background.
  void save(std::int64_t step, Engine& engine, std::string extra);

  // Waits for a save in the background, and throws what it threw.
  void finish();

 private:
  struct Snapshot;
  [[nodiscard]] std::string chosen_path(std::vector<std::string>& notices) const;
  void write(const Snapshot& snapshot);

  std::filesystem::path run_folder_;
  CheckpointOptions options_;
  World& world_;
  std::filesystem::path model_folder_;
  std::int64_t num_saves_ = 0;
  std::future<void> under_way_;
};

}  // namespace isochron

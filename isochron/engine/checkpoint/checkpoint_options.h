#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "isochron/core/enum_names.h"
#include "isochron/core/fields.h"

namespace isochron {

// The parts of a checkpoint.
enum class Content {
  model,      // fp32 weights
  optimizer,  // moments, number of updates
  extra,      // counters, what the order of the data depends on
  hf_model,   // a Hugging Face folder; written, never read
};

template <>
struct EnumNames<Content> {
  static constexpr std::array<std::pair<Content, std::string_view>, 4> values = {
      {{Content::model, "model"},
       {Content::optimizer, "optimizer"},
       {Content::extra, "extra"},
       {Content::hf_model, "hf_model"}}};
};

enum class ResumeMode {
  automatic,    // the newest intact checkpoint of the run folder, or the start
  disable,      // the start
  resume_path,  // the one that is named
};

template <>
struct EnumNames<ResumeMode> {
  static constexpr std::array<std::pair<ResumeMode, std::string_view>, 3> values = {
      {{ResumeMode::automatic, "auto"},
       {ResumeMode::disable, "disable"},
       {ResumeMode::resume_path, "resume_path"}}};
};

// What is saved, for how long, and where a run goes on.
struct CheckpointOptions {
  std::vector<Content> save_contents = {Content::model, Content::optimizer, Content::extra};
  std::optional<std::vector<Content>> load_contents = {};
  bool async_save = false;
  bool save_lora_only = false;
  std::optional<std::int32_t> max_ckpt_to_keep = {};
  ResumeMode resume_mode = ResumeMode::automatic;
  std::optional<std::string> resume_from_path = {};

  template <class Row>
  static void describe(Row row) {
    using Self = CheckpointOptions;
    row(Field{"checkpoint.save_contents", &Self::save_contents, "parts of a checkpoint"});
    row(Field{"checkpoint.load_contents", &Self::load_contents,
              "parts that a resumed run takes over; null: those of save_contents"});
    row(Field{"checkpoint.async_save", &Self::async_save,
              "write in the background while the next steps run"});
    row(Field{"checkpoint.save_lora_only", &Self::save_lora_only, "leave out frozen weights"});
    row(Field{"trainer.max_ckpt_to_keep", &Self::max_ckpt_to_keep,
              "newest checkpoints of the run folder that stay; null: all"});
    row(Field{"trainer.resume_mode", &Self::resume_mode,
              "where to start: the newest intact checkpoint, step 0, or resume_from_path"});
    row(Field{"trainer.resume_from_path", &Self::resume_from_path,
              "a folder global_step_N, for auto and resume_path"});
  }

  [[nodiscard]] bool saves(Content content) const {
    return std::find(save_contents.begin(), save_contents.end(), content) != save_contents.end();
  }

  // Never hf_model, which is for others to read.
  [[nodiscard]] bool loads(Content content) const {
    const auto& contents = load_contents ? *load_contents : save_contents;
    return content != Content::hf_model &&
           std::find(contents.begin(), contents.end(), content) != contents.end();
  }
};

}  // namespace isochron

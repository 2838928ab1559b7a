#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "isochron/core/enum_names.h"
#include "isochron/core/fields.h"

namespace isochron {

enum class DeviceKind { cuda, cpu };

template <>
struct EnumNames<DeviceKind> {
  static constexpr std::array<std::pair<DeviceKind, std::string_view>, 2> values = {
      {{DeviceKind::cuda, "cuda"}, {DeviceKind::cpu, "cpu"}}};
};

// Where a run stands and what it says.
struct TrainerOptions {
  std::string project_name = "gsm8k-sft";
  std::string experiment_name = "test";
  std::string default_local_dir = "checkpoints/${trainer.project_name}/${trainer.experiment_name}";
  std::vector<std::string> logger = {"console"};
  std::int64_t seed = 1;
  bool balance_batch = true;
  DeviceKind device = DeviceKind::cuda;
  std::vector<std::int64_t> profile_interval = {-1, -1};

  template <class Row>
  static void describe(Row row) {
    using Self = TrainerOptions;
    row(Field{"trainer.project_name", &Self::project_name, "part of the run folder"});
    row(Field{"trainer.experiment_name", &Self::experiment_name, "part of the run folder"});
    row(Field{"trainer.default_local_dir", &Self::default_local_dir,
              "the run folder; may name the two before"});
    row(Field{"trainer.logger", &Self::logger,
              "console or nothing; metrics.jsonl is always written"});
    row(Field{"trainer.seed", &Self::seed, "of the order of the rows"});
    row(Field{"trainer.balance_batch", &Self::balance_batch,
              "balance the ranks; false: cut the batch in the order of the data"});
    row(Field{"trainer.device", &Self::device, "of every rank"});
    row(Field{"trainer.profile_interval", &Self::profile_interval,
              "first and last step that is profiled; [-1, -1]: none"});
  }
};

}  // namespace isochron

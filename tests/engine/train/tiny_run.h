#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "isochron/core/json.h"
#include "tests/engine/temporary_folder.h"
#include "tests/engine/train/started_program.h"

namespace isochron {

// A folder with a tiny model, rows that can be learned and a recipe for them; runs of it.
class TinyRun {
 public:
  // `kv_heads`: heads of keys and values, 1 or 2.
  explicit TinyRun(std::int64_t kv_heads = 1);

  // `train recipe.yaml` with overrides and flags, into the run folder `name`.
  [[nodiscard]] std::vector<std::string> call(const std::string& name,
                                              const std::vector<std::string>& more) const;
  EndedProgram run(const std::string& name, const std::vector<std::string>& more) const;
  // Expects it to end well.
  void run_well(const std::string& name, const std::vector<std::string>& more) const;

  [[nodiscard]] std::filesystem::path folder(const std::string& name) const {
    return files_.path() / name;
  }
  [[nodiscard]] const TemporaryFolder& files() const { return files_; }

  // The lines of metrics.jsonl.
  [[nodiscard]] std::vector<Json> metrics(const std::string& name) const;
  [[nodiscard]] std::vector<std::int64_t> steps(const std::string& name) const;
  // train/loss by step.
  [[nodiscard]] std::vector<double> losses(const std::string& name) const;
  // plans/step_N.json of all steps, as text.
  [[nodiscard]] std::vector<std::string> plans(const std::string& name) const;
  // Bytes of all parts of weights and optimizer of a checkpoint, by name.
  [[nodiscard]] std::vector<std::string> parts(const std::string& name, std::int64_t step) const;

 private:
  TemporaryFolder files_;
};

}  // namespace isochron

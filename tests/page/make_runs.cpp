// Writes the run folders that run_page_test.py reports on: make_runs FOLDER [big]

#include <fstream>
#include <string>

#include "tests/report/example_run.h"

namespace isochron {
namespace {

namespace fs = std::filesystem;

constexpr const char* hostile =
    "</script><script>window.attacked = true</script><img src=x onerror=\"window.attacked = "
    "true\">";

void append(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::app | std::ios::binary) << text;
}

// Markup wherever a run has text of its own.
void write_hostile(const fs::path& folder) {
  write_example_run(folder, {.steps = 3, .num_plans = 2});
  append(folder / "config.yaml", std::string("note: ") + hostile + "\n");
  append(
      folder / "metrics.jsonl",
      R"({"step": 4, "data": {"train/loss": null, "</script><script>window.attacked = true</script>": 1}})"
      "\n{\"step\": \"<b>five</b>\", \"data\": {}}\n"
      "{\"step\": 6, \"data\": {\"near\": 1e17, \"far\": -1e308, \"tiny\": 5e-324}}\n"
      "{\"step\": 9007199254740992, "
      "\"data\": {\"near\": 100000000000000016, \"far\": 1e308, \"tiny\": 0}}\n");
  append(
      folder / "trace" / "rank_0.json",
      R"({"name": "</script><script>window.attacked = true</script>", "ph": "X", "ts": 5000000000, )"
      R"("dur": 90000, "pid": 0, "tid": 0, "args": {"step": 1, "slot": -1}},)"
      "\n");
}

// As a run that was killed leaves it.
void write_killed(const fs::path& folder) {
  write_example_run(folder, {.steps = 5, .num_plans = 5});
  fs::remove(folder / "config.yaml");
  append(folder / "metrics.jsonl", "{\"step\": 6, \"da");
  append(folder / "trace" / "rank_1.json", "{\"name\": \"forw");
  std::ofstream(folder / "plans" / "step_5.json") << "{\"schema\": \"isochron.pl";
}

void write_all(const fs::path& folder) {
  write_example_run(folder / "balanced", {.steps = 40, .num_plans = 40});
  write_example_run(folder / "unbalanced", {.steps = 40, .num_plans = 40, .is_balanced = false});
  write_example_run(folder / "dynamic",
                    {.steps = 40, .num_plans = 40, .capacity = 8192, .context = "dynamic"});
  write_example_run(folder / "ranks_64", {.ranks = 64,
                                          .steps = 60,
                                          .num_plans = 60,
                                          .num_batches = 6,
                                          .sequences = 512,
                                          .context = "dynamic"});
  write_example_run(folder / "no_plans", {.steps = 20, .num_plans = 0});
  fs::create_directories(folder / "empty");
  std::ofstream(folder / "empty" / "config.yaml") << "trainer: {}\n";
  write_hostile(folder / "hostile");
  write_killed(folder / "killed");
}

}  // namespace
}  // namespace isochron

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[2]) == "big") {
    isochron::write_example_run(
        std::string(argv[1]) + "/big",
        {.ranks = 64, .steps = 100'000, .num_plans = 1000, .num_batches = 12, .sequences = 1024});
    return 0;
  }
  if (argc != 2) return 2;
  isochron::write_all(argv[1]);
}

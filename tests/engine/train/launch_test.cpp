// `isochron train` under the launchers of clusters, several hosts played by this one.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/engine/train/tiny_run.h"
#include "tests/support/process_ranks.h"

namespace isochron {
namespace {

using Words = std::vector<std::string>;

// Starts the program once with each launcher and expects all to end well, with one run between
// them that gives the numbers of a single process.
void expect_one_run(const TinyRun& tiny, const std::vector<Words>& launchers) {
  tiny.run_well("alone", {});
  std::vector<std::unique_ptr<StartedProgram>> programs;
  for (std::size_t i = 0; i < launchers.size(); ++i) {
    const std::filesystem::path output = tiny.folder(fmt::format("output_{}", i));
    std::filesystem::create_directories(output);
    programs.push_back(
        std::make_unique<StartedProgram>(tiny.call("launched", {}), output, launchers[i]));
  }
  for (const auto& program : programs) {
    const EndedProgram ended = program->wait();
    EXPECT_EQ(ended.exit_code, 0) << ended.out << ended.err;
  }
  const std::vector<double> losses = tiny.losses("launched");
  const std::vector<double> expected = tiny.losses("alone");
  ASSERT_EQ(losses.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(losses[i], expected[i], 1e-4);
}

// That all ranks are in one world: a plan for so many.
void expect_ranks_in_plans(const TinyRun& tiny, std::int32_t ranks) {
  const Json plan =
      parse_json(tiny.files().read("launched/plans/step_1.json"), "the plan of step 1");
  EXPECT_EQ(plan["ranks"], ranks);
}

Words torchrun(const Words& options) {
  Words launcher = {ISOCHRON_PYTHON, "-m", "torch.distributed.run", "--no-python"};
  launcher.insert(launcher.end(), options.begin(), options.end());
  return launcher;
}

TEST(Launch, RunsUnderTorchrun) {
  const TinyRun tiny;
  expect_one_run(tiny, {torchrun({"--standalone", "--nproc-per-node", "2"})});
  expect_ranks_in_plans(tiny, 2);
}

TEST(Launch, RunsUnderTwoAgentsOfTorchrun) {
  const TinyRun tiny;
  const std::string port = std::to_string(free_port());
  std::vector<Words> agents;
  for (const char* node : {"0", "1"}) {
    agents.push_back(torchrun({"--nnodes", "2", "--node-rank", node, "--nproc-per-node", "2",
                               "--master-addr", "127.0.0.1", "--master-port", port}));
  }
  expect_one_run(tiny, agents);
  expect_ranks_in_plans(tiny, 4);
}

// What srun sets for a step of two nodes with two tasks and one.
TEST(Launch, RunsUnderSlurm) {
  const TinyRun tiny;
  const std::int32_t port = free_port();
  std::vector<Words> tasks;
  for (std::int32_t rank = 0; rank < 3; ++rank) {
    tasks.push_back({"/usr/bin/env", "SLURM_JOB_ID=4711", "SLURM_NTASKS=3",
                     "SLURM_STEP_NODELIST=127.0.0.1", "SLURM_STEP_TASKS_PER_NODE=2,1",
                     fmt::format("SLURM_PROCID={}", rank), fmt::format("SLURM_NODEID={}", rank / 2),
                     fmt::format("SLURM_LOCALID={}", rank % 2),
                     fmt::format("MASTER_PORT={}", port)});
  }
  expect_one_run(tiny, tasks);
  expect_ranks_in_plans(tiny, 3);
}

}  // namespace
}  // namespace isochron

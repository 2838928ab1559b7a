#include "isochron/engine/parallel/launcher.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/message_of.h"

namespace isochron {
namespace {

Place place_of(const std::map<std::string, std::string>& environment) {
  return launched_place([&](const std::string& name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    if (found == environment.end()) return std::nullopt;
    return found->second;
  });
}

TEST(Launcher, WithoutOneThereIsASingleRank) { EXPECT_EQ(place_of({}), Place{}); }

TEST(Launcher, TorchrunSaysAll) {
  const Place expected{.rank = 5,
                       .size = 8,
                       .local_rank = 1,
                       .local_size = 4,
                       .address = "host",
                       .port = 29500,
                       .agent_hosts_store = true,
                       .incarnation = "run/2",
                       .interface = "eth1"};
  EXPECT_EQ(place_of({{"RANK", "5"},
                      {"WORLD_SIZE", "8"},
                      {"LOCAL_RANK", "1"},
                      {"LOCAL_WORLD_SIZE", "4"},
                      {"MASTER_ADDR", "host"},
                      {"MASTER_PORT", "29500"},
                      {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                      {"TORCHELASTIC_RUN_ID", "run"},
                      {"TORCHELASTIC_RESTART_COUNT", "2"},
                      {"GLOO_SOCKET_IFNAME", "eth1"}}),
            expected);
}

TEST(Launcher, SlurmMeetsAtItsFirstHost) {
  std::map<std::string, std::string> environment{{"SLURM_PROCID", "5"},
                                                 {"SLURM_NTASKS", "7"},
                                                 {"SLURM_LOCALID", "1"},
                                                 {"SLURM_NODEID", "2"},
                                                 {"SLURM_STEP_TASKS_PER_NODE", "2(x2),3"},
                                                 {"SLURM_STEP_NODELIST", "gpu[03-04,9]"},
                                                 {"SLURM_JOB_ID", "1234567"}};
  Place expected{
      .rank = 5, .size = 7, .local_rank = 1, .local_size = 3, .address = "gpu03", .port = 24567};
  EXPECT_EQ(place_of(environment), expected);
  environment["MASTER_PORT"] = "29500";
  environment["SLURM_NODEID"] = "1";
  expected.port = 29500;
  expected.local_size = 2;
  EXPECT_EQ(place_of(environment), expected);
}

TEST(Launcher, ReadsNodeLists) {
  EXPECT_EQ(first_host("gpu7"), "gpu7");
  EXPECT_EQ(first_host("gpu7,gpu8"), "gpu7");
  EXPECT_EQ(first_host("gpu[7]"), "gpu7");
  EXPECT_EQ(first_host("gpu-a[007-011,3],cpu"), "gpu-a007");
  EXPECT_EQ(first_host("a,b[1-2]"), "a");
}

TEST(Launcher, NamesTheVariableThatIsWrong) {
  EXPECT_EQ(message_of([] {
              (void)place_of({{"RANK", "1"}, {"WORLD_SIZE", "2"}});
            }),
            "[launcher] LOCAL_RANK is not set");
  EXPECT_EQ(message_of([] {
              (void)place_of({{"RANK", "one"}, {"WORLD_SIZE", "2"}});
            }),
            "[launcher] RANK is \"one\", must be a number");
}

}  // namespace
}  // namespace isochron

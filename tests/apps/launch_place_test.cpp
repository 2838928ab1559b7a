#include "apps/isochron/launch_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/message_of.h"

namespace isochron {
namespace {

using testing::HasSubstr;

std::string message_with(Environment environment, const Environment& changes) {
  for (const auto& [name, value] : changes) environment[name] = value;
  return message_of([&] { (void)place_from_environment(environment); });
}

const Environment torchrun = {{"RANK", "5"},
                              {"WORLD_SIZE", "8"},
                              {"LOCAL_RANK", "1"},
                              {"LOCAL_WORLD_SIZE", "4"},
                              {"MASTER_ADDR", "10.0.0.1"},
                              {"MASTER_PORT", "29500"},
                              {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                              {"TORCHELASTIC_RESTART_COUNT", "2"}};

const Environment slurm = {{"SLURM_PROCID", "5"},
                           {"SLURM_NTASKS", "8"},
                           {"SLURM_LOCALID", "1"},
                           {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"},
                           {"SLURM_STEP_NODELIST", "gpu[007-008]"},
                           {"SLURM_JOB_NODELIST", "other[1-9]"},
                           {"SLURM_JOB_ID", "41234"}};

TEST(LaunchPlace, IsAloneWithoutALauncher) {
  EXPECT_EQ(place_from_environment({}), Place{});
  EXPECT_EQ(place_from_environment({{"MASTER_PORT", "1"}, {"RANK", ""}}), Place{});
}

TEST(LaunchPlace, IsWhatTorchrunSays) {
  EXPECT_EQ(place_from_environment(torchrun), (Place{.rank = 5,
                                                     .size = 8,
                                                     .local_rank = 1,
                                                     .local_size = 4,
                                                     .address = "10.0.0.1",
                                                     .port = 29500,
                                                     .agent_hosts_store = true,
                                                     .incarnation = "2"}));
}

TEST(LaunchPlace, IsWhatSlurmSays) {
  EXPECT_EQ(place_from_environment(slurm), (Place{.rank = 5,
                                                  .size = 8,
                                                  .local_rank = 1,
                                                  .local_size = 4,
                                                  .address = "gpu007",
                                                  .port = 21234}));
  Environment with_port = slurm;
  with_port["MASTER_PORT"] = "4000";
  EXPECT_EQ(place_from_environment(with_port).port, 4000);
  Environment job_alone = slurm;
  job_alone.erase("SLURM_STEP_NODELIST");
  EXPECT_EQ(place_from_environment(job_alone).address, "other1");
}

TEST(LaunchPlace, TakesTorchrunInsideASlurmJob) {
  Environment both = slurm;
  both.insert(torchrun.begin(), torchrun.end());
  EXPECT_EQ(place_from_environment(both), place_from_environment(torchrun));
}

TEST(LaunchPlace, NeedsNoAddressForOneRank) {
  EXPECT_EQ(place_from_environment({{"RANK", "0"}, {"WORLD_SIZE", "1"}}), Place{});
  EXPECT_EQ(place_from_environment({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}), Place{});
}

TEST(LaunchPlace, NamesTheVariableThatIsWrong) {
  EXPECT_EQ(message_with({{"RANK", "1"}}, {}),
            "[launch] WORLD_SIZE is not set, must be from 1 to 1048576");
  EXPECT_EQ(message_with({{"WORLD_SIZE", "2"}}, {}),
            "[launch] RANK is not set, must be from 0 to 1");
  EXPECT_EQ(message_with(torchrun, {{"RANK", "8"}}), "[launch] RANK is \"8\", must be from 0 to 7");
  EXPECT_EQ(message_with(torchrun, {{"RANK", "x"}}), "[launch] RANK is \"x\", must be from 0 to 7");
  EXPECT_EQ(message_with(torchrun, {{"LOCAL_RANK", "4"}}),
            "[launch] LOCAL_RANK is 4, must be below the 4 ranks of the host");
  EXPECT_EQ(message_with(torchrun, {{"MASTER_PORT", "70000"}}),
            "[launch] MASTER_PORT is \"70000\", must be from 1 to 65535");
  EXPECT_THAT(message_with(torchrun, {{"MASTER_ADDR", ""}}), HasSubstr("MASTER_ADDR is not set"));
  EXPECT_THAT(message_with(torchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "yes"}}),
              HasSubstr("must be True or False"));
  EXPECT_THAT(message_with(slurm, {{"SLURM_PROCID", "9"}}), HasSubstr("SLURM_PROCID is \"9\""));
  EXPECT_THAT(message_with(slurm, {{"SLURM_STEP_TASKS_PER_NODE", "many"}}),
              HasSubstr("must be like 4(x2),3"));
}

TEST(FirstHost, ReadsTheListsOfSlurm) {
  EXPECT_EQ(first_host("node1"), "node1");
  EXPECT_EQ(first_host("node1,node2"), "node1");
  EXPECT_EQ(first_host("node[003-005,9],other"), "node003");
  EXPECT_EQ(first_host("node[7]"), "node7");
  EXPECT_EQ(first_host("a,node[1-2]"), "a");
  EXPECT_EQ(first_host("rack[1-2]-gpu,x"), "rack1-gpu");
  for (const char* broken : {"", "node[1-2", "node[]", "node[x-y]", ",a", "node]"}) {
    EXPECT_THAT(message_of([&] { (void)first_host(broken); }), HasSubstr("the node list"))
        << broken;
  }
}

}  // namespace
}  // namespace isochron

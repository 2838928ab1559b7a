#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/calls.h"
#include "tests/support/rehash.h"

namespace isochron {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

const Arguments small_call = {"plan", "--lengths",  "builtin:64", "--ranks",
                              "8",    "--capacity", "16384"};

std::vector<Json> json_lines(const std::string& text) {
  std::vector<Json> documents;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    documents.push_back(parse_json(line, "test"));
  }
  return documents;
}

TEST(PlanVerb, PassesEveryFlagOn) {
  const std::string csv = write_test_file("groups.csv", "length,group\n5,a\n3,b\n4,a\n2,b\n");
  const std::string speeds = write_test_file("speeds.txt", "1\n# an old one\n0.5\n1\n1\n");
  const Json plan = json_of({"plan",
                             "--lengths",
                             csv,
                             "--ranks",
                             "4",
                             "--capacity",
                             "64",
                             "--context",
                             "dynamic",
                             "--min-context-size",
                             "1",
                             "--max-context-size",
                             "2",
                             "--sync",
                             "microbatch",
                             "--counts",
                             "equal",
                             "--pass",
                             "forward",
                             "--no-balance",
                             "--max-sequences",
                             "3",
                             "--tensor-parallel",
                             "2",
                             "--oversize",
                             "alone",
                             "--short",
                             "empty",
                             "--keep-groups",
                             "microbatch",
                             "--pad",
                             "rows",
                             "--pad-multiple",
                             "3",
                             "--max-activation-bytes",
                             "1000000000000",
                             "--effort",
                             "77",
                             "--pipeline",
                             "2",
                             "--virtual",
                             "2",
                             "--group",
                             "3",
                             "--transfer-ns",
                             "10",
                             "--stage-shares",
                             "0.25,0.25,0.2,0.3",
                             "--rank-speed",
                             speeds,
                             "--json",
                             "-"});
  EXPECT_EQ(plan["options"], Json::parse(R"({"context": "dynamic", "min_context_size": 1,
    "max_context_size": 2, "sync": "microbatch", "counts": "equal", "pass": "forward",
    "balance": false, "max_sequences": 3, "tensor_parallel": 2, "oversize": "alone",
    "short": "empty", "keep_groups": "microbatch", "pad": "rows", "pad_multiple": 3,
    "max_activation_bytes": 1000000000000, "effort": 77})"));
  EXPECT_EQ(plan["ranks"], 4);
  EXPECT_EQ(plan["capacity"], 64);
  EXPECT_EQ(plan["pipeline"], Json::parse(R"({"stages": 2, "virtual": 2, "group": 3,
    "transfer_ns": 10, "shares": [0.25, 0.25, 0.2, 0.3]})"));
  EXPECT_EQ(plan["rank_speed"], Json::parse("[1.0, 0.5, 1.0, 1.0]"));
  EXPECT_EQ(plan["group"], Json::parse(R"(["a", "b", "a", "b"])"));
  EXPECT_EQ(plan["padding_rows"], 2);
  EXPECT_EQ(plan["microbatches"].size() % 3, 0u);
  EXPECT_EQ(run_program({"check", "-"}, plan.dump()).out, "valid\n");
}

TEST(PlanVerb, HasDefaultsOfItsOwn) {
  const Json plan = json_of(
      {"plan", "--lengths", "builtin:8", "--ranks", "2", "--capacity", "200000", "--json", "-"});
  EXPECT_EQ(plan["cost"]["name"], "qwen3-8b_h100");
  EXPECT_EQ(plan["options"]["context"], "static:1");
  EXPECT_EQ(plan["options"]["balance"], true);
  EXPECT_EQ(plan["first_sequence"], 0);
  // Groups of virtual stages are as long as the pipeline is deep.
  const Json deep = json_of({"plan", "--lengths", "builtin:16", "--ranks", "2", "--capacity",
                             "200000", "--pipeline", "4", "--virtual", "2", "--json", "-"});
  EXPECT_EQ(deep["pipeline"], Json::parse(R"({"stages": 4, "virtual": 2, "group": 4})"));
}

TEST(PlanVerb, CountsTheDevicesOfARankInItsCost) {
  const Arguments call = joined(small_call, {"--context", "dynamic", "--json", "-"});
  EXPECT_EQ(json_of(joined(call, {"--tensor-parallel", "2"}))["cost"]["name"], "qwen3-8b_h100_tp2");
  EXPECT_EQ(
      json_of(joined(call, {"--tensor-parallel", "2", "--cost", "qwen3-4b_a100"}))["cost"]["name"],
      "qwen3-4b_a100");
  EXPECT_EQ(json_of(joined(call, {"--model", "qwen3-4b", "--hardware", "h200"}))["cost"]["name"],
            "qwen3-4b_h200");
}

TEST(PlanVerb, NamesWhatIsWrongWithTheCall) {
  const auto line = [](const Arguments& more, int exit_code = 2) {
    return error_line(joined({"plan", "--lengths", "builtin:10", "--ranks", "4"}, more), exit_code);
  };
  EXPECT_EQ(line({}), "isochron: [plan] --capacity is required");
  EXPECT_EQ(line({"--capacity", "much"}),
            "isochron: [plan] --capacity is \"much\", must be an integer from 1 to "
            "4611686018427387904 or auto");
  EXPECT_EQ(line({"--capacity", "0"}),
            "isochron: [plan] --capacity is \"0\", must be an integer from 1 to "
            "4611686018427387904 or auto");
  EXPECT_EQ(line({"--capacity", "99999999999999999999"}),
            "isochron: [plan] --capacity is \"99999999999999999999\", must be an integer from 1 to "
            "4611686018427387904 or auto");
  EXPECT_EQ(line({"--capacity", "9", "--batch", "x"}),
            "isochron: [plan] --batch is \"x\", must be an integer from 1 to 2147483647");
  EXPECT_EQ(line({"--capacity", "9", "--effort", "abc"}),
            "isochron: [plan] --effort is \"abc\", must be an integer from 0 to "
            "9223372036854775807");
  EXPECT_EQ(
      line({"--capacity", "9", "--context", "static:x"}),
      "isochron: [plan] C of context static:C is \"x\", must be an integer from 1 to 1048576");
  EXPECT_EQ(line({"--capacity", "9", "--balance"}),
            "isochron: [plan] unknown flag --balance, did you mean --no-balance?");
  EXPECT_EQ(line({"--capacity", "9", "--stages", "4"}),
            "isochron: [plan] unknown flag --stages, did you mean --pipeline?");
  EXPECT_EQ(line({"--capacity", "9", "--context", "static:3"}),
            "isochron: [plan] context is static:3, must divide the 4 ranks");
  EXPECT_EQ(line({"--capacity", "9", "--context", "wide"}),
            "isochron: [plan] context is \"wide\", must be static:C, dynamic, dynamic:powers or "
            "dynamic:any");
  EXPECT_EQ(line({"--capacity", "9", "--sync", "microbatch", "--counts", "free"}),
            "isochron: [plan] counts is free, must be equal with sync microbatch");
  EXPECT_EQ(line({"--capacity", "9", "--oversize", "widen"}),
            "isochron: [plan] oversize is widen, must be error or alone with context static:1");
  EXPECT_EQ(line({"--capacity", "9", "--virtual", "2"}),
            "isochron: [plan] pipeline.virtual is 2, must be 1 without several stages");
  EXPECT_EQ(line({"--capacity", "9", "--pipeline", "4", "--virtual", "2", "--group", "3"}),
            "isochron: [plan] pipeline.group is 3, must be at least the 4 stages");
  EXPECT_EQ(line({"--capacity", "9", "--pipeline", "2", "--stage-shares", "0.5,x"}),
            "isochron: [plan] --stage-shares is \"x\" at position 1, must be numbers with commas "
            "between them");
  EXPECT_EQ(line({"--capacity", "9", "--pipeline", "2", "--stage-shares", "0.5,"}),
            "isochron: [plan] --stage-shares is \"\" at position 1, must be numbers with commas "
            "between them");
  EXPECT_EQ(line({"--capacity", "9", "--pipeline", "2", "--stage-shares", "0.5,0.4"}),
            "isochron: [plan] the shares add up to 0.9, must be 1");
  EXPECT_EQ(line({"--capacity", "9", "--keep-groups", "rank"}),
            "isochron: [plan] keep_groups is rank, but the batch has no groups");
  EXPECT_EQ(line({"--capacity", "9", "--batch", "0"}),
            "isochron: [plan] --batch is 0, must be at least 1");
  EXPECT_EQ(line({"--capacity", "9", "--summary", "s.json"}),
            "isochron: [plan] --summary is given without --batch, must be both");
  EXPECT_EQ(line({"--capacity", "9", "--batch", "5", "--json", "-", "--summary", "-"}),
            "isochron: [plan] --json and --summary are both -, must be two places");
  EXPECT_EQ(line({"--capacity", "9", "--rank-speed", "missing"}, 3),
            "isochron: [file] cannot read \"missing\": No such file or directory");
  EXPECT_EQ(error_line({"plan", "--lengths", "builtin:4", "--ranks", "0", "--capacity", "9"}, 2),
            "isochron: [plan] ranks is 0, must be 1 to 1048576");
}

TEST(PlanVerb, PassesTheChecker) {
  const std::vector<Arguments> variants = {
      {"--context", "dynamic"},
      {"--context", "dynamic:any"},
      {"--context", "static:8"},
      {"--context", "static:1", "--oversize", "alone"},
      {"--context", "dynamic", "--sync", "microbatch"},
      {"--context", "dynamic", "--counts", "equal", "--short", "drop"},
      {"--context", "dynamic", "--pass", "forward"},
      {"--context", "dynamic", "--no-balance"},
      {"--context", "dynamic", "--pipeline", "4"},
      {"--context", "dynamic", "--pipeline", "2", "--virtual", "2", "--transfer-ns", "1000"},
      {"--context", "dynamic", "--pad-multiple", "10", "--max-sequences", "5"},
      {"--context", "dynamic", "--effort", "0"},
      {"--context", "dynamic", "--tensor-parallel", "4"},
      {"--context", "static:4", "--cost", "verl"},
  };
  for (const Arguments& more : variants) {
    SCOPED_TRACE(testing::PrintToString(more));
    const Finished planned = run_program(joined(joined(small_call, more), {"--json", "-"}));
    EXPECT_EQ(planned.exit_code, 0) << planned.err << planned.out;
    EXPECT_EQ(run_program({"check", "-", "--lengths", "builtin:64"}, planned.out).out, "valid\n");
  }
}

TEST(PlanVerb, ShowsTheBatchDealtInOrderBesideThePlan) {
  const Finished finished = run_program(joined(small_call, {"--context", "dynamic"}));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, StartsWith("64 sequences, "));
  for (const char* row :
       {"8 ranks, capacity 16,384, cost qwen3-8b_h100", "dealt in order      planned", "\ncontext ",
        "\nstep time ", "\nlower bound ", "\ngap to bound ", "\nimbalance ", "\nslots ",
        "\ngroups of ", "\nmost tokens on a rank ", "\ntoken fill ", "\npadding tokens ",
        "\npeak activation memory ", "\nstatus ", "\n   7  #"}) {
    EXPECT_THAT(finished.out, HasSubstr(row));
  }
  for (const char c : finished.out) EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~'));
}

TEST(PlanVerb, ShowsOneColumnIfThereIsNothingBeside) {
  const Finished dealt = run_program(joined(small_call, {"--context", "dynamic", "--no-balance"}));
  EXPECT_THAT(dealt.out, HasSubstr("dealt in order"));
  EXPECT_THAT(dealt.out, Not(HasSubstr("planned")));
  // Over the capacity of all ranks together: only a policy makes a plan of it.
  const Finished alone = run_program({"plan", "--lengths", "-", "--ranks", "5", "--capacity", "16",
                                      "--context", "dynamic", "--oversize", "alone"},
                                     "100\n5\n");
  EXPECT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_THAT(alone.out, HasSubstr("dealt in order there is no plan: sequence 0 of 100 tokens "));
  EXPECT_THAT(alone.out, HasSubstr(" 1, 0\nstatus "));
}

TEST(PlanVerb, SaysWhyThereIsNoPlan) {
  const std::string lengths = write_test_file("long.txt", "5\n50\n");
  const Arguments call = {"plan", "--lengths", lengths, "--ranks", "2", "--capacity", "20"};
  const Finished text = run_program(call);
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_EQ(text.err, "");
  EXPECT_TRUE(is_one_line(text.out)) << text.out;
  EXPECT_THAT(text.out, StartsWith("infeasible: sequence 1 of 50 tokens "));
  const Json plan = json_of(joined(call, {"--json", "-"}), 1);
  EXPECT_EQ("infeasible: " + plan["reason"].get<std::string>() + "\n", text.out);
  EXPECT_EQ(plan["microbatches"], Json::array());
  EXPECT_EQ(run_program({"check", "-"}, plan.dump()).out, "valid\n");
  EXPECT_EQ(run_program(joined(call, {"--json", "none.json"})).exit_code, 1);
  EXPECT_EQ(parse_json(read_test_file("none.json"), "test"), plan);
}

TEST(PlanVerb, SaysThatLimitsLeaveNoSize) {
  const Finished text =
      run_program({"plan", "--lengths", "builtin:8", "--ranks", "4", "--capacity", "200000",
                   "--context", "dynamic", "--min-context-size", "3", "--max-context-size", "3"});
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_EQ(text.out,
            "infeasible: context dynamic has no groups of 3 to 3 ranks where there are 4\n");
}

TEST(PlanVerb, WorksOutTheCapacityFromTheMemory) {
  const Arguments call = {"plan",      "--lengths", "builtin:64", "--ranks", "8",
                          "--context", "dynamic",   "--capacity", "auto"};
  EXPECT_EQ(error_line(call, 2),
            "isochron: [plan] --capacity is auto, which needs --model and --hardware");
  EXPECT_EQ(error_line(joined(call, {"--cost", "verl"}), 2),
            "isochron: [plan] --capacity is auto, which needs --model and --hardware");
  EXPECT_EQ(error_line(joined(call, {"--model", "qwen3-8b"}), 2),
            "isochron: [plan] --model is given without --hardware, must be both");
  EXPECT_THAT(error_line(joined(call, {"--model", "llama-3-70b", "--hardware", "h100"}), 2),
              HasSubstr("leave nothing for activations"));
  const Arguments answered = joined(call, {"--model", "qwen3-4b", "--hardware", "h200"});
  const Finished text = run_program(answered);
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, StartsWith("memory of h200 "));
  for (const char* row :
       {"141.00 GB", "\n- reserve ", "\n- weights, gradients, optimizer ", "\n- logits of a chunk ",
        "\n= activations ", "\n/ bytes of a token ", "3,133,440\n", "\n= capacity "}) {
    EXPECT_THAT(text.out, HasSubstr(row));
  }
  const auto capacity = json_of(joined(answered, {"--json", "-"}))["capacity"];
  EXPECT_GT(capacity, 20'000);
  EXPECT_LT(capacity, 40'000);
  // A second stage halves the states, and the slots in flight share what that leaves.
  EXPECT_GT(json_of(joined(answered, {"--pipeline", "2", "--json", "-"}))["capacity"], capacity);
  EXPECT_GT(json_of(joined(answered, {"--tensor-parallel", "2", "--json", "-"}))["capacity"],
            capacity);
  const Json recomputed = json_of(joined(answered, {"--recompute", "full", "--json", "-"}));
  EXPECT_GT(recomputed["capacity"], 10 * capacity.get<std::int64_t>());
  EXPECT_GT(json_of(joined(answered, {"--pass", "forward", "--json", "-"}))["capacity"],
            recomputed["capacity"]);
  EXPECT_EQ(error_line(joined(answered, {"--recompute", "some"}), 2),
            "isochron: [plan] --recompute is \"some\", must be one of none, selective, full");
}

TEST(PlanVerb, GivesASlowRankLess) {
  const std::string lengths = write_test_file("equal.txt", "1000\n1000\n1000\n1000\n1000\n1000\n");
  const std::string cost = write_test_file("tokens.json", R"({"linear_ns": 1})");
  const Arguments call = {"plan", "--lengths", lengths, "--ranks", "2", "--capacity",
                          "1000", "--cost",    cost,    "--json",  "-"};
  const auto tokens_of_first = [](const Json& plan) {
    std::size_t count = 0;
    for (const Json& slot : plan["microbatches"]) {
      for (const Json& group : slot) {
        if (group["ranks"][0] == 0) count += group["sequences"].size();
      }
    }
    return count;
  };
  EXPECT_EQ(tokens_of_first(json_of(call)), 3u);
  for (const char* speeds : {"0.5\n1\n", "[0.5, 1]"}) {
    const std::string path = write_test_file("half.txt", speeds);
    const Json plan = json_of(joined(call, {"--rank-speed", path}));
    EXPECT_EQ(tokens_of_first(plan), 2u);
    EXPECT_EQ(plan["predicted_step_ns"], 4000);
    EXPECT_EQ(plan["status"], "optimal");
    EXPECT_EQ(run_program({"check", "-"}, plan.dump()).out, "valid\n");
  }
  EXPECT_EQ(error_line(joined(call, {"--rank-speed", write_test_file("short.txt", "1\n")}), 2),
            "isochron: [plan] rank_speed has 1 numbers, must be one for each of the 2 ranks");
  EXPECT_EQ(error_line(joined(call, {"--rank-speed", write_test_file("bad.txt", "1\nx\n")}), 2),
            "isochron: [rank-speed] line 2: the speed is \"x\", must be a number from 0.001 to "
            "1000");
}

TEST(PlanVerb, PlansADataSetBatchByBatch) {
  const std::string csv =
      write_test_file("set.csv", "length,group\n10,a\n20,b\n30,b\n40,c\n50,a\n60,c\n70,b\n");
  const Arguments call = {"plan", "--lengths",     csv,    "--ranks", "2", "--capacity",
                          "100",  "--keep-groups", "rank", "--batch", "3"};
  const Finished finished = run_program(joined(call, {"--json", "-"}));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.err, "");
  const std::vector<Json> plans = json_lines(finished.out);
  ASSERT_EQ(plans.size(), 3u);
  EXPECT_EQ(plans[1]["first_sequence"], 3);
  EXPECT_EQ(plans[1]["lengths"], Json::parse("[40, 50, 60]"));
  EXPECT_EQ(plans[1]["group"], Json::parse(R"(["c", "a", "c"])"));
  EXPECT_EQ(plans[2]["first_sequence"], 6);
  EXPECT_EQ(plans[2]["lengths"], Json::parse("[70]"));  // what is left
  EXPECT_EQ(run_program({"check", "-", "--lengths", csv}, finished.out).out, "valid\n");

  const Finished text = run_program(joined(call, {"--json", "plans.jsonl"}));
  EXPECT_EQ(read_test_file("plans.jsonl"), finished.out);
  EXPECT_THAT(text.out, HasSubstr("\n3 batches: "));
  for (const char* word :
       {"min", "mean", "median", "95 %", "max", "\nimbalance ", "\ngap to bound ", "\ntime saved ",
        "\npadding ", "\ntoken fill ", "\nslots "}) {
    EXPECT_THAT(text.out, HasSubstr(word));
  }
}

TEST(PlanVerb, GoesOnAfterABatchWithoutAPlan) {
  const std::string lengths = write_test_file("mixed.txt", "5\n6\n50\n7\n8\n");
  const Arguments call = {"plan",       "--lengths", lengths,   "--ranks", "2",
                          "--capacity", "20",        "--batch", "2"};
  const Finished finished = run_program(joined(call, {"--json", "-", "--summary", "sum.json"}));
  EXPECT_EQ(finished.exit_code, 1);
  const std::vector<Json> plans = json_lines(finished.out);
  ASSERT_EQ(plans.size(), 3u);
  EXPECT_NE(plans[0]["status"], "infeasible");
  EXPECT_EQ(plans[1]["status"], "infeasible");
  EXPECT_NE(plans[2]["status"], "infeasible");
  EXPECT_EQ(run_program({"check", "-", "--lengths", lengths}, finished.out).out, "valid\n");
  const Json summary = parse_json(read_test_file("sum.json"), "test");
  EXPECT_EQ(summary["schema"], "isochron.plan_summary.v1");
  EXPECT_EQ(summary["batch"], 2);
  EXPECT_EQ(summary["batches"], 3);
  EXPECT_EQ(summary["sequences"], 5);
  EXPECT_EQ(summary["status"]["infeasible"], 1);
  EXPECT_EQ(summary["slots"]["count"], 2);
  const Finished text = run_program(call);
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_THAT(text.out, HasSubstr("batch 1, sequences 2 to 3: infeasible: sequence 2 of 50 "));
  EXPECT_EQ(json_of(joined(call, {"--summary", "-"}), 1), summary);
}

TEST(PlanVerb, CutsAModelIntoNoMoreChunksThanLayers) {
  const auto message = [](const std::vector<std::string>& flags) {
    return error_line(joined(small_call, flags), 2);
  };
  const std::string words =
      "isochron: [plan] there are 64 stages, must be at most 36, the layers of qwen3-8b";
  EXPECT_EQ(message({"--pipeline", "64"}), words);
  EXPECT_EQ(message({"--pipeline", "64", "--model", "qwen3-8b", "--hardware", "h100"}), words);
  EXPECT_EQ(message({"--pipeline", "4", "--virtual", "10"}),
            "isochron: [plan] there are 40 chunks on 4 stages, must be at most 36, the layers of "
            "qwen3-8b");
  EXPECT_EQ(run_program(joined(small_call, {"--pipeline", "64", "--cost", "verl"})).exit_code, 0);
}

TEST(PlanVerb, TakesLittleMemoryForManySequencesOnGroupsOfAnySize) {
  const Finished finished =
      run_program({"plan", "--lengths", "builtin:65536", "--ranks", "4096", "--capacity", "16384",
                   "--context", "dynamic:any", "--json", "-"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  rusage children{};
  ASSERT_EQ(getrusage(RUSAGE_CHILDREN, &children), 0);
  EXPECT_LT(children.ru_maxrss, 500'000);  // kB; a table of all costs takes two million
}

TEST(CheckVerb, NamesTheLineOfAPlanThatIsWrong) {
  const Finished finished = run_program({"plan", "--lengths", "builtin:6", "--ranks", "2",
                                         "--capacity", "200000", "--batch", "3", "--json", "-"});
  const std::size_t middle = finished.out.find('\n') + 1;
  const std::string first = finished.out.substr(0, middle);
  const std::string second = finished.out.substr(middle);
  const auto check = [](const std::string& text, const std::string& lengths) {
    const Finished checked = run_program({"check", "-", "--lengths", lengths}, text);
    EXPECT_EQ(checked.exit_code, checked.out == "valid\n" ? 0 : 1) << checked.err;
    return checked.out;
  };
  EXPECT_EQ(check(first + second, "builtin:6"), "valid\n");
  EXPECT_EQ(check(second + first, "builtin:6"),
            "line 1: first_sequence is 3, the lines before have 0 sequences\n"
            "line 1: the plan is about other sequences than the expected batch\n"
            "line 2: first_sequence is 0, the lines before have 3 sequences\n"
            "line 2: the plan is about other sequences than the expected batch\n");
  EXPECT_EQ(check(first + second, "builtin:7"),
            "the plans are about 6 sequences, the expected batch has 7\n");
  const std::string others = write_test_file("others.txt", "1\n2\n3\n4\n5\n6\n");
  EXPECT_EQ(check(first + second, others),
            "line 1: the plan is about other sequences than the expected batch\n"
            "line 2: the plan is about other sequences than the expected batch\n");
}

TEST(CheckVerb, ProvesTheBoundAgain) {
  Json plan = json_of({"plan", "--lengths", "builtin:64", "--ranks", "8", "--capacity", "16384",
                       "--context", "dynamic", "--json", "-"});
  ASSERT_EQ(plan["status"], "feasible");
  const auto proven = plan["lower_bound_ns"].get<std::int64_t>();
  plan["lower_bound_ns"] = proven + 1;
  const Finished raised = run_program({"check", "-"}, rehashed(plan));
  EXPECT_EQ(raised.exit_code, 0);
  EXPECT_EQ(raised.out, "valid\n");
  EXPECT_EQ(raised.err,
            fmt::format("isochron: [check] lower_bound_ns is {}, this version proves no more than "
                        "{}\n",
                        proven + 1, proven));
  plan["lower_bound_ns"] = proven - 1;  // less than can be proven is true as well
  const Finished lowered = run_program({"check", "-"}, rehashed(plan));
  EXPECT_EQ(lowered.out, "valid\n");
  EXPECT_EQ(lowered.err, "");
}

TEST(CheckVerb, ReportsAllThatIsWrong) {
  Json plan = json_of({"plan", "--lengths", "builtin:64", "--ranks", "8", "--capacity", "16384",
                       "--context", "dynamic", "--json", "-"});
  const auto step = plan["predicted_step_ns"].get<std::int64_t>();
  plan["predicted_step_ns"] = step + 1;
  plan["lower_bound_ns"] = step + 2;
  plan["imbalance"] = 7;
  const Finished checked = run_program({"check", "-"}, plan.dump());
  EXPECT_EQ(checked.exit_code, 1);
  EXPECT_EQ(checked.err, "");
  EXPECT_THAT(checked.out, MatchesRegex("hash is [^\n]*\nlower_bound_ns is [^\n]*\n"
                                        "predicted_step_ns is [^\n]*\nimbalance is 7, [^\n]*\n"));
}

}  // namespace
}  // namespace isochron

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>
#include <vector>

#include "isochron/balance/balance.h"
#include "isochron/core/json.h"
#include "isochron/pack/pack.h"
#include "isochron/step/plan_options.h"
#include "tests/cli/calls.h"
#include "tests/support/mutate.h"

namespace isochron {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(CommandLine, ShowsItsVersionAndHelp) {
  EXPECT_EQ(run_program({"--version"}).out, "isochron 0.1.0\n");
  EXPECT_THAT(run_program({"--help"}).out, HasSubstr("isochron check result.json"));
  for (const char* verb : {"balance", "pack", "plan", "check", "simulate", "report", "train"}) {
    const Finished help = run_program({verb, "--help"});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_EQ(help.err, "");
    EXPECT_THAT(help.out, HasSubstr(std::string("Usage: isochron ") + verb));
    EXPECT_THAT(help.out, HasSubstr("Examples:"));
  }
}

TEST(CommandLine, NamesWhatIsWrongWithTheCall) {
  EXPECT_EQ(
      error_line({}, 2),
      "isochron: [command line] a verb is missing, must be one of balance, pack, plan, check, "
      "simulate, report, train");
  EXPECT_EQ(error_line({"balanse"}, 2),
            "isochron: [command line] unknown verb \"balanse\", did you mean \"balance\"?");
  EXPECT_EQ(error_line({"--versoin"}, 2),
            "isochron: [command line] unknown flag --versoin, did you mean --version?");
  EXPECT_EQ(error_line({"balance", "--lengths", "builtin:4"}, 2),
            "isochron: [balance] --ranks is required");
  EXPECT_EQ(error_line({"balance", "--ranks", "4"}, 2),
            "isochron: [balance] --lengths is required");
  EXPECT_EQ(error_line({"balance", "--lengths", "builtin:4", "--rnks", "4"}, 2),
            "isochron: [balance] unknown flag --rnks, did you mean --ranks?");
  EXPECT_EQ(error_line({"balance", "--lengths", "builtin:4", "--ranks", "0"}, 2),
            "isochron: [balance] --ranks is 0, must be from 1 to 1048576");
  EXPECT_EQ(error_line({"balance", "--lengths", "builtin:4", "--ranks", "4x"}, 2),
            "isochron: [balance] --ranks is \"4x\", must be an integer from 1 to 1048576");
  EXPECT_EQ(error_line({"balance", "--lengths", "builtin:4", "--ranks", "4", "--order", "x"}, 2),
            "isochron: [balance] --order is \"x\", must be one of index, small_ends");
  EXPECT_EQ(error_line({"balance", "--lengths", "builtin:0", "--ranks", "4"}, 2),
            "isochron: [lengths] \"builtin:0\" must be builtin:N with N from 1 to 100000000");
  EXPECT_EQ(error_line({"balance", "--lengths", "builtin:4", "--ranks", "4", "--json", ""}, 2),
            "isochron: [balance] --json: must not be empty");
  EXPECT_EQ(error_line({"pack", "--lengths", "builtin:4"}, 2),
            "isochron: [pack] --capacity is required");
  EXPECT_THAT(error_line({"pack", "--lengths", "builtin:4", "--capacity", "0"}, 2),
              HasSubstr("isochron: [pack] capacity is 0, must be "));
  EXPECT_EQ(error_line({"check"}, 2), "isochron: [check] result is required");
  error_line({"balance", "--lengths", "builtin:4", "--ranks", "4", "extra"}, 2);
  error_line({"balance", "--lengths", "builtin:4", "--ranks", "4", "--ranks", "5"}, 2);
  error_line({"balance", "--lengths", "builtin:4", "--ranks"}, 2);
  error_line({"balance", "-x"}, 2);
  error_line({""}, 2);
}

TEST(CommandLine, KeepsOddArgumentsOnOneLine) {
  EXPECT_EQ(error_line({"bal\nance\x1b[31m"}, 2),
            "isochron: [command line] unknown verb \"bal ance [31m\", did you mean \"balance\"?");
}

TEST(CommandLine, SaysWhichCostItNeeds) {
  const Arguments call = {"balance", "--lengths", "builtin:4", "--ranks", "2"};
  const auto with = [&](const Arguments& more) { return joined(call, more); };
  EXPECT_EQ(error_line(with({"--cost", "verl", "--model", "qwen3-8b"}), 2),
            "isochron: [balance] --cost is given together with --model, must be one or the other");
  EXPECT_EQ(error_line(with({"--model", "qwen3-8b"}), 2),
            "isochron: [balance] --model is given without --hardware, must be both");
  EXPECT_EQ(error_line(with({"--hardware", "h100"}), 2),
            "isochron: [balance] --hardware is given without --model, must be both");
  EXPECT_THAT(error_line(with({"--cost", "vrl"}), 2), HasSubstr("did you mean \"verl\""));
  EXPECT_EQ(error_line(with({"--cost", "missing.json"}), 3),
            "isochron: [file] cannot read \"missing.json\": No such file or directory");
  const std::string file = write_test_file("cost.json", R"({"name": "mine", "linear_ns": 2.5})");
  for (const std::string& cost : {file, std::string("cost.json")}) {
    const Json result = json_of(with({"--cost", cost, "--json", "-"}));
    EXPECT_EQ(result["cost"]["name"], "mine");
    EXPECT_EQ(result["cost"]["linear_ns"], 2.5);
  }
  EXPECT_EQ(json_of(with({"--json", "-"}))["cost"]["name"], "verl");
  const Json analytic = json_of(with({"--model", "qwen3-8b", "--hardware", "h100", "--json", "-"}));
  EXPECT_EQ(analytic["cost"]["name"], "qwen3-8b_h100");
  error_line(with({"--cost", write_test_file("bad.json", "{")}), 2);
}

TEST(CommandLine, ReportsFilesThatCannotBeRead) {
  EXPECT_EQ(error_line({"balance", "--lengths", "missing", "--ranks", "2"}, 3),
            "isochron: [file] cannot read \"missing\": No such file or directory");
  EXPECT_EQ(error_line({"pack", "--lengths", "/", "--capacity", "2"}, 3),
            "isochron: [file] cannot read \"/\": Is a directory");
  EXPECT_EQ(error_line({"check", "missing"}, 3),
            "isochron: [file] cannot read \"missing\": No such file or directory");
}

TEST(CommandLine, ReportsLengthsThatMakeNoSense) {
  const auto line = [](const std::string& text) {
    return error_line({"balance", "--lengths", write_test_file("lengths", text), "--ranks", "2"},
                      2);
  };
  EXPECT_EQ(line(""), "isochron: [lengths] line 1: no length found, must be at least one");
  EXPECT_EQ(line("5\nx\n"),
            "isochron: [lengths] line 2: the length is \"x\", must be an integer from 1 to "
            "2147483647");
  EXPECT_THAT(line(std::string("\x7f"
                               "ELF\x02\x01\0\0\0\xff",
                               10)),
              HasSubstr("[lengths] line 1"));
  line(std::string(1 << 20, '['));
  line(std::string(1 << 20, '9'));
  line("length,group\n1,\"a\n");
}

TEST(CommandLine, SurvivesHostileResults) {
  const std::string text =
      run_program({"pack", "--lengths", "builtin:20", "--capacity", "200000", "--json", "-"}).out;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const Finished finished = run_program({"check", "-"}, mutated(text, random));
    EXPECT_LE(finished.exit_code, 2);
    EXPECT_EQ(finished.exit_code == 2, is_one_line(finished.err));
  }
}

TEST(CommandLine, ReadsLengthsInAllForms) {
  const std::string expected = "[[0,3],[1,2]]";  // 7+3 against 6+4
  const auto ranks = [](const std::string& name, const std::string& text) {
    return json_of({"balance", "--lengths", write_test_file(name, text), "--ranks", "2", "--cost",
                    write_test_file("tokens.json", R"({"linear_ns": 1})"), "--json",
                    "-"})["sequences_of_rank"]
        .dump();
  };
  const std::set<std::string> either = {expected, "[[1,2],[0,3]]"};
  EXPECT_TRUE(either.contains(ranks("a.txt", "# tokens\n7\n6\n4\n3\n")));
  EXPECT_TRUE(either.contains(ranks("a.json", "[7, 6,\n4, 3]")));
  EXPECT_TRUE(either.contains(ranks("a.csv", "group,length\na,7\na,6\nb,4\nb,3\n")));
  const Finished piped = run_program({"balance", "--lengths", "-", "--ranks", "2"}, "7\n6\n4\n3\n");
  EXPECT_EQ(piped.exit_code, 0);
  EXPECT_THAT(piped.out, HasSubstr("4 sequences, 20 tokens, 2 ranks, cost verl"));
}

// DESIGN 5.5: every option is a flag of the verb and a field of `options` in its result.
template <class Options>
void expect_same_options(const Arguments& call, const std::set<std::string>& own_flags = {}) {
  const std::string& verb = call[0];
  std::set<std::string> others = {"--help",  "--lengths",  "--ranks", "--cost",
                                  "--model", "--hardware", "--json"};
  others.insert(own_flags.begin(), own_flags.end());
  std::vector<std::string> flags;
  const std::string help = run_program({verb, "--help"}).out;
  const std::regex flag(R"(\n  (?:-\w,)?(--[a-z-]+))");
  for (std::sregex_iterator it(help.begin(), help.end(), flag), end; it != end; ++it) {
    const std::string name = (*it)[1];
    if (!others.contains(name)) flags.push_back(name);
  }
  std::vector<std::string> wanted;
  Options::describe([&](const auto& field) { wanted.push_back(flag_of(field)); });
  EXPECT_EQ(flags, wanted);

  std::vector<std::string> keys;
  const Json result = json_of(call);
  for (const auto& [key, value] : result["options"].items()) keys.push_back(key);
  EXPECT_EQ(keys, field_keys<Options>());
}

TEST(CommandLine, HasAFlagAndAFieldForEveryOption) {
  expect_same_options<BalanceOptions>(
      {"balance", "--lengths", "builtin:8", "--ranks", "2", "--json", "-"});
  expect_same_options<PackOptions>(
      {"pack", "--lengths", "builtin:8", "--capacity", "200000", "--json", "-"});
  expect_same_options<PlanOptions>(
      {"plan", "--lengths", "builtin:8", "--ranks", "2", "--capacity", "200000", "--json", "-"},
      {"--capacity", "--pipeline", "--virtual", "--group", "--transfer-ns", "--stage-shares",
       "--rank-speed", "--recompute", "--batch", "--summary"});
}

TEST(CommandLine, SaysWhatHappensWithoutAnOption) {
  const std::string help = run_program({"plan", "--help"}).out;
  EXPECT_THAT(help, HasSubstr("not given: free"));
  EXPECT_THAT(help, testing::Not(HasSubstr("ask for it [none]")));
  EXPECT_THAT(help, HasSubstr("stay together [none]"));  // which is a value
}

TEST(CommandLine, PassesEveryFlagOn) {
  const std::string csv = write_test_file("groups.csv", "length,group\n5,a\n3,b\n4,a\n2,b\n");
  const Json balanced = json_of({"balance", "--lengths", csv, "--ranks", "2", "--equal-count",
                                 "--keep-groups", "rank", "--minibatch", "4", "--capacity", "100",
                                 "--order", "small_ends", "--max-work=77", "--json", "-"});
  EXPECT_EQ(balanced["options"],
            Json::parse(R"({"equal_count": true, "keep_groups": "rank", "minibatch": 4,
                            "capacity": 100, "order": "small_ends", "max_work": 77})"));
  EXPECT_EQ(balanced["ranks"], 2);
  EXPECT_EQ(balanced["group"], Json::parse(R"(["a", "b", "a", "b"])"));
  const Json packed =
      json_of({"pack",       "--lengths",   csv,          "--capacity", "9",     "--multiple",
               "2",          "--min-count", "2",          "--count",    "2",     "--max-sequences",
               "3",          "--oversize",  "alone",      "--short",    "error", "--keep-groups",
               "microbatch", "--order",     "small_ends", "--max-work", "77",    "--json",
               "-"});
  EXPECT_EQ(packed["options"], Json::parse(R"({"capacity": 9, "multiple": 2, "min_count": 2,
    "count": 2, "max_sequences": 3, "oversize": "alone", "short": "error",
    "keep_groups": "microbatch", "order": "small_ends", "max_work": 77})"));
}

TEST(CommandLine, WritesOnlyJsonToStandardOutput) {
  for (const Arguments& call :
       {Arguments{"balance", "--lengths", "builtin:64", "--ranks", "4", "--json", "-"},
        Arguments{"pack", "--lengths", "builtin:64", "--capacity", "131072", "--json", "-"},
        Arguments{"plan", "--lengths", "builtin:64", "--ranks", "4", "--capacity", "131072",
                  "--json", "-"}}) {
    const Finished finished = run_program(call);
    EXPECT_EQ(finished.exit_code, 0);
    EXPECT_EQ(finished.err, "");
    EXPECT_EQ(finished.out.front(), '{');
    EXPECT_NO_THROW((void)parse_json(finished.out, "test"));
    const Finished checked = run_program({"check", "-", "--lengths", "builtin:64"}, finished.out);
    EXPECT_EQ(checked.out, "valid\n");
    EXPECT_EQ(checked.exit_code, 0);
  }
}

TEST(CommandLine, ChecksWhatItWrote) {
  const std::string csv = write_test_file(
      "batch.csv", "length,group,extra_cost_ns\n50,a,1\n30,b,0\n40,a,0\n20,b,7\n60,c,0\n40,c,0\n");
  const Arguments balance_call = {"balance", "--lengths", csv, "--ranks", "2", "--json", "-"};
  const Arguments pack_call = {"pack", "--lengths", csv, "--capacity", "110", "--json", "-"};
  const std::vector<Arguments> variants = {
      {}, {"--order", "small_ends"}, {"--max-work", "0"}, {"--cost", "qwen3-8b_h100"}};
  for (const Arguments& call : {balance_call, pack_call}) {
    for (const Arguments& more : variants) {
      const Arguments all = joined(call, more);
      SCOPED_TRACE(testing::PrintToString(all));
      const Finished checked = run_program({"check", "-", "--lengths", csv}, run_program(all).out);
      EXPECT_EQ(checked.out, "valid\n") << checked.err;
    }
  }
}

TEST(CommandLine, FindsAResultThatWasTamperedWith) {
  Json result = json_of({"balance", "--lengths", "builtin:8", "--ranks", "2", "--json", "-"});
  result["max_cost"] = result["max_cost"].get<std::int64_t>() - 1;
  const std::string path = write_test_file("tampered.json", result.dump());
  const Finished tampered = run_program({"check", path});
  EXPECT_EQ(tampered.exit_code, 1);
  EXPECT_EQ(tampered.err, "");
  EXPECT_THAT(tampered.out, testing::StartsWith("max_cost is "));
  const Finished other = run_program({"check", path, "--lengths", "builtin:9"});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_EQ(other.out, "the result is about 8 sequences, the expected batch has 9\n");
  EXPECT_EQ(error_line({"check", write_test_file("x.json", "{}")}, 2),
            "isochron: [check] \"schema\" is missing");
}

TEST(CommandLine, WritesAJsonFileWholeOrNotAtAll) {
  const Arguments call = {"balance", "--lengths", "builtin:8", "--ranks", "2", "--json"};
  const auto to = [&](const std::string& path) { return run_program(joined(call, {path})); };
  write_test_file("result.json", "old");
  const Finished finished = to("result.json");
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.out, HasSubstr("max cost"));
  EXPECT_EQ(read_test_file("result.json"), to("-").out);
  EXPECT_EQ(to("missing/result.json").err,
            "isochron: [file] cannot write \"missing/result.json\": No such file or directory\n");
  EXPECT_EQ(to("missing/result.json").exit_code, 3);
  EXPECT_EQ(to("/").exit_code, 3);
  EXPECT_EQ(to("/dev/full").exit_code, 3);
}

TEST(CommandLine, PrintsTheReasonWhenThereIsNoAnswer) {
  const std::string lengths = write_test_file("long.txt", "5\n50\n");
  const Arguments call = {"pack", "--lengths", lengths, "--capacity", "20"};
  const Finished text = run_program(call);
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_EQ(text.err, "");
  EXPECT_TRUE(is_one_line(text.out)) << text.out;
  EXPECT_THAT(text.out, testing::StartsWith("infeasible: "));
  EXPECT_THAT(text.out, HasSubstr("50"));
  const Json result = json_of(joined(call, {"--json", "-"}), 1);
  EXPECT_EQ(result["status"], "infeasible");
  EXPECT_EQ("infeasible: " + result["reason"].get<std::string>() + "\n", text.out);
  EXPECT_EQ(run_program({"check", "-"}, result.dump()).out, "valid\n");
  const Json balanced = json_of(
      {"balance", "--lengths", lengths, "--ranks", "2", "--capacity", "20", "--json", "-"}, 1);
  EXPECT_EQ(balanced["status"], "infeasible");
  EXPECT_EQ(run_program({"check", "-"}, balanced.dump()).out, "valid\n");
}

TEST(CommandLine, ShowsRanksBeforeAndAfter) {
  const Finished finished = run_program({"balance", "--lengths", "builtin:200", "--ranks", "8"});
  for (const char* row : {"input order", "balanced", "max cost", "mean cost", "max/mean",
                          "lower bound", "gap to bound", "status", "\n   7  "}) {
    EXPECT_THAT(finished.out, HasSubstr(row));
  }
  for (const char c : finished.out) EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~'));
  const Finished many = run_program({"balance", "--lengths", "builtin:200", "--ranks", "64"});
  for (const char* row : {"smallest", "median", "largest"}) EXPECT_THAT(many.out, HasSubstr(row));
  EXPECT_LT(std::count(many.out.begin(), many.out.end(), '\n'), 32);
}

TEST(CommandLine, ShowsMicrobatchesBeforeAndAfter) {
  const Finished finished = run_program(
      {"pack", "--lengths", "builtin:200", "--capacity", "65536", "--oversize", "alone"});
  for (const char* row : {"next-fit", "packed", "micro-batches", "max tokens", "max cost",
                          "max/mean", "lower bound", "gap to bound", "status", "\n          0  "}) {
    EXPECT_THAT(finished.out, HasSubstr(row));
  }
}

}  // namespace
}  // namespace isochron

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "isochron/core/json.h"
#include "tests/cli/process.h"
#include "tests/report/example_plans.h"
#include "tests/report/example_run.h"

namespace isochron {
namespace {

using testing::HasSubstr;
using testing::Not;

const StepPlan& plan() {
  static const StepPlan made = example_plan({.ranks = 8, .sequences = 96});
  return made;
}

// One sequence less than it must have.
std::string broken_plan() {
  StepPlan broken = plan();
  broken.microbatches[0][0].sequences.clear();
  return to_json(broken);
}

TEST(SimulateVerb, PrintsTimesAndIdleRanks) {
  const Finished finished = run_program({"simulate", "-"}, to_json(plan()));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("96 sequences, 8 ranks, "));
  EXPECT_THAT(finished.out, HasSubstr("step time"));
  EXPECT_THAT(finished.out, HasSubstr("gap to bound"));
  EXPECT_THAT(finished.out, HasSubstr("\n7     "));
}

TEST(SimulateVerb, ShowsTheWorstOfManyRanks) {
  const Finished finished =
      run_program({"simulate", "-"}, to_json(example_plan({.ranks = 64, .sequences = 500})));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("and 48 more with a bubble of at most"));
}

TEST(SimulateVerb, TakesOtherCosts) {
  const Finished finished = run_program({"simulate", "-", "--cost", "qwen3-8b_a100"},
                                        to_json(example_plan({.ranks = 2, .sequences = 8})));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("cost qwen3-8b_a100"));
  EXPECT_THAT(finished.out, Not(HasSubstr("lower bound")));
}

TEST(SimulateVerb, TakesAModelThatComputesAgain) {
  const std::string plan =
      run_program({"plan", "--lengths", "builtin:16", "--ranks", "2", "--capacity", "16384",
                   "--tensor-parallel", "2", "--pipeline", "4", "--json", "-"})
          .out;
  const auto simulate = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> call = {"simulate", "-"};
    call.insert(call.end(), flags.begin(), flags.end());
    return run_program(call, plan);
  };
  EXPECT_THAT(simulate({"--model", "qwen3-8b", "--hardware", "h100", "--recompute", "full"}).out,
              HasSubstr("cost qwen3-8b_h100_tp2_full"));
  EXPECT_EQ(simulate({"--recompute", "full"}).err,
            "isochron: [simulate] --recompute is given without --model, must be both\n");
  EXPECT_EQ(simulate({"--model", "qwen3-8b", "--hardware", "h100", "--recompute", "most"}).err,
            "isochron: [simulate] --recompute is \"most\", must be one of none, selective, full\n");
}

TEST(SimulateVerb, KnowsTheLayersOfAModel) {
  const std::string plan = run_program({"plan", "--lengths", "builtin:16", "--ranks", "2",
                                        "--capacity", "16384", "--pipeline", "36", "--json", "-"})
                               .out;
  const Finished finished =
      run_program({"simulate", "-", "--model", "qwen3-0.6b", "--hardware", "h100"}, plan);
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_EQ(finished.err,
            "isochron: [simulate] there are 36 stages, must be at most 28, the layers of "
            "qwen3-0.6b\n");
}

TEST(SimulateVerb, WritesATrace) {
  const Finished finished = run_program({"simulate", "-", "--trace", "-"}, to_json(plan()));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_TRUE(parse_json(finished.out, "test").contains("traceEvents"));
}

TEST(SimulateVerb, RefusesAnInvalidPlanAndSeveral) {
  const Finished invalid = run_program({"simulate", "-"}, broken_plan());
  EXPECT_EQ(invalid.exit_code, 1);
  EXPECT_THAT(invalid.out, HasSubstr("sequences stand in groups"));
  const Finished several = run_program({"simulate", "-"}, to_json(plan()) + to_json(plan()));
  EXPECT_EQ(several.exit_code, 2);
  EXPECT_EQ(several.err, "isochron: [simulate] the file holds 2 plans, must be one\n");
  EXPECT_EQ(run_program({"simulate", "-"}, " \n").err,
            "isochron: [simulate] the file is empty, must hold a plan\n");
}

TEST(ReportVerb, PutsASinglePlanBesideItsBaselines) {
  const std::string path = write_test_file("plan.json", to_json(plan()));
  const Finished finished = run_program({"report", path, "-o", "-"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("{\"name\":\"naive\""));
  EXPECT_THAT(finished.out, HasSubstr("{\"name\":\"verl 0.9.1\""));
  EXPECT_THAT(finished.out, HasSubstr("plan.json\""));
}

// What the page has of the plans.
Json data_of(std::string_view html) {
  const auto begin = html.find("id=\"report-data\">") + 17;
  return parse_json(html.substr(begin, html.find("</script>", begin) - begin), "test");
}

TEST(ReportVerb, HasNoBaselineThatBreaksTheQuestion) {
  // Prompts of three answers on two ranks: dealing sequences would split all of them.
  std::string lengths = "length,group\n";
  for (int i = 0; i < 48; ++i) lengths += fmt::format("{},{}\n", 100 + 37 * i % 500, i / 3);
  const auto steps_of = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> call = {"plan",       "--lengths", "-",      "--ranks", "2",
                                     "--capacity", "4096",      "--json", "-"};
    call.insert(call.end(), flags.begin(), flags.end());
    const std::string plan = run_program(call, lengths).out;
    const Json data = data_of(run_program({"report", "-", "-o", "-"}, plan).out);
    std::vector<Json> steps;
    for (const Json& entry : data["entries"]) steps.push_back(entry["steps"][0]);
    return steps;
  };
  for (const char* keep : {"rank", "microbatch"}) {
    const auto steps = steps_of({"--keep-groups", keep});
    ASSERT_EQ(steps.size(), 3u);
    EXPECT_EQ(steps[0]["violation"], "");
    EXPECT_THAT(steps[1]["violation"], HasSubstr("must be on the same ranks"));
    EXPECT_EQ(steps[2]["violation"], "");
  }
  const auto few = steps_of({"--max-sequences", "4"});
  EXPECT_EQ(few[0]["violation"], "");
  EXPECT_THAT(few[1]["violation"], HasSubstr("options.max_sequences is 4"));
  const auto wide = steps_of({"--context", "dynamic", "--min-context-size", "2"});
  EXPECT_THAT(wide[0]["violation"], HasSubstr("options.min_context_size is 2"));
}

TEST(ReportVerb, ComparesPlansWithoutBaselines) {
  const std::string first = write_test_file("first.json", to_json(plan()));
  const Finished finished = run_program({"report", first, "-", "-o", "page.html"}, to_json(plan()));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, "page.html\n");
  const std::string html = read_test_file("page.html");
  EXPECT_THAT(html, HasSubstr("standard input"));
  EXPECT_THAT(html, Not(HasSubstr("{\"name\":\"naive\"")));
}

TEST(ReportVerb, DrawsAnInvalidPlanAndSaysSo) {
  const std::string path = write_test_file("broken.json", broken_plan());
  const Finished finished = run_program({"report", path});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("report.html\n"));
  EXPECT_THAT(finished.out, HasSubstr("broken.json: invalid: "));
  EXPECT_THAT(read_test_file("report.html"), HasSubstr("sequences stand in groups"));
}

TEST(ReportVerb, TakesOnePlanPerLine) {
  const std::string two = to_json(plan()) + "\n" + to_json(plan());
  const Finished finished = run_program({"report", "-", "-o", "-"}, two);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  const Json data = data_of(finished.out);
  ASSERT_EQ(data["entries"].size(), 3u);
  for (const Json& entry : data["entries"]) EXPECT_EQ(entry["steps"].size(), 2u);
}

TEST(ReportVerb, NamesTheStepThatIsInvalid) {
  const std::string path = write_test_file("steps.jsonl", to_json(plan()) + broken_plan());
  const std::string html = write_test_file("steps.html", "");
  const Finished finished = run_program({"report", path, path, "-o", html});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr(path + ", step 2: invalid: "));
}

TEST(ReportVerb, NamesTheFirstInvalidStepsAlone) {
  std::string plans = to_json(plan());
  for (int i = 0; i < 11; ++i) plans += broken_plan();
  const std::string path = write_test_file("many.jsonl", plans);
  const Finished finished = run_program({"report", path, path, "-o", "many.html"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr(", step 9: invalid: "));
  EXPECT_THAT(finished.out, Not(HasSubstr(", step 10: invalid: ")));
  EXPECT_THAT(finished.out, HasSubstr("\nand 14 more invalid steps\n"));
}

TEST(ReportVerb, SaysWhatWasEditedBeforeTheHash) {
  Json document = parse_json(to_json(plan()), "test");
  document["imbalance"] = 1.5;
  const std::string path = write_test_file("edited.json", document.dump());
  const Finished finished = run_program({"report", path, path, "-o", "edited.html"});
  EXPECT_THAT(finished.out, HasSubstr("invalid: imbalance is 1.5, the plan has "));
  EXPECT_THAT(finished.out, HasSubstr("; hash is "));
}

TEST(ReportVerb, DrawsAPlanOfAnotherHashAsInvalid) {
  Json document = parse_json(to_json(plan()), "test");
  document["hash"] = "0000000000000000";
  const std::string path = write_test_file("hash.json", document.dump());
  const std::string html = write_test_file("hash.html", "");
  const Finished finished = run_program({"report", path, path, "-o", html});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("invalid: hash is 0000000000000000, but "));
}

TEST(ReportVerb, NamesTheFileAndTheLineThatIsBroken) {
  const std::string whole = write_test_file("whole.json", to_json(plan()));
  const std::string cut = write_test_file("cut.json", "{\"schema\": \"isochron.plan.v1\", \"ran");
  const std::string place = "line 1 is not valid JSON at byte 36 of the text";
  EXPECT_EQ(run_program({"report", whole, cut}).err,
            "isochron: [plan] " + place + ", in " + cut + "\n");
  EXPECT_EQ(run_program({"check", cut}).err, "isochron: [check] " + place + "\n");
  const std::string other = write_test_file("other.json", "{\"ranks\": 1,\n");
  for (const char* verb : {"check", "simulate"}) {
    EXPECT_THAT(run_program({verb, other}).err, HasSubstr("line 2 is not valid JSON at byte 14"));
  }
}

TEST(ReportVerb, RejectsWhatIsNoPlan) {
  EXPECT_EQ(run_program({"report", "-"}, "{}").exit_code, 2);
  EXPECT_EQ(run_program({"report", "missing.json"}).exit_code, 3);
  EXPECT_EQ(run_program({"report", "-", "-"}, to_json(plan())).err,
            "isochron: [report] standard input is given more than once, must be once\n");
}

// A run folder in the working folder of the test; its path.
std::string write_run(const std::string& name, const ExampleRun& run = {}) {
  const std::filesystem::path folder =
      std::filesystem::path(write_test_file(name + ".txt", "")).parent_path() / name;
  write_example_run(folder, run);
  return folder.string();
}

TEST(ReportVerb, PutsTheReportOfARunIntoItsFolder) {
  const std::string folder = write_run("balanced");
  const Finished finished = run_program({"report", folder});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, folder + "/report.html\n");
  EXPECT_THAT(read_test_file(folder + "/report.html"), HasSubstr("\"name\":\"balanced\""));
}

TEST(ReportVerb, ComparesRuns) {
  const std::string before = write_run("unbalanced", {.is_balanced = false});
  const std::string after = write_run("balanced");
  const Finished finished = run_program({"report", before, after});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, "report.html\n");
  const std::string html = read_test_file("report.html");
  EXPECT_LT(html.find("\"name\":\"unbalanced\""), html.find("\"name\":\"balanced\""));
  EXPECT_THAT(run_program({"report", before, after, "-o", "-"}).out, testing::Eq(html));
}

TEST(ReportVerb, SaysWhatARunLacks) {
  const std::string folder = write_run("killed");
  std::ofstream(folder + "/metrics.jsonl", std::ios::app) << "{\"step\"";
  const Finished finished = run_program({"report", folder});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("killed: metrics.jsonl: the last line is incomplete"));
}

TEST(ReportVerb, RejectsWhatIsNoRun) {
  const std::string run = write_run("run");
  const std::string path = write_test_file("plan.json", to_json(plan()));
  const Finished mixed = run_program({"report", run, path});
  EXPECT_EQ(mixed.exit_code, 2);
  EXPECT_EQ(mixed.err, "isochron: [report] \"" + run + "\" is a folder and \"" + path +
                           "\" is not, must be run folders or plans alone\n");
  const std::string empty = run + "/nothing";
  std::filesystem::create_directories(empty);
  EXPECT_EQ(run_program({"report", empty}).err,
            "isochron: [report] the folder \"" + empty +
                "\" is no run: it must hold config.yaml, metrics.jsonl, plans or trace\n");
}

}  // namespace
}  // namespace isochron

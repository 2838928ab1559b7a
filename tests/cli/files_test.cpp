// Files that a call names: nothing that it reads is lost, and nothing is left of a call that
// failed.

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cli/calls.h"

namespace isochron {
namespace {

namespace fs = std::filesystem;

constexpr const char* lengths = "100\n200\n300\n400\n";

const Arguments plan_call = {"plan", "--lengths", "l.txt", "--ranks", "2", "--capacity", "1000"};
const Arguments batch_call = joined(plan_call, {"--batch", "2"});

fs::path work_folder() { return fs::path(write_test_file("l.txt", lengths)).parent_path(); }

TEST(CallFiles, AnOutputIsNoInput) {
  const fs::path folder = work_folder();
  for (const Arguments& call :
       {plan_call, Arguments{"balance", "--lengths", "l.txt", "--ranks", "2"},
        Arguments{"pack", "--lengths", "l.txt", "--capacity", "1000"}}) {
    EXPECT_EQ(error_line(joined(call, {"--json", "l.txt"}), 2),
              "isochron: [" + call[0] +
                  "] --json is \"l.txt\", which is also --lengths, must be another file");
  }
  EXPECT_EQ(error_line(joined(batch_call, {"--summary", "l.txt"}), 2),
            "isochron: [plan] --summary is \"l.txt\", which is also --lengths, must be another "
            "file");
  fs::create_symlink("l.txt", folder / "soft.txt");
  fs::create_hard_link(folder / "l.txt", folder / "hard.txt");
  for (const std::string& path : {std::string("./l.txt"), std::string("soft.txt"),
                                  std::string("hard.txt"), (folder / "l.txt").string()}) {
    EXPECT_EQ(error_line(joined(plan_call, {"--json", path}), 2),
              "isochron: [plan] --json is \"" + path +
                  "\", which is also --lengths, must be another file");
  }
  EXPECT_EQ(read_test_file("l.txt"), lengths);

  write_test_file("speed.txt", "1\n1\n");
  write_test_file("cost.json", R"({"linear_ns": 1})");
  EXPECT_EQ(error_line(joined(plan_call, {"--rank-speed", "speed.txt", "--json", "speed.txt"}), 2),
            "isochron: [plan] --json is \"speed.txt\", which is also --rank-speed, must be another "
            "file");
  EXPECT_EQ(error_line(joined(plan_call, {"--cost", "cost.json", "--json", "./cost.json"}), 2),
            "isochron: [plan] --json is \"./cost.json\", which is also --cost, must be another "
            "file");
}

TEST(CallFiles, APlanOutlivesWhatIsMadeOfIt) {
  work_folder();
  EXPECT_EQ(run_program(joined(plan_call, {"--json", "p.json"})).exit_code, 0);
  const std::string plan = read_test_file("p.json");
  EXPECT_EQ(error_line({"simulate", "p.json", "--trace", "p.json"}, 2),
            "isochron: [simulate] --trace is \"p.json\", which is also the plan, must be another "
            "file");
  EXPECT_EQ(error_line({"report", "p.json", "-o", "p.json"}, 2),
            "isochron: [report] --output is \"p.json\", which is also an input, must be another "
            "file");
  EXPECT_EQ(read_test_file("p.json"), plan);
}

TEST(CallFiles, ARunFolderTakesAPageAndNothingElse) {
  const fs::path run = work_folder() / "run";
  fs::create_directories(run);
  write_test_file("run/metrics.jsonl", "{\"step\":1}\n");
  EXPECT_EQ(error_line({"report", "run", "-o", "run/metrics.jsonl"}, 2),
            "isochron: [report] --output is \"run/metrics.jsonl\", which is also an input, must be "
            "another file");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(run_program({"report", "run"}).exit_code, 0);
  EXPECT_EQ(read_test_file("run/metrics.jsonl"), "{\"step\":1}\n");
}

TEST(CallFiles, TwoOutputsAreTwoFiles) {
  const fs::path folder = work_folder();
  for (const char* other : {"both.json", "./both.json"}) {
    EXPECT_EQ(error_line(joined(batch_call, {"--json", "both.json", "--summary", other}), 2),
              std::string("isochron: [plan] --json and --summary are both \"") + other +
                  "\", must be two places");
  }
  EXPECT_FALSE(fs::exists(folder / "both.json"));
  EXPECT_EQ(
      run_program(joined(batch_call, {"--json", "/dev/null", "--summary", "/dev/null"})).exit_code,
      0);
}

TEST(CallFiles, NothingIsLeftOfACallThatCannotWrite) {
  const fs::path folder = work_folder();
  EXPECT_EQ(error_line(joined(batch_call, {"--json", "ok.jsonl", "--summary", "missing/x"}), 3),
            "isochron: [file] cannot write \"missing/x\": No such file or directory");
  EXPECT_EQ(error_line(joined(batch_call, {"--json", "ok.jsonl", "--summary", "."}), 3),
            "isochron: [file] cannot write \".\": Is a directory");
  // Found only when the work is done.
  EXPECT_EQ(error_line(joined(batch_call, {"--json", "ok.jsonl", "--summary", "/dev/full"}), 3),
            "isochron: [file] cannot write \"/dev/full\": No space left on device");
  for (const auto& entry : fs::directory_iterator(folder)) {
    EXPECT_EQ(entry.path().filename().string().find("ok.jsonl"), std::string::npos) << entry.path();
  }
}

TEST(CallFiles, StandardInputIsReadOnce) {
  EXPECT_EQ(
      error_line(
          {"plan", "--lengths", "-", "--rank-speed", "-", "--ranks", "2", "--capacity", "1000"}, 2),
      "isochron: [plan] standard input is given more than once, must be once");
}

}  // namespace
}  // namespace isochron

#include "apps/isochron/run_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

namespace isochron {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

RunMetrics metrics_of(const std::string& text) {
  std::istringstream stream(text);
  return read_metrics(stream, "metrics.jsonl");
}

TEST(ReadMetrics, MakesACurveOfEveryName) {
  const RunMetrics metrics = metrics_of(
      "{\"step\": 1, \"data\": {\"train/loss\": 2.5, \"train/lr\": 1e-5}}\n"
      "\r\n"
      "{\"step\": 2, \"data\": {\"train/loss\": 2}}\r\n"
      "{\"step\": 2, \"data\": {\"val/loss\": 3}}");
  ASSERT_EQ(metrics.curves.size(), 3u);
  EXPECT_EQ(metrics.curves[0].name, "train/loss");
  EXPECT_THAT(metrics.curves[0].steps, ElementsAre(1, 2));
  EXPECT_THAT(metrics.curves[0].values, ElementsAre(2.5, 2));
  EXPECT_THAT(metrics.curves[2].steps, ElementsAre(2));
  EXPECT_THAT(metrics.notes, IsEmpty());
}

TEST(ReadMetrics, SaysThatTheLastLineIsIncomplete) {
  const std::string whole = "{\"step\": 1, \"data\": {\"a\": 1}}\n";
  const std::string next = "{\"step\": 2, \"data\": {\"a\": 2}}";
  for (std::size_t size = 1; size < next.size(); ++size) {
    const RunMetrics metrics = metrics_of(whole + next.substr(0, size));
    EXPECT_THAT(metrics.curves[0].steps, ElementsAre(1));
    EXPECT_THAT(metrics.notes,
                ElementsAre("metrics.jsonl: the last line is incomplete; the run is still writing "
                            "it, or was killed."));
  }
}

TEST(ReadMetrics, CountsDamagedLinesAndNamesTheFirst) {
  const RunMetrics metrics = metrics_of(
      "{\"step\": 1, \"data\": {\"a\": 1}}\n"
      "{\"step\": -1, \"data\": {\"a\": 1}}\n"
      "{\"step\": 2, \"data\": {\"a\": \"x\", \"b\": 1}}\n"
      "[]\n"
      "{\"step\": 3}\n"
      "\x01\x02\xff\n"
      "{\"step\": 4, \"data\": {\"a\": 4}}\n");
  ASSERT_EQ(metrics.curves.size(), 1u);
  EXPECT_THAT(metrics.curves[0].steps, ElementsAre(1, 4));
  EXPECT_THAT(metrics.notes,
              ElementsAre("metrics.jsonl: 5 damaged lines are left out, the first is line 2: "
                          "[metrics] step is -1, must be an integer from 0 to 9007199254740992"));
}

TEST(ReadMetrics, KeepsNullAsANumberThatIsNone) {
  const RunMetrics metrics = metrics_of("{\"step\": 1, \"data\": {\"train/loss\": null}}\n");
  EXPECT_TRUE(std::isnan(metrics.curves.at(0).values.at(0)));
  EXPECT_THAT(metrics.notes, IsEmpty());
}

TEST(ReadMetrics, ForgetsWhatAResumedRunDoesAgain) {
  const RunMetrics metrics = metrics_of(
      "{\"step\": 1, \"data\": {\"a\": 1}}\n{\"step\": 2, \"data\": {\"a\": 2, \"b\": 2}}\n"
      "{\"step\": 3, \"data\": {\"a\": 3}}\n{\"step\": 2, \"data\": {\"a\": 20}}\n");
  ASSERT_EQ(metrics.curves.size(), 1u);  // nothing is left of b
  EXPECT_THAT(metrics.curves[0].steps, ElementsAre(1, 2));
  EXPECT_THAT(metrics.curves[0].values, ElementsAre(1, 20));
  EXPECT_THAT(metrics.notes,
              ElementsAre("metrics.jsonl: the run was resumed once from an earlier step, last from "
                          "step 2; what it had written from there on is replaced."));
}

TEST(ReadMetrics, TakesAnEmptyFile) {
  EXPECT_THAT(metrics_of("").curves, IsEmpty());
  EXPECT_THAT(metrics_of("\n\n").notes, IsEmpty());
}

TEST(ReadMetrics, StopsAtFourThousandNames) {
  std::string text;
  for (int i = 0; i < 5000; ++i) {
    text += "{\"step\": 1, \"data\": {\"name" + std::to_string(i) + "\": 1}}\n";
  }
  const RunMetrics metrics = metrics_of(text);
  EXPECT_EQ(metrics.curves.size(), 4096u);
  EXPECT_THAT(metrics.notes, ElementsAre("metrics.jsonl: there are more than 4096 names; the "
                                         "others are left out."));
}

}  // namespace
}  // namespace isochron

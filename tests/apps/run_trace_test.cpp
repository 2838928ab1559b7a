#include "apps/isochron/run_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace isochron {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string event(const std::string& name, double ts, std::int64_t step, std::int64_t slot = 0) {
  std::ostringstream text;
  text << "{\"name\": \"" << name << "\", \"ph\": \"X\", \"ts\": " << ts
       << ", \"dur\": 1.5, \"pid\": 3, \"tid\": 0, \"args\": {\"step\": " << step
       << ", \"slot\": " << slot << "}},\n";
  return text.str();
}

struct Read {
  RankTrace trace;
  std::vector<std::string> names;
};

Read read(const std::string& text) {
  std::istringstream stream(text);
  Read result;
  result.trace = read_trace(
      stream, "trace/rank_3.json", 3, [](std::int64_t step) { return step != 99; }, result.names);
  return result;
}

TEST(ReadTrace, TakesCompleteEventsOfSteps) {
  const auto [trace, names] = read(
      "[\n" + event("forward", 10, 1) + event("backward", 11.5, 1) + event("reduce", 13, 1, -1) +
      event("forward", 20, 2) + event("forward", 30, 99) +
      "{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 3, \"args\": {}},\n"
      "{\"name\": \"save\", \"ph\": \"X\", \"ts\": 1, \"dur\": 1, \"pid\": 3, \"tid\": 0}\n]\n");
  EXPECT_THAT(trace.notes, IsEmpty());
  EXPECT_THAT(names, ElementsAre("forward", "backward", "reduce"));
  ASSERT_EQ(trace.scopes_of_step.size(), 2u);
  const auto& scopes = trace.scopes_of_step.at(1);
  ASSERT_EQ(scopes.size(), 3u);
  EXPECT_EQ(scopes[1].rank, 3);
  EXPECT_EQ(scopes[1].name, 1);
  EXPECT_EQ(scopes[1].begin_ns, 11'500);
  EXPECT_EQ(scopes[1].end_ns, 13'000);
  EXPECT_EQ(scopes[2].slot, -1);
}

TEST(ReadTrace, TakesATraceThatWasCutAnywhere) {
  const std::string text = "[\n" + event("forward", 10, 1) + event("backward", 11.5, 1);
  const std::size_t whole = text.rfind("},\n") + 1;  // of the last event
  for (std::size_t size = 0; size < text.size(); ++size) {
    const RankTrace trace = read(text.substr(0, size)).trace;
    const std::size_t last_line = text.rfind('\n', size == 0 ? 0 : size - 1) + 1;
    const bool is_cut = size > last_line && size < text.find("},\n", last_line) + 1 && size > 1;
    EXPECT_EQ(trace.notes.size(), is_cut ? 1u : 0u) << size;
    EXPECT_EQ(trace.scopes_of_step.contains(1), size >= text.find("},\n") + 1) << size;
    if (size >= whole) {
      EXPECT_EQ(trace.scopes_of_step.at(1).size(), 2u) << size;
    }
  }
}

TEST(ReadTrace, CountsWhatItCannotUse) {
  const RankTrace trace =
      read("[\n" + event("forward", 10, 1) +
           "{\"name\": \"forward\", \"ph\": \"X\", \"ts\": 1e300, \"dur\": 1, \"args\": {\"step\": "
           "1}},\n"
           "{\"name\": \"forward\", \"ph\": \"X\", \"ts\": 1, \"dur\": -1, \"args\": {\"step\": "
           "1}},\n"
           "{\"name\": 5, \"ph\": \"X\", \"ts\": 1, \"dur\": 1, \"args\": {\"step\": 1}},\n"
           "{\"name\": \"x\", \"ph\": \"X\", \"ts\": 1, \"dur\": 1, \"args\": {\"step\": 1.5}},\n"
           "not an event\n" +
           event("backward", 12, 1))
          .trace;
  EXPECT_EQ(trace.scopes_of_step.at(1).size(), 2u);
  ASSERT_EQ(trace.notes.size(), 1u);
  EXPECT_THAT(trace.notes[0], HasSubstr("trace/rank_3.json: 5 damaged lines are left out, the "
                                        "first is line 3: [trace] ts is 1e+300 us"));
}

TEST(ReadTrace, ReplacesStepsThatAResumedRunDoesAgain) {
  const RankTrace back = read("[\n" + event("forward", 10, 1) + event("forward", 20, 2) +
                              event("forward", 30, 3) + event("forward", 90, 2))
                             .trace;
  EXPECT_EQ(back.scopes_of_step.size(), 2u);
  EXPECT_EQ(back.scopes_of_step.at(2).at(0).begin_ns, 90'000);
  const RankTrace again = read("[\n" + event("forward", 10, 1) + event("forward", 20, 2) + "[\n" +
                               event("forward", 90, 2) + event("backward", 95, 2))
                              .trace;
  ASSERT_EQ(again.scopes_of_step.at(2).size(), 2u);
  EXPECT_EQ(again.scopes_of_step.at(2).at(0).begin_ns, 90'000);
  EXPECT_EQ(again.scopes_of_step.at(1).size(), 1u);
}

TEST(ReadTrace, TakesAnEmptyTrace) {
  for (const char* text : {"", "[", "[\n", "[]", "[\n]\n"}) {
    const RankTrace trace = read(text).trace;
    EXPECT_THAT(trace.scopes_of_step, IsEmpty());
    EXPECT_THAT(trace.notes, IsEmpty());
  }
}

}  // namespace
}  // namespace isochron

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "isochron/core/batch.h"
#include "isochron/core/json.h"
#include "tests/support/mutate.h"

namespace isochron {
namespace {

// What every accepted batch promises, however odd its text.
void expect_sound(const Batch& batch) {
  ASSERT_FALSE(batch.lengths.empty());
  for (const Tokens length : batch.lengths) {
    ASSERT_GE(length, 1);
    ASSERT_LE(length, max_length);
  }
  ASSERT_TRUE(batch.extra_cost_ns.empty() || batch.extra_cost_ns.size() == batch.lengths.size());
  for (const Nanoseconds extra : batch.extra_cost_ns) ASSERT_GE(extra, 0);
  ASSERT_TRUE(batch.groups.empty() || batch.groups.size() == batch.lengths.size());
  for (const PromptGroupId group : batch.groups) {
    ASSERT_GE(group.value(), 0);
    ASSERT_LT(group.index(), batch.group_names.size());
  }
}

// Errors are one printable line, since they go to a terminal as they are.
void expect_one_line(const std::string& message) {
  for (const char c : message) ASSERT_TRUE(c >= ' ' && c <= '~') << message;
}

void feed_batches(const std::string& text) {
  for (std::int64_t seed = 0; seed < fuzz_iterations(); ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    const std::string broken = mutated(text, random);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << broken);
    try {
      expect_sound(parse_batch(broken));
    } catch (const std::invalid_argument& error) {
      expect_one_line(error.what());
    }
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Mutation, OfAListOfLengthsIsReadOrRejected) {
  feed_batches("# tokens\n12\n7\r\n\n 4096\n1\n");
}

TEST(Mutation, OfAnArrayOfLengthsIsReadOrRejected) {
  feed_batches("# tokens\n[12, 7,\n 4096,1]\n");
}

TEST(Mutation, OfACsvIsReadOrRejected) {
  feed_batches("group,length,x,extra_cost_ns\n\"a, \"\"b\"\"\",12,,5\n\xc3\xa9,7,y,0\n");
}

TEST(Mutation, OfJsonIsReadOrRejected) {
  const std::string text =
      R"({"a": [1, -2.5e3, true, null, {"b": "\u00e9\n\"", "c": []}], "d": {"e": {}}, "f": ""})";
  for (std::int64_t seed = 0; seed < fuzz_iterations(); ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    const std::string broken = mutated(text, random);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << broken);
    try {
      const Json json = parse_json(broken, "it");
      ASSERT_EQ(parse_json(json.dump(), "it"), json);
    } catch (const std::invalid_argument& error) {
      expect_one_line(error.what());
    }
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace isochron

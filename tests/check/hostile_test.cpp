#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "isochron/check/check.h"
#include "tests/check/documents.h"
#include "tests/support/mutate.h"

namespace isochron {
namespace {

// A verdict or a rejection; anything else ends the test program. True if the result is valid.
bool survives(const std::string& text) {
  try {
    return !find_violation(text).has_value();
  } catch (const std::invalid_argument&) {
    return false;
  }
}

std::vector<Json> documents() {
  return {plain_balance(), rich_balance(),     infeasible_balance(), plain_packing(),
          rich_packing(),  dropping_packing(), infeasible_packing()};
}

TEST(HostileResult, WithBrokenBytesIsJudgedOrRejected) {
  for (const Json& document : documents()) {
    const std::string text = document.dump();
    for (std::int64_t seed = 0; seed < fuzz_iterations(); ++seed) {
      SCOPED_TRACE(testing::Message() << "seed " << seed);
      Random random(static_cast<std::uint64_t>(seed));
      (void)survives(mutated(text, random));
    }
  }
}

TEST(HostileResult, CutAnywhereIsRejected) {
  for (const Json& document : documents()) {
    const std::string text = document.dump();
    for (std::size_t size = 0; size < text.size(); ++size) {
      EXPECT_FALSE(survives(text.substr(0, size))) << size;
    }
  }
}

// Puts each of `values` in the place of every value of a document, at every depth.
void replace_everywhere(Json& document, Json& place, const std::vector<Json>& values) {
  const Json kept = place;
  for (const Json& value : values) {
    place = value;
    (void)survives(document.dump());
  }
  place = kept;
  if (place.is_structured()) {
    for (Json& inner : place) replace_everywhere(document, inner, values);
  }
}

TEST(HostileResult, WithOddValuesAnywhereIsJudgedOrRejected) {
  const std::vector<Json> values = {nullptr,
                                    true,
                                    -1,
                                    0,
                                    1,
                                    INT32_MAX,
                                    INT64_MAX,
                                    INT64_MIN,
                                    UINT64_MAX,
                                    0.5,
                                    1e308,
                                    "",
                                    "optimal",
                                    "infeasible",
                                    "unknown",
                                    "none",
                                    "rank",
                                    "drop",
                                    "alone",
                                    "small_ends",
                                    Json::array(),
                                    Json::object(),
                                    Json::parse("[[]]"),
                                    Json::parse("[[[]]]"),
                                    Json::parse("[-1, 7]"),
                                    Json::parse(R"({"schema": {}})")};
  for (Json& document : documents()) replace_everywhere(document, document, values);
}

TEST(HostileResult, NestedDeepIsRejected) {
  EXPECT_FALSE(survives(std::string(1'000'000, '[')));
  std::string text = plain_balance().dump();
  text.insert(text.size() - 1, ",\"x\":" + std::string(100'000, '['));
  EXPECT_FALSE(survives(text));
}

// Ranks times mini-batches is far more than the sequences; the checker must not visit all pairs.
TEST(HostileResult, WithManyRanksAndMinibatchesTakesLinearTime) {
  constexpr std::size_t count = 200'000;
  Json document = plain_balance();
  document["ranks"] = count;
  document["lengths"] = std::vector<int>(count, 1);
  document["sequences_of_rank"] = std::vector<std::vector<int>>(count);
  for (std::size_t i = 0; i < count; ++i) document["sequences_of_rank"][i].push_back(i);
  document["options"]["equal_count"] = true;
  document["options"]["minibatch"] = 1;
  document["options"]["capacity"] = 1;
  document["max_cost"] = count;
  document["lower_bound"] = count;
  document["mean_cost"] = 1.0;
  EXPECT_TRUE(survives(document.dump()));
}

}  // namespace
}  // namespace isochron

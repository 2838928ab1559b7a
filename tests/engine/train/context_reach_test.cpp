#include "isochron/engine/train/context_reach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/temporary_folder.h"
#include "tests/support/message_of.h"

namespace isochron {
namespace {

using testing::EndsWith;

Recipe with_context(std::int32_t size) {
  Recipe recipe;
  recipe.engine.context_parallel_size = size;
  return recipe;
}

Recipe with_dynamic_context() {
  Recipe recipe;
  recipe.engine.dynamic_context_parallel = true;
  return recipe;
}

TEST(ContextReach, KnowsTheLongestSequenceThatSomeGroupHolds) {
  EXPECT_EQ(context_reach({}, 8, 100), (ContextReach{1, 100}));
  EXPECT_EQ(context_reach(with_context(4), 8, 100), (ContextReach{4, 400}));
  EXPECT_EQ(context_reach(with_dynamic_context(), 8, 100), (ContextReach{8, 800}));
  EXPECT_EQ(context_reach(with_dynamic_context(), 7, 100), (ContextReach{7, 700}));
  EXPECT_EQ(context_reach(with_dynamic_context(), 6, 101), (ContextReach{6, 600}))
      << "two equal chunks on each rank";
  EXPECT_EQ(context_reach(with_dynamic_context(), 6, 1), (ContextReach{6, 1}));
}

TEST(ContextReach, KnowsTheGroupsThatTheCostsAdmit) {
  const TemporaryFolder files;
  Recipe recipe = with_dynamic_context();
  recipe.engine.cost = files.write("cost.json", R"({"linear_ns": 1, "context":
      {"kind": "all_gather_kv", "bytes_per_token": 1, "links": [{"max_ranks": 4, "gb_per_s": 1}]}})");
  EXPECT_EQ(context_reach(recipe, 8, 100), (ContextReach{4, 400}));
  recipe.engine.cost = files.write("alone.json", R"({"linear_ns": 1, "context": []})");
  EXPECT_EQ(context_reach(recipe, 8, 100), (ContextReach{1, 100}));
  recipe.engine.dynamic_context_parallel = false;
  recipe.engine.context_parallel_size = 2;
  EXPECT_THAT(message_of([&] { (void)context_reach(recipe, 8, 100); }),
              EndsWith("alone.json, must have a link for groups of 2 ranks"));
  EXPECT_EQ(message_of([&] { (void)context_reach(recipe, 7, 100); }),
            "[recipe] engine.context_parallel_size is 2, must divide the 7 ranks");
}

TEST(ContextReach, RefusesToExchangeHeadsThatTheModelDoesNotHave) {
  const TemporaryFolder files;
  const ModelShape model = model_preset("qwen3-8b");  // 8 heads of keys and values
  Recipe recipe = with_dynamic_context();
  const auto message = [&](const std::string& divides) {
    recipe.engine.cost = files.write(
        "cost.json", R"({"linear_ns": 1, "context": {"kind": "all_to_all", "bytes_per_token": 1, )"
                     R"("links": [{"max_ranks": 8, "gb_per_s": 1}], "divides": )" +
                         divides + "}}");
    return message_of([&] { require_executable_exchanges(recipe, model); });
  };
  EXPECT_EQ(message("8"), "accepted");
  EXPECT_EQ(message("4"), "accepted");
  EXPECT_THAT(message("3"), EndsWith("cost.json, whose all_to_all divides 3, must divide the 8 "
                                     "heads of keys and values of the model"));
  EXPECT_THAT(message("0"), EndsWith("divides 0, must divide the 8 heads of keys and values of the "
                                     "model"));
  recipe.engine.dynamic_context_parallel = false;
  EXPECT_EQ(message("0"), "accepted") << "nobody exchanges anything";
}

}  // namespace
}  // namespace isochron

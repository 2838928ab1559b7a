#include "isochron/check/check.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/check/documents.h"
#include "tests/support/message_of.h"

namespace isochron {
namespace {

// One way to spoil a valid document, and what the checker says about it.
struct Spoiled {
  std::string name;
  Json (*document)();
  std::function<void(Json&)> spoil;
  std::string words;
};

void expect_violations(const std::vector<Spoiled>& cases) {
  for (const Spoiled& each : cases) {
    SCOPED_TRACE(each.name);
    Json document = each.document();
    each.spoil(document);
    EXPECT_EQ(find_violation(document.dump()).value_or("valid"), each.words);
  }
}

void expect_rejections(const std::vector<Spoiled>& cases) {
  for (const Spoiled& each : cases) {
    SCOPED_TRACE(each.name);
    Json document = each.document();
    each.spoil(document);
    EXPECT_EQ(message_of([&] { (void)find_violation(document.dump()); }), "[check] " + each.words);
  }
}

// A document that a few changes turn into another valid one.
void expect_valid(const Json& document) {
  EXPECT_EQ(find_violation(document.dump()).value_or("valid"), "valid");
}

TEST(Check, AcceptsValidResults) {
  for (const auto document : {plain_balance, rich_balance, infeasible_balance, plain_packing,
                              rich_packing, dropping_packing, infeasible_packing}) {
    expect_valid(document());
  }
}

TEST(CheckBalance, NamesTheRuleThatIsBroken) {
  expect_violations({
      {"an answer with a reason", plain_balance, [](Json& j) { j["reason"] = "because"; },
       "status is optimal, so reason must be empty"},
      {"no answer and no reason", infeasible_balance, [](Json& j) { j["reason"] = ""; },
       "status is infeasible, so reason must not be empty"},
      {"infeasible without a condition", infeasible_balance,
       [](Json& j) { j["options"]["capacity"] = 0; },
       "status is infeasible, but without a capacity there always is an assignment"},
      {"an assignment without an answer", infeasible_balance,
       [](Json& j) { j["sequences_of_rank"] = rich_balance()["sequences_of_rank"]; },
       "status is infeasible, so sequences_of_rank must be empty"},
      {"a cost without an answer", infeasible_balance, [](Json& j) { j["max_cost"] = 3; },
       "status is infeasible, so max_cost and mean_cost are 0, not 3 and 0"},
      {"a rank too few", plain_balance, [](Json& j) { j["ranks"] = 3; },
       "sequences_of_rank has 2 ranks, must have 3"},
      {"an id too large", plain_balance, [](Json& j) { j["sequences_of_rank"][1][2] = 6; },
       "sequences_of_rank[1] names sequence 6, must be from 0 to 5"},
      {"a negative id", plain_balance, [](Json& j) { j["sequences_of_rank"][0][0] = -1; },
       "sequences_of_rank[0] names sequence -1, must be from 0 to 5"},
      {"an id twice", plain_balance, [](Json& j) { j["sequences_of_rank"][1].push_back(0); },
       "sequence 0 stands in sequences_of_rank[0] and in sequences_of_rank[1], must stand in one "
       "place"},
      {"an id missing", plain_balance, [](Json& j) { j["sequences_of_rank"][1].erase(1); },
       "sequence 4 stands nowhere"},
      {"a group on two ranks", rich_balance,
       [](Json& j) { j["sequences_of_rank"] = Json::parse("[[0, 1, 4, 5], [2, 3, 6, 7]]"); },
       "group \"a\" lies on ranks 0 and 1, must lie on one"},
      {"mini-batches out of order", rich_balance,
       [](Json& j) { j["sequences_of_rank"][0] = Json::parse("[4, 5, 0, 2]"); },
       "rank 0 runs mini-batch 0 after mini-batch 1"},
      {"ids out of order", plain_balance,
       [](Json& j) { j["sequences_of_rank"][1] = Json::parse("[3, 5, 4]"); },
       "rank 1 has sequence 5 at place 1, order index puts 4 there"},
      {"large at the ends", rich_balance,
       [](Json& j) { j["sequences_of_rank"][1] = Json::parse("[1, 3, 7, 6]"); },
       "rank 1 in mini-batch 1 has sequence 7 at place 0, order small_ends puts 6 there"},
      {"unequal counts", plain_balance,
       [](Json& j) {
         j["options"]["equal_count"] = true;
         j["sequences_of_rank"] = Json::parse("[[0, 1], [2, 3, 4, 5]]");
       },
       "ranks hold 2 to 4 sequences of mini-batch 0, must differ by at most 1"},
      {"unequal counts of groups", rich_balance,
       [](Json& j) {
         j["options"]["capacity"] = 0;
         j["sequences_of_rank"] = Json::parse("[[0, 2, 4, 6, 7, 5], [1, 3]]");
       },
       "ranks hold 0 to 2 groups of mini-batch 1, must differ by at most 1"},
      {"over the capacity", rich_balance, [](Json& j) { j["options"]["capacity"] = 29; },
       "rank 1 in mini-batch 0 holds 30 tokens, the capacity is 29"},
      {"over the capacity of a whole batch", plain_balance,
       [](Json& j) { j["options"]["capacity"] = 11; },
       "rank 0 holds 12 tokens, the capacity is 11"},
      {"another cost", rich_balance, [](Json& j) { j["max_cost"] = 88; },
       "max_cost is 88, the assignment has 89"},
      {"the extra cost left out", rich_balance, [](Json& j) { j.erase("extra_cost_ns"); },
       "max_cost is 89, the assignment has 88"},
      {"another mean", plain_balance, [](Json& j) { j["mean_cost"] = 12.000001; },
       "mean_cost is 12.000001, the total over the ranks is 12"},
      {"a bound above the cost", plain_balance, [](Json& j) { j["lower_bound"] = 13; },
       "lower_bound is 13, above max_cost 12"},
      {"a bound below the average", plain_balance, [](Json& j) { j["lower_bound"] = 11; },
       "lower_bound is 11, below 12 from average and largest sequence"},
      {"a bound below the largest group", rich_balance, [](Json& j) { j["lower_bound"] = 80; },
       "lower_bound is 80, below 89 from average and largest group"},
      {"feasible at the bound", plain_balance, [](Json& j) { j["status"] = "feasible"; },
       "status is feasible, but max_cost is 12 and lower_bound is 12"},
      {"optimal above the bound", plain_balance,
       [](Json& j) {
         j["sequences_of_rank"] = Json::parse("[[0, 1, 3], [2, 4, 5]]");
         j["max_cost"] = 14;
       },
       "status is optimal, but max_cost is 14 and lower_bound is 12"},
  });
}

TEST(CheckBalance, KnowsTheSmallEndsOrder) {
  Json document = plain_balance();  // costs 5 3 4 | 2 6 4
  document["options"]["order"] = "small_ends";
  document["sequences_of_rank"] = Json::parse("[[1, 0, 2], [3, 4, 5]]");
  expect_valid(document);
}

TEST(CheckBalance, AllowsEmptyRanks) {
  Json document = plain_balance();
  document["ranks"] = 4;
  document["lengths"] = Json::parse("[3, 3]");
  document["sequences_of_rank"] = Json::parse("[[], [0], [], [1]]");
  document["max_cost"] = 3;
  document["lower_bound"] = 3;
  document["mean_cost"] = 1.5;
  document["options"]["equal_count"] = true;
  expect_valid(document);
}

TEST(CheckPack, NamesTheRuleThatIsBroken) {
  expect_violations({
      {"an answer with a reason", plain_packing, [](Json& j) { j["reason"] = "because"; },
       "status is feasible, so reason must be empty"},
      {"no answer and no reason", infeasible_packing, [](Json& j) { j["reason"] = ""; },
       "status is infeasible, so reason must not be empty"},
      {"infeasible with an answer in sight", infeasible_packing,
       [](Json& j) { j["options"]["capacity"] = 6; },
       "status is infeasible, but every sequence fits a micro-batch of its own"},
      {"micro-batches without an answer", infeasible_packing,
       [](Json& j) { j["microbatches"] = plain_packing()["microbatches"]; },
       "status is infeasible, so microbatches, oversized and dropped must be empty"},
      {"a count without an answer", infeasible_packing, [](Json& j) { j["count"] = 3; },
       "status is infeasible, so count, max_tokens and max_cost are 0, not 3, 0 and 0"},
      {"an id too large", plain_packing, [](Json& j) { j["microbatches"][2][1] = 6; },
       "microbatches[2] names sequence 6, must be from 0 to 5"},
      {"an id packed and dropped", dropping_packing, [](Json& j) { j["dropped"].push_back(0); },
       "sequence 0 stands in microbatches[0] and in dropped, must stand in one place"},
      {"an id missing", plain_packing, [](Json& j) { j["microbatches"][2].erase(1); },
       "sequence 5 stands nowhere"},
      {"another count", plain_packing, [](Json& j) { j["count"] = 4; },
       "count is 4, but microbatches has 3"},
      {"not the count", plain_packing, [](Json& j) { j["options"]["count"] = 4; },
       "count is 3, must be 4"},
      {"below the minimum", plain_packing, [](Json& j) { j["options"]["min_count"] = 4; },
       "count is 3, must be at least 4"},
      {"not a multiple", plain_packing, [](Json& j) { j["options"]["multiple"] = 2; },
       "count is 3, must be a multiple of 2"},
      {"dropped without leave", dropping_packing, [](Json& j) { j["options"]["short"] = "empty"; },
       "dropped has 2 sequences, but options.short is empty"},
      {"dropped in another order", dropping_packing,
       [](Json& j) { j["dropped"] = Json::parse("[4, 2]"); }, "dropped is not ascending"},
      {"everything dropped", dropping_packing,
       [](Json& j) {
         j["microbatches"] = Json::parse("[[], []]");
         j["dropped"] = Json::parse("[0, 1, 2, 3, 4]");
       },
       "dropped names every sequence"},
      {"dropped from the middle", dropping_packing,
       [](Json& j) {
         j["microbatches"] = Json::parse("[[0, 3], [2, 4]]");
         j["dropped"] = Json::parse("[1]");
       },
       "dropped is not a suffix: it begins with group \"b\", but microbatches[1] has group \"c\""},
      {"half a group dropped", dropping_packing,
       [](Json& j) {
         j["microbatches"] = Json::parse("[[0, 3], [1, 2]]");
         j["dropped"] = Json::parse("[4]");
       },
       "dropped is not a suffix: it begins with group \"c\", but microbatches[1] has sequence 2"},
      {"an empty one in the middle", rich_packing,
       [](Json& j) { j["microbatches"] = Json::parse("[[5], [], [1, 4, 6], [0, 2, 3]]"); },
       "microbatches[1] is empty, but microbatches[2] is not"},
      {"an empty one without leave", rich_packing, [](Json& j) { j["options"]["short"] = "error"; },
       "1 micro-batches are empty, but options.short is error"},
      {"an empty one without need", plain_packing,
       [](Json& j) {
         j["microbatches"].push_back(Json::array());
         j["count"] = 4;
       },
       "1 of 4 micro-batches are empty, with 6 sequences it must be 0"},
      {"a group in two micro-batches", rich_packing,
       [](Json& j) { j["microbatches"] = Json::parse("[[5], [1, 4, 6], [0, 2], [3]]"); },
       "group \"a\" lies in micro-batches 2 and 3, must lie in one"},
      {"over the capacity", plain_packing, [](Json& j) { j["options"]["capacity"] = 9; },
       "micro-batch 1 holds 10 tokens, the capacity is 9"},
      {"over the capacity without leave", rich_packing,
       [](Json& j) { j["options"]["oversize"] = "error"; },
       "micro-batch 1 holds 12 tokens, the capacity is 10"},
      {"over the capacity with company", plain_packing,
       [](Json& j) {
         j["options"]["oversize"] = "alone";
         j["options"]["capacity"] = 8;
         j["oversized"] = Json::parse("[2, 4]");
       },
       "micro-batch 1 holds 10 tokens, the capacity is 8"},
      {"listed without being oversized", plain_packing,
       [](Json& j) { j["oversized"] = Json::parse("[0]"); },
       "oversized[0] is 0, which does not stand alone over the capacity"},
      {"oversized without being listed", rich_packing,
       [](Json& j) { j["oversized"] = Json::parse("[1, 6]"); }, "oversized must have 4 at place 1"},
      {"oversized in another order", rich_packing,
       [](Json& j) { j["oversized"] = Json::parse("[4, 1, 6]"); },
       "oversized must have 1 at place 0"},
      {"too many sequences", rich_packing, [](Json& j) { j["options"]["max_sequences"] = 2; },
       "micro-batch 1 holds 3 sequences, options.max_sequences is 2"},
      {"ids out of order", plain_packing,
       [](Json& j) { j["microbatches"][1] = Json::parse("[4, 2]"); },
       "microbatches[1] is not ascending"},
      {"micro-batches out of order", plain_packing,
       [](Json& j) { j["microbatches"] = Json::parse("[[0, 1], [3, 5], [2, 4]]"); },
       "microbatches[1] begins with sequence 3, order index puts the one with 2 there"},
      {"large at the ends", rich_packing,
       [](Json& j) { j["microbatches"] = Json::parse("[[5], [0, 2, 3], [1, 4, 6], []]"); },
       "microbatches[1] begins with sequence 0, order small_ends puts the one with 1 there"},
      {"another number of tokens", plain_packing, [](Json& j) { j["max_tokens"] = 9; },
       "max_tokens is 9, the micro-batches have 10"},
      {"another cost", rich_packing, [](Json& j) { j["max_cost"] = 12; },
       "max_cost is 12, the micro-batches have 24"},
      {"a bound above the count", plain_packing, [](Json& j) { j["lower_bound"] = 4; },
       "lower_bound is 4, above count 3"},
      {"a bound that is no multiple", rich_packing, [](Json& j) { j["lower_bound"] = 3; },
       "lower_bound is 3, must be a multiple of 4"},
      {"a bound below the tokens", plain_packing, [](Json& j) { j["lower_bound"] = 2; },
       "lower_bound is 2, below 3 from tokens and counts"},
      {"a bound below the minimum", rich_packing,
       [](Json& j) {
         j["options"]["multiple"] = 1;
         j["options"]["min_count"] = 4;
         j["lower_bound"] = 3;
       },
       "lower_bound is 3, below 4 from tokens and counts"},
      {"a bound below the count that was asked for", plain_packing,
       [](Json& j) {
         j["microbatches"] = Json::parse("[[0, 1], [2], [3, 5], [4]]");
         j["count"] = 4;
         j["options"]["count"] = 4;
         j["max_tokens"] = 8;
         j["max_cost"] = 8;
       },
       "lower_bound is 3, below 4 from tokens and counts"},
      {"a cost bound above the cost", plain_packing, [](Json& j) { j["max_cost_bound"] = 11; },
       "max_cost_bound is 11, above max_cost 10"},
      {"a cost bound below the average", plain_packing, [](Json& j) { j["max_cost_bound"] = 7; },
       "max_cost_bound is 7, below 8 from average and largest sequence"},
      {"a cost bound below the largest group", rich_packing,
       [](Json& j) { j["max_cost_bound"] = 23; },
       "max_cost_bound is 23, below 24 from average and largest group"},
      {"optimal above the bound", plain_packing, [](Json& j) { j["status"] = "optimal"; },
       "status is optimal, but count is 3 with lower_bound 3, and max_cost 10 with max_cost_bound "
       "8"},
      {"feasible at the bounds", rich_packing, [](Json& j) { j["status"] = "feasible"; },
       "status is feasible, but count is 4 with lower_bound 4, and max_cost 24 with max_cost_bound "
       "24"},
  });
}

TEST(Check, RejectsWhatIsNoResult) {
  const auto message = [](std::string_view text) {
    return message_of([&] { (void)find_violation(text); });
  };
  EXPECT_EQ(message(""), "[check] line 1 is not valid JSON at byte 1 of the text");
  EXPECT_EQ(message("[]"), "[check] the result is a list of 0, must be an object");
  EXPECT_EQ(message("{}"), "[check] \"schema\" is missing");
  EXPECT_EQ(message(R"({"schema": 1})"), "[check] schema is 1, must be a string");
  EXPECT_EQ(message(R"({"schema": "x"})"),
            "[check] schema is \"x\", must be one of isochron.balance.v1, isochron.pack.v1, "
            "isochron.plan.v1");
}

TEST(Check, RejectsQuestionsThatCannotBeAsked) {
  expect_rejections({
      {"a missing key", plain_balance, [](Json& j) { j.erase("max_cost"); },
       "\"max_cost\" is missing"},
      {"an unknown key", plain_balance, [](Json& j) { j["max_csot"] = 1; },
       "unknown key \"max_csot\", did you mean \"max_cost\"?"},
      {"a missing option", plain_balance, [](Json& j) { j["options"].erase("order"); },
       "\"options.order\" is missing"},
      {"an unknown option", plain_balance, [](Json& j) { j["options"]["ordre"] = 1; },
       "unknown key \"ordre\", did you mean \"order\"?"},
      {"an unknown status", plain_balance, [](Json& j) { j["status"] = "good"; },
       "status is \"good\", must be one of optimal, feasible, infeasible, unknown"},
      {"no ranks", plain_balance, [](Json& j) { j["ranks"] = 0; },
       "ranks is 0, must be an integer from 1 to 2147483647"},
      {"a cost that is no integer", plain_balance, [](Json& j) { j["max_cost"] = 1.5; },
       "max_cost is 1.5, must be an integer from -9223372036854775808 to 9223372036854775807"},
      {"an id that is no integer", plain_balance,
       [](Json& j) { j["sequences_of_rank"][1][0] = "3"; },
       "sequences_of_rank[1][0] is \"3\", must be an integer from -9223372036854775808 to "
       "9223372036854775807"},
      {"ranks that are no lists", plain_balance, [](Json& j) { j["sequences_of_rank"][0] = 3; },
       "sequences_of_rank[0] is 3, must be a list"},
      {"no list of ranks", plain_balance, [](Json& j) { j["sequences_of_rank"] = 3; },
       "sequences_of_rank is 3, must be a list"},
      {"no lengths", plain_balance, [](Json& j) { j["lengths"] = Json::array(); },
       "lengths has 0 elements, must have 1 to 2147483647"},
      {"a length of 0", plain_balance, [](Json& j) { j["lengths"][2] = 0; },
       "lengths[2] is 0, must be an integer from 1 to 2147483647"},
      {"extra costs of another size", plain_balance,
       [](Json& j) { j["extra_cost_ns"] = Json::parse("[1]"); },
       "extra_cost_ns has 1 elements, must have 6 as lengths"},
      {"a negative extra cost", rich_balance, [](Json& j) { j["extra_cost_ns"][3] = -1; },
       "extra_cost_ns[3] is -1, must be an integer from 0 to 4611686018427387904"},
      {"groups of another size", plain_balance, [](Json& j) { j["group"] = Json::parse("[1]"); },
       "group has 1 elements, must have 6 as lengths"},
      {"a group that is no name", rich_balance, [](Json& j) { j["group"][1] = 7; },
       "group[1] is 7, must be a string"},
      {"groups kept but not given", rich_balance, [](Json& j) { j.erase("group"); },
       "options.keep_groups is rank, but \"group\" is missing"},
      {"a group in two mini-batches", rich_balance, [](Json& j) { j["options"]["minibatch"] = 3; },
       "group \"b\" lies in mini-batches 0 and 1, must lie in one"},
      {"another place to keep groups", plain_balance,
       [](Json& j) { j["options"]["keep_groups"] = "microbatch"; },
       "options.keep_groups is microbatch, must be none or rank"},
      {"a negative mini-batch", plain_balance, [](Json& j) { j["options"]["minibatch"] = -1; },
       "options.minibatch is -1, must not be negative"},
      {"a negative capacity", plain_balance, [](Json& j) { j["options"]["capacity"] = -1; },
       "options.capacity is -1, must not be negative"},
      {"negative work", plain_balance, [](Json& j) { j["options"]["max_work"] = -1; },
       "options.max_work is -1, must not be negative"},
      {"no coefficient", plain_balance, [](Json& j) { j["cost"].erase("linear_ns"); },
       "\"linear_ns\" is missing"},
      {"a negative coefficient", plain_balance, [](Json& j) { j["cost"]["linear_ns"] = -0.5; },
       "cost.linear_ns is -0.5, must not be negative"},
      {"a cost above 2^62", plain_balance, [](Json& j) { j["cost"]["linear_ns"] = 1e18; },
       "the cost of sequence 0 is above 2^62"},
      {"a total above 2^62", plain_balance, [](Json& j) { j["cost"]["linear_ns"] = 3e17; },
       "the costs up to sequence 4 add up to more than 2^62"},
      {"no capacity", plain_packing, [](Json& j) { j["options"]["capacity"] = 0; },
       "options.capacity is 0, must be at least 1"},
      {"no multiple", plain_packing, [](Json& j) { j["options"]["multiple"] = 0; },
       "options.multiple is 0, must be at least 1"},
      {"a negative minimum", plain_packing, [](Json& j) { j["options"]["min_count"] = -1; },
       "options.min_count is -1, must not be negative"},
      {"a negative number of sequences", plain_packing,
       [](Json& j) { j["options"]["max_sequences"] = -1; },
       "options.max_sequences is -1, must not be negative"},
      {"negative work of a packing", plain_packing, [](Json& j) { j["options"]["max_work"] = -1; },
       "options.max_work is -1, must not be negative"},
      {"another way to widen", plain_packing, [](Json& j) { j["options"]["oversize"] = "widen"; },
       "options.oversize is widen, must be error or alone"},
      {"groups on ranks", plain_packing, [](Json& j) { j["options"]["keep_groups"] = "rank"; },
       "options.keep_groups is rank, must be none or microbatch"},
      {"groups kept in micro-batches but not given", rich_packing,
       [](Json& j) { j.erase("group"); },
       "options.keep_groups is microbatch, but \"group\" is missing"},
      {"a count of 0", plain_packing, [](Json& j) { j["options"]["count"] = 0; },
       "options.count is 0, must be at least 1"},
      {"a count that is no multiple", plain_packing,
       [](Json& j) {
         j["options"]["count"] = 3;
         j["options"]["multiple"] = 2;
       },
       "options.count is 3, must be a multiple of 2"},
      {"a count below the minimum", plain_packing,
       [](Json& j) {
         j["options"]["count"] = 3;
         j["options"]["min_count"] = 4;
       },
       "options.count is 3, must be at least min_count 4"},
  });
}

TEST(Check, ComparesWithTheBatchThatWasExpected) {
  const auto difference = [](Json (*document)(), std::string_view text) {
    const Batch expected = parse_batch(text);
    return find_violation(document().dump(), &expected).value_or("valid");
  };
  EXPECT_EQ(difference(plain_balance, "[5, 3, 4, 2, 6, 4]"), "valid");
  EXPECT_EQ(difference(plain_packing, "5\n3\n4\n2\n6\n4"), "valid");
  EXPECT_EQ(difference(plain_balance, "[5, 3, 4]"),
            "the result is about 6 sequences, the expected batch has 3");
  EXPECT_EQ(difference(plain_balance, "[5, 3, 4, 1, 6, 4]"),
            "lengths[3] is 2, the expected batch has 1");

  const std::string header = "length,group,extra_cost_ns\n";
  const std::string head = "5,a,0\n10,b,0\n15,a,0\n20,b,0\n2,c,0\n4,c,0\n6,d,0\n";
  EXPECT_EQ(difference(rich_balance, header + head + "8,d,1\n"), "valid");
  EXPECT_EQ(difference(rich_balance, header + head + "8,d,2\n"),
            "extra_cost_ns[7] is 1, the expected batch has 2");
  EXPECT_EQ(difference(rich_balance, header + head + "8,e,1\n"),
            "group[7] is \"d\", the expected batch has \"e\"");
  EXPECT_EQ(difference(rich_balance, "[5, 10, 15, 20, 2, 4, 6, 8]"),
            "the result has group, the expected batch has none");
  EXPECT_EQ(difference(plain_balance, "length,group\n5,a\n3,a\n4,a\n2,a\n6,a\n4,a\n"),
            "the result has no group, the expected batch has");
  EXPECT_EQ(difference(plain_balance, "length,extra_cost_ns\n5,0\n3,0\n4,0\n2,0\n6,0\n4,0\n"),
            "the result has no extra_cost_ns, the expected batch has");
}

}  // namespace
}  // namespace isochron

#include "isochron/cost/cost_model.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "isochron/core/random.h"
#include "isochron/cost/cost_json.h"
#include "tests/support/message_of.h"

namespace isochron {
namespace {

std::string message_for(std::string_view json) {
  return message_of([&] { (void)cost_model_from_json(json); });
}

Batch batch_of(std::vector<Tokens> lengths, std::vector<Nanoseconds> extra = {}) {
  return {.lengths = std::move(lengths),
          .extra_cost_ns = std::move(extra),
          .groups = {},
          .group_names = {}};
}

// 2 ns a token^2, 3 a token; blocks of 4 and 16 ranks.
CostModel grouped(ContextKind kind) {
  CostModel model = {.name = "grouped", .quadratic_ns = 2, .linear_ns = 3};
  model.context = {{.kind = kind,
                    .bytes_per_token = 1000,
                    .links = {{4, 50, 1.5}, {16, 5, 20}},
                    .overlap = 0.25}};
  return model;
}

TEST(SequenceCost, OfVerlIsItsWorkload) {
  const CostModel verl = cost_preset("verl");
  EXPECT_EQ(verl.name, "verl");
  EXPECT_EQ(verl.context, std::vector<ContextCost>{ContextCost{}});
  EXPECT_EQ(sequence_cost(verl, 1), 24577);
  EXPECT_EQ(sequence_cost(verl, 100), 2'467'600);
  EXPECT_EQ(sequence_cost(verl, 1 << 17), 20'401'094'656);
  EXPECT_EQ(sequence_cost(verl, 100, 7), 2'467'607);
  EXPECT_EQ(sequence_costs(verl, batch_of({1, 100}, {0, 7})),
            (std::vector<Nanoseconds>{24577, 2'467'607}));
  EXPECT_TRUE(sequence_costs(verl, batch_of({})).empty());
}

TEST(SequenceCost, IsExactWithIntegerCoefficients) {
  // 2^31-1 squared is odd and needs 62 bits: a double would lose its last digits.
  CostModel model = {.name = "", .quadratic_ns = 1, .linear_ns = 1};
  const Nanoseconds square = max_length * max_length;
  EXPECT_EQ(sequence_cost(model, max_length), square + max_length);
  EXPECT_NE(static_cast<Nanoseconds>(static_cast<double>(square)), square);
  EXPECT_EQ(sequence_cost(model, max_length, max_total_cost - square - max_length), max_total_cost);
}

TEST(SequenceCost, RoundsOnceFromTheLeft) {
  const CostModel model = {.name = "", .quadratic_ns = 0.5, .linear_ns = 0.25};
  EXPECT_EQ(sequence_cost(model, 2), 3);                            // 2.5, halves away from zero
  EXPECT_EQ(sequence_cost(model, 3), 5);                            // 5.25
  EXPECT_EQ(sequence_cost(model, 3, 1), 6);                         // 6.25
  EXPECT_EQ(sequence_cost({.name = "", .linear_ns = 0.1}, 25), 3);  // 0.1 * 25 is 2.5
}

TEST(SequenceCost, IsTheSameInIntegersAndInDoubleWhereBothAreExact) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const CostModel model = {.name = "",
                             .quadratic_ns = static_cast<double>(random.below(1000)),
                             .linear_ns = static_cast<double>(random.below(1'000'000))};
    const Tokens length = random.between(1, 1'000'000);
    const Nanoseconds extra = random.between(0, 1'000'000);
    const auto s = static_cast<double>(length);
    const double cost =
        model.quadratic_ns * s * s + model.linear_ns * s + static_cast<double>(extra);
    ASSERT_LT(cost, 0x1p53);
    EXPECT_EQ(sequence_cost(model, length, extra), std::llround(cost));
    // Halves take the path of doubles, and are exact there.
    const CostModel half = {.name = "",
                            .quadratic_ns = model.quadratic_ns / 2,
                            .linear_ns = model.linear_ns / 2 + 0.25};
    const std::int64_t quarters =
        static_cast<std::int64_t>(2 * model.quadratic_ns) * length * length +
        static_cast<std::int64_t>(2 * model.linear_ns + 1) * length;
    EXPECT_EQ(sequence_cost(half, length), (quarters + 2) / 4);
  }
}

TEST(SequenceCost, GrowsWithTheLength) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const CostModel model = {
        .name = "", .quadratic_ns = random.unit() * 3, .linear_ns = random.unit() * 1e5};
    const Tokens length = random.between(1, 1 << 20);
    EXPECT_LE(sequence_cost(model, length), sequence_cost(model, length + 1));
    EXPECT_LE(sequence_cost(model, length), sequence_cost(model, length, 1));
  }
}

TEST(SequenceCost, NamesTheSequenceThatIsTooExpensive) {
  const CostModel verl = cost_preset("verl");
  CostModel steep = {.name = "", .quadratic_ns = 1.5};
  EXPECT_EQ(message_of([&] { (void)sequence_cost(steep, max_length); }),
            "[cost] a sequence of 2147483647 tokens costs more than 2^62");
  EXPECT_EQ(message_of([&] {
              (void)sequence_costs(steep, batch_of({5, max_length}));
            }),
            "[cost] sequence 1 of 2147483647 tokens costs more than 2^62");
  steep.quadratic_ns = 2;
  EXPECT_EQ(message_of([&] {
              (void)sequence_costs(steep, batch_of({5, max_length}));
            }),
            "[cost] sequence 1 of 2147483647 tokens costs more than 2^62");
  steep.quadratic_ns = 1e300;
  EXPECT_EQ(message_of([&] { (void)sequence_costs(steep, batch_of({1})); }),
            "[cost] sequence 0 of 1 tokens costs more than 2^62");
  EXPECT_EQ(message_of([&] {
              (void)sequence_costs(verl, batch_of({1, 1}, {0, max_total_cost}));
            }),
            "[cost] sequence 1 of 1 tokens costs more than 2^62");
  const Tokens half = (std::int64_t{1} << 30) + (std::int64_t{1} << 29);
  EXPECT_EQ(message_of([&] {
              (void)sequence_costs(verl, batch_of({half, 1, half}));
            }),
            "[cost] the costs up to sequence 2 add up to more than 2^62");
}

TEST(SequenceCost, NamesTheInputThatIsWrong) {
  const CostModel verl = cost_preset("verl");
  EXPECT_EQ(message_of([&] { (void)sequence_cost(verl, 0); }),
            "[cost] the length is 0, must be an integer from 1 to 2147483647");
  EXPECT_EQ(message_of([&] { (void)sequence_cost(verl, 1, -1); }),
            "[cost] extra_cost_ns is -1, must be an integer from 0 to 4611686018427387904");
  EXPECT_EQ(message_of([&] {
              (void)sequence_costs(verl, batch_of({1, 0}));
            }),
            "[cost] lengths[1] is 0, must be an integer from 1 to 2147483647");
  EXPECT_EQ(message_of([&] {
              (void)sequence_costs(verl, batch_of({1, 1}, {0, -3}));
            }),
            "[cost] extra_cost_ns[1] is -3, must be an integer from 0 to 4611686018427387904");
  EXPECT_EQ(message_of([&] {
              (void)sequence_costs(verl, batch_of({1, 1}, {0}));
            }),
            "[cost] extra_cost_ns has 1 values, must have 2 as there are lengths");
  const CostModel negative = {.name = "", .linear_ns = -1};
  EXPECT_EQ(message_of([&] { (void)sequence_costs(negative, batch_of({1})); }),
            "[cost] linear_ns is -1, must be a finite number of at least 0");
}

TEST(GroupCost, SharesTheWorkAndPaysForTheTraffic) {
  const CostModel gather = grouped(ContextKind::all_gather_kv);
  // 100 tokens: 20300 ns of work. Two ranks move 1000 * 100 * 1/2 bytes at 50, three quarters seen.
  EXPECT_EQ(find_sequence_cost(gather, gather.context[0], {0, 1}, 100), 20300);
  EXPECT_EQ(find_sequence_cost(gather, gather.context[0], {0, 2}, 100), 10150 + 750);
  EXPECT_EQ(find_sequence_cost(gather, gather.context[0], {0, 4}, 100), 5075 + 1125);
  EXPECT_EQ(find_sequence_cost(gather, gather.context[0], {0, 2}, 100, 40), 10170 + 750);
  // Across the border of a block of 4, at 5.
  EXPECT_EQ(find_sequence_cost(gather, gather.context[0], {3, 2}, 100), 10150 + 7500);
  const CostModel heads = grouped(ContextKind::all_to_all);
  EXPECT_EQ(find_sequence_cost(heads, heads.context[0], {0, 2}, 100), 10150 + 375);
  EXPECT_EQ(find_sequence_cost(heads, heads.context[0], {4, 4}, 100), 5075 + 281);  // 281.25
  const CostModel none = grouped(ContextKind::none);
  EXPECT_EQ(find_sequence_cost(none, none.context[0], {3, 2}, 100), 10150);
}

TEST(GroupCost, TakesTheFirstLinkWhoseBlockHoldsTheGroup) {
  const ContextCost context = grouped(ContextKind::all_gather_kv).context[0];
  EXPECT_EQ(find_link(context, {0, 4})->max_ranks, 4);
  EXPECT_EQ(find_link(context, {4, 2})->max_ranks, 4);
  EXPECT_EQ(find_link(context, {3, 2})->max_ranks, 16);
  EXPECT_EQ(find_link(context, {0, 16})->max_ranks, 16);
  EXPECT_EQ(find_link(context, {15, 2}), std::nullopt);
  EXPECT_EQ(find_link(context, {0, 17}), std::nullopt);
  EXPECT_EQ(link_latency(*find_link(context, {3, 2})), 20000);
  EXPECT_EQ(link_latency(*find_link(context, {0, 2})), 1500);
  EXPECT_EQ(link_latency(*find_link(context, {15, 1})), 0);
  EXPECT_EQ(message_of([&] {
              (void)find_link(context, {0, 0});
            }),
            "[cost] the group has 0 ranks from rank 0, must have at least 1 from at least 0");
}

TEST(GroupCost, IsNoneWhereAGroupIsNotAdmissible) {
  CostModel model = grouped(ContextKind::all_to_all);
  ContextCost& context = model.context[0];
  context.divides = 6;
  EXPECT_NE(find_sequence_cost(model, context, {0, 2}, 100), std::nullopt);
  EXPECT_NE(find_sequence_cost(model, context, {0, 3}, 100), std::nullopt);
  EXPECT_EQ(find_sequence_cost(model, context, {0, 4}, 100), std::nullopt);
  EXPECT_EQ(find_sequence_cost(model, context, {15, 2}, 100), std::nullopt);
  context.links.clear();
  EXPECT_EQ(find_sequence_cost(model, context, {0, 2}, 100), std::nullopt);
  EXPECT_EQ(find_sequence_cost(model, context, {0, 1}, 100), 20300);
  // Nothing is moved, so nothing has to connect the ranks.
  EXPECT_EQ(find_sequence_cost(model, ContextCost{}, {15, 2}, 100), 10150);
}

TEST(GroupCost, OfAMicrobatchIsRoundedOnce) {
  EXPECT_EQ(microbatch_cost({.name = "", .microbatch_ns = 2.5}), 3);
  EXPECT_EQ(microbatch_cost(cost_preset("verl")), 0);
  EXPECT_EQ(link_latency({.max_ranks = 8, .gb_per_s = 1, .latency_us = 0.0015}), 2);
}

TEST(CostPreset, IsFoundByModelAndHardware) {
  const CostModel model = cost_preset("Qwen3-8B_H100");
  EXPECT_EQ(model.name, "qwen3-8b_h100");
  EXPECT_EQ(cost_names().size(), 1u + 8 * 21);
  for (const std::string& name : cost_names()) {
    SCOPED_TRACE(name);
    const CostModel preset = cost_preset(name);
    EXPECT_EQ(preset.name, name);
    EXPECT_EQ(cost_model_from_json(to_json(preset)), preset);
  }
  const std::string message = message_of([] { (void)cost_preset("qwen3-8b-h100"); });
  EXPECT_TRUE(
      message.starts_with("[cost] unknown cost model \"qwen3-8b-h100\", did you mean "
                          "\"qwen3-8b_h100\"? Known are verl and MODEL_HARDWARE with the "
                          "models qwen2.5-0.5b, "))
      << message;
}

TEST(CostJson, ReadsTheExampleOfTheDocumentation) {
  const CostModel model = cost_model_from_json(R"({"name": "7b_h100",
      "quadratic_ns": 1.5903579373104146, "linear_ns": 91057.53405864509,
      "microbatch_ns": 5000000.0, "forward_share": 0.3333333333333333,
      "context": {"kind": "all_gather_kv", "bytes_per_token": 393216,
        "links": [{"max_ranks": 8, "gb_per_s": 350.0, "latency_us": 1280.0},
                  {"max_ranks": 1048576, "gb_per_s": 45.0, "latency_us": 2560.0}],
        "overlap": 0.0},
      "activation_bytes_per_token": 4456448})");
  EXPECT_EQ(model.name, "7b_h100");
  EXPECT_EQ(model.linear_ns, 91057.53405864509);
  EXPECT_EQ(model.forward_share, 1.0 / 3);
  EXPECT_EQ(model.activation_bytes_per_token, 4456448);
  ASSERT_EQ(model.context.size(), 1u);
  EXPECT_EQ(model.context[0].divides, 0);
  EXPECT_EQ(model.context[0].links.size(), 2u);
  // 32768 tokens: 4.69 s on one rank; on four of a node a quarter of that and 27.6 ms of traffic.
  EXPECT_EQ(sequence_cost(model, 32768), 4'691'407'108);
  EXPECT_EQ(find_sequence_cost(model, model.context[0], {0, 4}, 32768), 1'200'462'281);
}

TEST(CostJson, HasTheDefaultsOfTheStruct) {
  EXPECT_EQ(cost_model_from_json(R"({"linear_ns": 2})"), (CostModel{.name = "", .linear_ns = 2}));
  EXPECT_EQ(cost_model_from_json(R"({"quadratic_ns": 0})"), CostModel{});
  EXPECT_TRUE(cost_model_from_json(R"({"linear_ns": 2, "context": []})").context.empty());
  const auto model = cost_model_from_json(
      R"({"linear_ns": 2, "context": [{"kind": "none"}, {"kind": "all_to_all", "divides": 8,
          "links": [{"max_ranks": 8, "gb_per_s": 1}]}]})");
  const std::vector<ContextCost> expected = {
      ContextCost{}, {.kind = ContextKind::all_to_all, .divides = 8, .links = {{8, 1.0, 0.0}}}};
  EXPECT_EQ(model.context, expected);
}

TEST(CostJson, WritesTheNamesOfTheFields) {
  EXPECT_EQ(cost_to_json(cost_preset("verl")).dump(),
            R"({"name":"verl","quadratic_ns":1.0,"linear_ns":24576.0,"microbatch_ns":0.0,)"
            R"("forward_share":0.3333333333333333,"context":{"kind":"none","bytes_per_token":0.0,)"
            R"("divides":0,"links":[],"overlap":0.0},"activation_bytes_per_token":0.0})");
}

// Any bits that are a finite double of at least 0 and at most `high`.
double any_number(Random& random, double high = std::numeric_limits<double>::max()) {
  if (random.below(4) == 0) return static_cast<double>(random.below(100));
  while (true) {
    const double value = std::bit_cast<double>(random.next() >> 1);
    if (value <= high) return value;  // false for NaN
  }
}

TEST(CostJson, GivesBackAThousandRandomModels) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    CostModel model;
    model.name = "model \"" + std::to_string(seed) + "\"\n\xc3\xa9";
    model.quadratic_ns = any_number(random);
    model.linear_ns = any_number(random);
    model.microbatch_ns = any_number(random, 0x1p62);
    model.forward_share = 0.001 + random.unit() * 0.99;
    model.activation_bytes_per_token = any_number(random);
    model.context.resize(random.below(4));
    for (ContextCost& context : model.context) {
      context.kind = EnumNames<ContextKind>::values[random.below(3)].first;
      context.bytes_per_token = any_number(random);
      if (context.kind == ContextKind::all_to_all) context.divides = random.between(0, INT64_MAX);
      context.overlap = random.unit();
      std::int64_t ranks = 0;
      for (std::uint64_t i = random.below(5); i > 0; --i) {
        ranks += random.between(1, 1000);
        context.links.push_back({ranks, any_number(random) + 0.1, any_number(random, 1e15)});
      }
    }
    const std::string text = to_json(model);
    EXPECT_EQ(cost_model_from_json(text), model) << text;
    EXPECT_EQ(to_json(cost_model_from_json(text)), text);
  }
}

TEST(CostJson, NamesWhatItDoesNotKnow) {
  EXPECT_EQ(message_for(R"({"linaer_ns": 1})"),
            "[cost] unknown key \"linaer_ns\", did you mean \"linear_ns\"?");
  EXPECT_EQ(message_for(R"({"linear_ns": 1, "context": {"kind": "none", "overlp": 1}})"),
            "[cost] unknown key \"overlp\", did you mean \"overlap\"?");
  EXPECT_EQ(message_for(R"({"linear_ns": 1, "context": {"kind": "ring"}})"),
            "[cost] context.kind is \"ring\", must be one of all_gather_kv, all_to_all, none");
  EXPECT_EQ(message_for(R"({"linear_ns": 1, "context": [{"kind": "none"}, {"kind": 3}]})"),
            "[cost] context[1].kind is 3, must be one of all_gather_kv, all_to_all, none");
  EXPECT_EQ(message_for(R"({"linear_ns": 1, "context": {}})"),
            "[cost] \"context.kind\" is missing");
  EXPECT_EQ(message_for("{}"),
            "[cost] \"linear_ns\" and \"quadratic_ns\" are missing, must have one of them");
  EXPECT_EQ(message_for(R"({"linear_ns": 1, "linear_ns": 2})"),
            "[cost] the key \"linear_ns\" occurs twice in one object");
}

TEST(CostJson, NamesTheValueOfAnotherType) {
  EXPECT_EQ(message_for("[]"), "[cost] the cost model is a list of 0, must be an object");
  EXPECT_EQ(message_for("nonsense"), "[cost] line 1 is not valid JSON at byte 2 of the text");
  EXPECT_EQ(message_for(""), "[cost] line 1 is not valid JSON at byte 1 of the text");
  EXPECT_EQ(message_for(R"({"linear_ns": "1"})"), "[cost] linear_ns is \"1\", must be a number");
  EXPECT_EQ(message_for(R"({"linear_ns": null})"), "[cost] linear_ns is null, must be a number");
  EXPECT_EQ(message_for(R"({"linear_ns": 1e999})"),
            "[cost] the JSON holds a number outside the range of a double");
  EXPECT_EQ(message_for(R"({"linear_ns": 1, "name": 1})"), "[cost] name is 1, must be a string");
  EXPECT_EQ(message_for(R"({"linear_ns": 1, "context": "none"})"),
            "[cost] context is \"none\", must be an object or a list of objects");
  EXPECT_EQ(message_for(R"({"linear_ns": 1, "context": [1]})"),
            "[cost] context[0] is 1, must be an object");
  EXPECT_EQ(message_for(R"({"linear_ns": 1, "context": {"kind": "none", "links": {}}})"),
            "[cost] context.links is an object of 0, must be a list");
  EXPECT_EQ(message_for(R"({"linear_ns": 1, "context": {"kind": "none", "divides": 1.5}})"),
            "[cost] context.divides is 1.5, must be an integer from 0 to 9223372036854775807");
}

TEST(CostJson, NamesTheValueOutOfRange) {
  const auto with = [](std::string_view members) {
    return message_for(fmt::format(R"({{"linear_ns": 1, {}}})", members));
  };
  const auto with_link = [&](std::string_view links) {
    return with(fmt::format(R"("context": {{"kind": "all_to_all", "links": [{}]}})", links));
  };
  EXPECT_EQ(with(R"("microbatch_ns": -1)"),
            "[cost] microbatch_ns is -1, must be a number from 0 to 4.611686018427388e+18");
  EXPECT_EQ(with(R"("forward_share": 0)"),
            "[cost] forward_share is 0, must be a number between 0 and 1");
  EXPECT_EQ(with(R"("forward_share": 1)"),
            "[cost] forward_share is 1, must be a number between 0 and 1");
  EXPECT_EQ(with(R"("context": {"kind": "all_to_all", "overlap": 1.5})"),
            "[cost] context.overlap is 1.5, must be a number from 0 to 1");
  EXPECT_EQ(with(R"("context": {"kind": "all_gather_kv", "divides": 8})"),
            "[cost] context.divides is 8, must be 0 unless the kind is all_to_all");
  EXPECT_EQ(with_link(R"({"max_ranks": 0, "gb_per_s": 1})"),
            "[cost] context.links[0].max_ranks is 0, must be above 0");
  EXPECT_EQ(with_link(R"({"max_ranks": 8, "gb_per_s": 1}, {"max_ranks": 8, "gb_per_s": 1})"),
            "[cost] context.links[1].max_ranks is 8, must be above 8");
  EXPECT_EQ(with_link(R"({"max_ranks": 8, "gb_per_s": 0})"),
            "[cost] context.links[0].gb_per_s is 0, must be a finite number above 0");
  EXPECT_EQ(with_link(R"({"max_ranks": 8})"), "[cost] \"context.links[0].gb_per_s\" is missing");
  EXPECT_EQ(with_link(R"({"max_ranks": 8, "gb_per_s": 1, "latency_us": -1})"),
            "[cost] context.links[0].latency_us is -1, must be a number from 0 to "
            "4611686018427388");
}

TEST(CostJson, WritesNoNumberThatIsNotFinite) {
  CostModel model;
  model.linear_ns = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(message_of([&] { (void)to_json(model); }),
            "[cost] linear_ns is nan, must be a finite number of at least 0");
  model.linear_ns = std::numeric_limits<double>::infinity();
  EXPECT_EQ(message_of([&] { (void)to_json(model); }),
            "[cost] linear_ns is inf, must be a finite number of at least 0");
}

}  // namespace
}  // namespace isochron

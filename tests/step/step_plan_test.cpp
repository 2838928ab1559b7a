#include "isochron/step/step_plan.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "isochron/check/check.h"
#include "isochron/core/json.h"
#include "tests/check/plans.h"
#include "tests/support/message_of.h"
#include "tests/support/mutate.h"
#include "tests/support/random_plan.h"
#include "tests/support/rehash.h"

namespace isochron {
namespace {

// A plan in which no field has its default.
StepPlan full_plan() {
  StepPlan plan = wide_plan();
  plan.reason = "none, \"quoted\"";
  plan.topology.pipeline = {
      .stages = 2, .virtual_ = 2, .group = 2, .transfer_ns = 5, .shares = {0.25, 0.25, 0.3, 0.2}};
  plan.topology.rank_speed = {1, 0.5, 1, 2};
  plan.options.effort = 100;
  plan.batch.extra_cost_ns = {0, 1, 2, 3};
  plan.first_sequence = 64;
  plan.padding_rows = 1;
  plan.microbatches[0][0].exchange = ContextKind::all_to_all;
  plan.oversized = sequence_ids({0});
  plan.dropped = sequence_ids({3, 4});
  return plan;
}

TEST(StepPlan, IsReadBackAsItWasWritten) {
  for (const StepPlan& plan :
       {StepPlan(plain_plan()), wide_plan(), short_plan(), infeasible_plan(), full_plan()}) {
    const std::string text = to_json(plan);
    EXPECT_EQ(step_plan_from_json(text), plan);
    EXPECT_EQ(to_json(step_plan_from_json(text)), text);
    EXPECT_EQ(text.find('\n'), text.size() - 1);  // one line
  }
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const StepPlan plan = random_plan(seed);
    ASSERT_EQ(step_plan_from_json(to_json(plan)), plan) << "seed " << seed;
  }
}

TEST(StepPlan, MayBeIndented) {
  EXPECT_EQ(step_plan_from_json(Json::parse(to_json(full_plan())).dump(2)), full_plan());
}

TEST(StepPlan, HasTheDocumentedHash) {
  for (const StepPlan& plan : {plain_plan(), full_plan()}) {
    Json document = Json::parse(to_json(plan));
    EXPECT_EQ(document["hash"], fmt::format("{:016x}", plan_hash(plan)));
    EXPECT_EQ(to_json(plan), rehashed(document) + "\n");
  }
  EXPECT_EQ(documented_hash(""), 0xcbf29ce484222325);  // published with the function
  EXPECT_EQ(documented_hash("foobar"), 0x85944171f73967e8);
}

TEST(StepPlan, HasTheSameHashOnEveryMachine) {
  EXPECT_EQ(fmt::format("{:016x}", plan_hash(plain_plan())), "979f6927f432b0e9");
  EXPECT_EQ(fmt::format("{:016x}", plan_hash(full_plan())), "c011a98ff958ae25");
}

TEST(StepPlan, HasAnotherHashIfAnythingChanges) {
  const std::vector<std::function<void(StepPlan&)>> changes = {
      [](StepPlan& p) { p.status = Status::unknown; },
      [](StepPlan& p) { p.reason += "."; },
      [](StepPlan& p) { ++p.topology.ranks; },
      [](StepPlan& p) { ++p.topology.capacity; },
      [](StepPlan& p) { ++p.topology.pipeline.stages; },
      [](StepPlan& p) { ++p.topology.pipeline.virtual_; },
      [](StepPlan& p) { ++p.topology.pipeline.group; },
      [](StepPlan& p) { ++p.topology.pipeline.transfer_ns; },
      [](StepPlan& p) { std::swap(p.topology.pipeline.shares[1], p.topology.pipeline.shares[2]); },
      [](StepPlan& p) { p.topology.rank_speed[3] = 1.5; },
      [](StepPlan& p) { p.options.context += ":any"; },
      [](StepPlan& p) { ++p.options.min_context_size; },
      [](StepPlan& p) { ++p.options.max_context_size; },
      [](StepPlan& p) { p.options.sync = Sync::microbatch; },
      [](StepPlan& p) { p.options.counts = Counts::free; },
      [](StepPlan& p) { p.options.pass = Pass::forward; },
      [](StepPlan& p) { p.options.balance = false; },
      [](StepPlan& p) { ++p.options.max_sequences; },
      [](StepPlan& p) { ++p.options.tensor_parallel; },
      [](StepPlan& p) { p.options.oversize = Oversize::alone; },
      [](StepPlan& p) { p.options.short_ = Short::drop; },
      [](StepPlan& p) { p.options.keep_groups = KeepGroups::rank; },
      [](StepPlan& p) { p.options.pad = Pad::rows; },
      [](StepPlan& p) { ++p.options.pad_multiple; },
      [](StepPlan& p) { ++p.options.max_activation_bytes; },
      [](StepPlan& p) { p.options.effort.reset(); },
      [](StepPlan& p) { p.cost.name += "."; },
      [](StepPlan& p) { p.cost.linear_ns = 1.5; },
      [](StepPlan& p) { p.cost.context.clear(); },
      [](StepPlan& p) { ++p.batch.lengths[0]; },
      [](StepPlan& p) { ++p.batch.extra_cost_ns[0]; },
      [](StepPlan& p) { p.batch.group_names[2] += "."; },
      [](StepPlan& p) { ++p.first_sequence; },
      [](StepPlan& p) { ++p.padding_rows; },
      [](StepPlan& p) { ++p.predicted_step_ns; },
      [](StepPlan& p) { ++p.lower_bound_ns; },
      [](StepPlan& p) { p.imbalance += 1; },
      [](StepPlan& p) { ++p.peak_activation_bytes[3]; },
      [](StepPlan& p) { ++p.microbatches[1][2].ranks.first; },
      [](StepPlan& p) { ++p.microbatches[1][2].ranks.size; },
      [](StepPlan& p) { p.microbatches[1][1].sequences.pop_back(); },
      [](StepPlan& p) { p.microbatches[0][0].exchange.reset(); },
      [](StepPlan& p) { p.oversized.clear(); },
      [](StepPlan& p) { p.dropped.clear(); },
  };
  // One for each option, and one at least for each other field.
  EXPECT_GE(changes.size(), field_keys<PlanOptions>().size() + 22);
  std::set<std::uint64_t> hashes = {plan_hash(full_plan())};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    StepPlan plan = full_plan();
    changes[i](plan);
    EXPECT_TRUE(hashes.insert(plan_hash(plan)).second) << "change " << i;
  }
}

TEST(StepPlan, PadsByRanksAndTensorParallel) {
  EXPECT_EQ(padded_length(5, 1, 1), 5);
  EXPECT_EQ(padded_length(5, 1, 4), 8);
  EXPECT_EQ(padded_length(5, 2, 1), 8);    // 4 chunks
  EXPECT_EQ(padded_length(17, 4, 2), 32);  // 8 chunks of multiples of 2
  EXPECT_EQ(padded_length(16, 4, 2), 16);
}

TEST(StepPlan, AppendsPaddingRows) {
  StepPlan plan = plain_plan();
  plan.padding_rows = 2;
  EXPECT_EQ(all_lengths(plan), (std::vector<Tokens>{5, 3, 4, 6, 2, 2}));
}

// What reading says about a document after a change.
std::string rejection(const std::function<void(Json&)>& change) {
  Json document = Json::parse(to_json(wide_plan()));
  change(document);
  return message_of([&] { (void)step_plan_from_json(rehashed(document)); });
}

TEST(StepPlan, RejectsADocumentOfAnotherForm) {
  EXPECT_EQ(rejection([](Json&) {}), "accepted");
  EXPECT_EQ(message_of([] { (void)step_plan_from_json("[]"); }),
            "[plan] the plan is a list of 0, must be an object");
  EXPECT_EQ(message_of([] { (void)step_plan_from_json("{"); }),
            "[plan] line 1 is not valid JSON at byte 2 of the text");
  EXPECT_EQ(rejection([](Json& j) { j["schema"] = "isochron.pack.v1"; }),
            "[plan] schema is \"isochron.pack.v1\", must be isochron.plan.v1");
  EXPECT_EQ(rejection([](Json& j) {
              j["schema"] = "isochron.balance.v1";
              j["max_cost"] = 1;
            }),
            "[plan] schema is \"isochron.balance.v1\", must be isochron.plan.v1")
      << "before its keys";
  EXPECT_EQ(rejection([](Json& j) { j["rank"] = 1; }),
            "[plan] unknown key \"rank\", did you mean \"ranks\"?");
  const Json document = Json::parse(to_json(wide_plan()));
  for (const auto& [key, value] : document.items()) {
    if (key == "hash" || key == "group") continue;
    EXPECT_EQ(rejection([&](Json& j) { j.erase(key); }),
              fmt::format("[plan] \"{}\" is missing", key));
  }
  EXPECT_EQ(rejection([](Json& j) { j["status"] = "good"; }),
            "[plan] status is \"good\", must be one of optimal, feasible, infeasible, unknown");
  EXPECT_EQ(rejection([](Json& j) { j["ranks"] = 0; }),
            "[plan] ranks is 0, must be an integer from 1 to 1048576");
  EXPECT_EQ(rejection([](Json& j) { j["capacity"] = 0; }),
            "[plan] capacity is 0, must be an integer from 1 to 4611686018427387904");
  EXPECT_EQ(rejection([](Json& j) { j["pipeline"]["depth"] = 1; }),
            "[plan] unknown key \"depth\", did you mean \"group\"?");
  EXPECT_EQ(rejection([](Json& j) { j["pipeline"]["shares"] = 1; }),
            "[plan] shares is 1, must be a list of numbers");
  EXPECT_EQ(rejection([](Json& j) { j["lengths"][0] = 0; }),
            "[plan] a length is 0, must be an integer from 1 to 2147483647");
  EXPECT_EQ(rejection([](Json& j) { j["group"].erase(0); }),
            "[plan] group has 3 entries, must be one for each of the 4 lengths");
  EXPECT_EQ(rejection([](Json& j) { j["extra_cost_ns"] = {1}; }),
            "[plan] extra_cost_ns has 1 entries, must be one for each of the 4 lengths");
  EXPECT_EQ(rejection([](Json& j) { j["padding_rows"] = 2147483647; }),
            "[plan] padding_rows is 2147483647, must be an integer from 0 to 2147483643");
  EXPECT_EQ(rejection([](Json& j) { j["microbatches"] = {1}; }),
            "[plan] a slot is 1, must be a list of groups");
  EXPECT_EQ(rejection([](Json& j) { j["microbatches"][0][0]["ranks"] = Json::array(); }),
            "[plan] a group has no ranks, must have at least one");
  EXPECT_EQ(rejection([](Json& j) {
              j["microbatches"][0][0]["ranks"] = {0, 2};
            }),
            "[plan] a group has rank 2 after rank 0, must be consecutive and ascending");
  EXPECT_EQ(rejection([](Json& j) {
              j["microbatches"][0][0]["ranks"] = {3, 4};
            }),
            "[plan] a rank is 4, must be an integer from 0 to 3");
  EXPECT_EQ(rejection([](Json& j) { j["microbatches"][0][0]["sequences"] = {4}; }),
            "[plan] a sequence is 4, must be an integer from 0 to 3");
  EXPECT_EQ(rejection([](Json& j) { j["microbatches"][0][0]["exchange"] = "mail"; }),
            "[plan] exchange is \"mail\", must be one of all_gather_kv, all_to_all, none");
  EXPECT_EQ(rejection([](Json& j) { j["oversized"] = {-1}; }),
            "[plan] oversized is -1, must be an integer from 0 to 3");
}

TEST(StepPlan, RejectsAnotherHash) {
  std::string text = to_json(plain_plan());
  const std::size_t at = text.find("\"lengths\":[5");
  ASSERT_NE(at, std::string::npos);
  text[at + 11] = '4';
  const std::string message = message_of([&] { (void)step_plan_from_json(text); });
  EXPECT_TRUE(message.starts_with("[plan] hash is \"979f6927f432b0e9\", must be ")) << message;
}

std::string option_message(const PlanOptions& options, const Topology& topology) {
  return message_of([&] { (void)resolved(options, topology); });
}

TEST(PlanOptions, AreResolvedByEachOther) {
  const Topology topology = {.ranks = 4, .capacity = 8};
  const PlanOptions plain = resolved({}, topology);
  EXPECT_EQ(plain.counts, Counts::free);
  EXPECT_EQ(plain.oversize, Oversize::error);
  EXPECT_EQ(plain.pad, Pad::uneven);
  EXPECT_EQ(resolved(plain, topology), plain);

  const PlanOptions rich =
      resolved({.context = "dynamic", .sync = Sync::microbatch, .pad_multiple = 2}, topology);
  EXPECT_EQ(rich.counts, Counts::equal);
  EXPECT_EQ(rich.oversize, Oversize::widen);
  EXPECT_EQ(rich.pad, Pad::rows);
  EXPECT_EQ(resolved({}, {.capacity = 8, .pipeline = {.stages = 2}}).counts, Counts::equal);
}

TEST(PlanOptions, NameWhatIsOutOfRangeOrContradicts) {
  const Topology topology = {.ranks = 4, .capacity = 8};
  const auto message = [&](const PlanOptions& options) {
    return option_message(options, topology);
  };
  EXPECT_EQ(message({.context = "wide"}),
            "[plan] context is \"wide\", must be static:C, dynamic, dynamic:powers or dynamic:any");
  EXPECT_EQ(message({.context = "static:x"}),
            "[plan] C of context static:C is \"x\", must be an integer from 1 to 1048576");
  EXPECT_EQ(message({.context = "static:0"}),
            "[plan] context is \"static:0\", C must be 1 to 1048576");
  EXPECT_EQ(message({.context = "static:02"}), "[plan] context is \"static:02\", must be static:2");
  EXPECT_EQ(message({.context = "static:3"}),
            "[plan] context is static:3, must divide the 4 ranks");
  EXPECT_EQ(message({.context = "dynamic", .min_context_size = 5}),
            "[plan] min_context_size is 5, must be 1 to the 4 ranks");
  EXPECT_EQ(message({.context = "dynamic", .min_context_size = 2, .max_context_size = 1}),
            "[plan] max_context_size is 1, must be 0 or from the minimum 2 to the 4 ranks");
  EXPECT_EQ(message({.min_context_size = 2}),
            "[plan] min_context_size and max_context_size need a dynamic context, not static:1");
  EXPECT_EQ(message({.sync = Sync::microbatch, .counts = Counts::free}),
            "[plan] counts is free, must be equal with sync microbatch");
  EXPECT_EQ(option_message({.counts = Counts::free}, {.capacity = 8, .pipeline = {.stages = 2}}),
            "[plan] counts is free, must be equal with several stages");
  EXPECT_EQ(message({.oversize = Oversize::widen}),
            "[plan] oversize is widen, must be error or alone with context static:1");
  EXPECT_EQ(message({.max_sequences = -1}), "[plan] max_sequences is -1, must be at least 0");
  EXPECT_EQ(message({.tensor_parallel = 0}), "[plan] tensor_parallel is 0, must be 1 to 1048576");
  EXPECT_EQ(message({.pad_multiple = 0}), "[plan] pad_multiple is 0, must be 1 to 1048576");
  EXPECT_EQ(message({.pad_multiple = (1 << 20) + 1}),
            "[plan] pad_multiple is 1048577, must be 1 to 1048576");
  EXPECT_EQ(message({.pad_multiple = 1 << 20}), "accepted");
  EXPECT_EQ(message({.max_activation_bytes = -1}),
            "[plan] max_activation_bytes is -1, must be at least 0");
  EXPECT_EQ(message({.effort = -1}), "[plan] effort is -1, must be at least 0");
}

TEST(Topology, NamesWhatIsOutOfRange) {
  const auto message = [](const Topology& topology) {
    return message_of([&] { require_valid(topology); });
  };
  const auto with = [&](const PipelineShape& pipeline) {
    return message({.capacity = 1, .pipeline = pipeline});
  };
  EXPECT_EQ(message({.capacity = 1}), "accepted");
  EXPECT_EQ(message({.ranks = 0, .capacity = 1}), "[plan] ranks is 0, must be 1 to 1048576");
  EXPECT_EQ(message({}), "[plan] capacity is 0, must be at least 1");
  EXPECT_EQ(with({.stages = 0}), "[plan] pipeline.stages is 0, must be 1 to 4096");
  EXPECT_EQ(with({.virtual_ = 2}),
            "[plan] pipeline.virtual is 2, must be 1 without several stages");
  EXPECT_EQ(with({.stages = 2, .virtual_ = 2, .group = 1}),
            "[plan] pipeline.group is 1, must be at least the 2 stages");
  EXPECT_EQ(with({.stages = 2, .group = 2}),
            "[plan] pipeline.group is 2, must be 1 without virtual stages");
  EXPECT_EQ(with({.stages = 64, .virtual_ = 64, .group = 64}), "accepted");
  EXPECT_EQ(with({.stages = 64, .virtual_ = 65, .group = 64}),
            "[plan] pipeline.virtual is 65, must be at most 64 with 64 stages");
  EXPECT_EQ(with({.stages = 4096, .virtual_ = 2, .group = 4096}),
            "[plan] pipeline.virtual is 2, must be at most 1 with 4096 stages");
  EXPECT_EQ(with({.stages = 64, .virtual_ = 4, .group = 1024}), "accepted");
  EXPECT_EQ(with({.stages = 64, .virtual_ = 4, .group = 1025}),
            "[plan] pipeline.group is 1025, must be at most 1024 with 256 chunks");
  EXPECT_EQ(with({.stages = 512, .virtual_ = 1, .group = 1}), "accepted");
  for (const std::int32_t stages : {2, 100, 256, 512}) {  // whatever is allowed has a group
    const std::int32_t most = std::min(4096 / stages, (1 << 18) / (stages * stages));
    if (most == 1) continue;
    EXPECT_EQ(with({.stages = stages, .virtual_ = most, .group = stages}), "accepted") << stages;
  }
  EXPECT_EQ(with({.transfer_ns = -1}),
            "[plan] pipeline.transfer_ns is -1, must be from 0 to 4611686018427387904");
  EXPECT_EQ(with({.stages = 2, .shares = {1}}),
            "[plan] pipeline.shares has 1 numbers, must be one for each of the 2 chunks");
  EXPECT_EQ(with({.stages = 2, .shares = {0, 1}}), "[plan] a share is 0, must be above 0");
  EXPECT_EQ(with({.stages = 2, .shares = {0.25, 0.5}}),
            "[plan] the shares add up to 0.75, must be 1");
  Topology topology = {.ranks = 2, .capacity = 1};
  topology.rank_speed = {1};
  EXPECT_EQ(message(topology),
            "[plan] rank_speed has 1 numbers, must be one for each of the 2 ranks");
  topology.rank_speed = {1, 0};
  EXPECT_EQ(message(topology), "[plan] a speed is 0, must be 0.001 to 1000");
}

// A verdict or a rejection of either; anything else ends the test program.
void feed(const std::string& text) {
  try {
    (void)step_plan_from_json(text);
  } catch (const std::invalid_argument&) {
  }
  try {
    (void)find_violation(text);
  } catch (const std::invalid_argument&) {
  }
}

// With the right hash, so that it gets past the door; nothing if it is not JSON.
void feed_rehashed(const std::string& text) {
  const Json document = Json::parse(text, nullptr, false);
  if (document.is_object()) feed(rehashed(document));
}

// Valid ones, so that what is changed in them decides; with stages, and with every key.
std::vector<StepPlan> documents() {
  return {plain_plan(),
          wide_plan(),
          short_plan(),
          full_plan(),
          random_plan(1, {.ranks = 3, .stages = 2, .virtual_ = 2, .num_sequences = 8}),
          random_plan(2, {.ranks = 4, .context = "dynamic", .num_sequences = 8})};
}

TEST(HostilePlan, WithBrokenBytesIsJudgedOrRejected) {
  for (const StepPlan& plan : documents()) {
    const std::string text = to_json(plan);
    for (std::int64_t seed = 0; seed < fuzz_iterations(); ++seed) {
      SCOPED_TRACE(testing::Message() << "seed " << seed);
      Random random(static_cast<std::uint64_t>(seed));
      const std::string broken = mutated(text, random);
      feed(broken);
      feed_rehashed(broken);
    }
  }
}

TEST(HostilePlan, CutAnywhereIsRejected) {
  const std::string text = to_json(full_plan());
  for (std::size_t size = 0; size + 1 < text.size(); ++size) {
    EXPECT_NE(message_of([&] { (void)step_plan_from_json(text.substr(0, size)); }), "accepted");
  }
}

// Puts each of `values` in the place of every value of a document, at every depth.
void replace_everywhere(Json& document, Json& place, const std::vector<Json>& values) {
  const Json kept = place;
  for (const Json& value : values) {
    place = value;
    if (document.is_object()) feed(rehashed(document));
  }
  place = kept;
  if (place.is_structured()) {
    for (Json& inner : place) replace_everywhere(document, inner, values);
  }
}

TEST(HostilePlan, WithOddValuesAnywhereIsJudgedOrRejected) {
  const std::vector<Json> values = {nullptr,
                                    true,
                                    -1,
                                    0,
                                    1,
                                    2,
                                    4096,
                                    1 << 20,
                                    INT32_MAX,
                                    INT64_MAX,
                                    UINT64_MAX,
                                    1e-300,
                                    0.5,
                                    1e18,
                                    1e308,
                                    "",
                                    "optimal",
                                    "infeasible",
                                    "unknown",
                                    "rank",
                                    "microbatch",
                                    "drop",
                                    "alone",
                                    "forward",
                                    "free",
                                    "rows",
                                    "static:2",
                                    "dynamic:any",
                                    Json::array(),
                                    Json::object(),
                                    Json::parse("[[]]"),
                                    Json::parse("[0, 1]"),
                                    Json::parse("[2, 3]")};
  for (const StepPlan& plan : documents()) {
    Json document = Json::parse(to_json(plan));
    replace_everywhere(document, document, values);
  }
}

}  // namespace
}  // namespace isochron

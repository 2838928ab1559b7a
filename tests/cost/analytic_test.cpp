#include "isochron/cost/analytic.h"

#include <gtest/gtest.h>

#include "isochron/core/json.h"
#include "tests/support/message_of.h"

namespace isochron {
namespace {

CostModel llama_on_h100(const AnalyticOptions& options = {}) {
  return analytic_cost(model_preset("llama-3-8b"), hardware_preset("h100"), options);
}

std::string message_for(const ModelShape& shape, const Hardware& hardware,
                        const AnalyticOptions& options = {}) {
  return message_of([&] { (void)analytic_cost(shape, hardware, options); });
}

// The cost model of the same shape that benchmarks use counts a forward and a backward of attention
// as 3 instead of 3.5, and is otherwise the same.
TEST(Analytic, AgreesWithTheModelOfTheBenchmarks) {
  const CostModel model = llama_on_h100();
  EXPECT_EQ(model.name, "llama-3-8b_h100");
  EXPECT_DOUBLE_EQ(model.linear_ns, 91057.53405864509);
  EXPECT_DOUBLE_EQ(model.quadratic_ns, 1.5903579373104146 / 3 * 3.5);
  EXPECT_EQ(model.microbatch_ns, 5e6);
  EXPECT_EQ(model.activation_bytes_per_token, 4456448);
  ASSERT_EQ(model.context.size(), 2u);
  const ContextCost gather = {
      .kind = ContextKind::all_gather_kv,
      .bytes_per_token = 393216,
      .links = {{8, 350.0, 1280.0}, {1048576, 45.0, 2560.0}},
  };
  EXPECT_EQ(model.context[0], gather);
}

TEST(Analytic, FollowsItsTable) {
  const double flops_ns = 1e9 / 494.5e12;
  const double x = 32.0 * (4.0 * 4096 * 4096 * 1.25 + 6.0 * 4096 * 14336) + 2.0 * 4096 * 128256;
  const double y = 2.0 * 4096 * 32;
  const CostModel none = llama_on_h100();
  EXPECT_DOUBLE_EQ(none.linear_ns, 3 * x * flops_ns);
  EXPECT_DOUBLE_EQ(none.quadratic_ns, 3.5 * y * flops_ns);
  EXPECT_DOUBLE_EQ(none.forward_share, (x + y * 4096) / (3 * x + 3.5 * y * 4096));
  EXPECT_LT(none.forward_share, 1.0 / 3);

  const CostModel selective = llama_on_h100({.recompute = Recompute::selective});
  EXPECT_EQ(selective.name, "llama-3-8b_h100_selective");
  EXPECT_EQ(selective.linear_ns, none.linear_ns);
  EXPECT_EQ(selective.quadratic_ns, none.quadratic_ns);
  EXPECT_EQ(selective.activation_bytes_per_token, (30 * 4096 - 2 * 14336) * 32);

  const CostModel full = llama_on_h100({.recompute = Recompute::full});
  EXPECT_DOUBLE_EQ(full.linear_ns, 4 * x * flops_ns);
  EXPECT_DOUBLE_EQ(full.quadratic_ns, 4.5 * y * flops_ns);
  EXPECT_DOUBLE_EQ(full.forward_share, (x + y * 4096) / (4 * x + 4.5 * y * 4096));
  EXPECT_EQ(full.activation_bytes_per_token, 2 * 4096 * 32);
  EXPECT_EQ(full.context, none.context);
}

TEST(Analytic, OffersBothExchanges) {
  const CostModel model = llama_on_h100();
  const ContextCost& heads = model.context[1];
  EXPECT_EQ(heads.kind, ContextKind::all_to_all);
  EXPECT_EQ(heads.bytes_per_token, 2.0 * (2 * 4096 + 2 * 1024) * 2 * 32);
  EXPECT_EQ(heads.divides, 8);
  EXPECT_EQ(heads.links, model.context[0].links);
  // Per layer and rank, c = 8: 48 T d e gathered against 20 T d e exchanged, both by 7/8.
  const double gathered = model.context[0].bytes_per_token / 32;
  EXPECT_EQ(gathered, 48.0 * 128 * 2);
  EXPECT_EQ(heads.bytes_per_token / 32 / 8, 20.0 * 128 * 2);
  EXPECT_EQ(llama_on_h100({.keep_gathered_kv = true}).context[0].bytes_per_token, 393216 / 3 * 2);
}

TEST(Analytic, MakesOneRankOfTheDevicesThatShareTensors) {
  const CostModel one = llama_on_h100();
  const CostModel two = llama_on_h100({.tensor_parallel = 2});
  EXPECT_EQ(two.name, "llama-3-8b_h100_tp2");
  EXPECT_DOUBLE_EQ(two.linear_ns, one.linear_ns / 2);
  EXPECT_DOUBLE_EQ(two.quadratic_ns, one.quadratic_ns / 2);
  EXPECT_EQ(two.microbatch_ns, one.microbatch_ns);
  EXPECT_EQ(two.forward_share, one.forward_share);
  EXPECT_EQ(two.activation_bytes_per_token, one.activation_bytes_per_token / 2);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(two.context[i].bytes_per_token, one.context[i].bytes_per_token / 2);
    EXPECT_EQ(two.context[i].links[0].max_ranks, 4);
    EXPECT_EQ(two.context[i].links[1].max_ranks, 1048576);
  }
  EXPECT_EQ(two.context[1].divides, 4);
}

TEST(Analytic, TakesOfTheExpertsThoseThatATokenPasses) {
  ModelShape dense = model_preset("llama-3-8b");
  ModelShape sparse = dense;
  sparse.sparse_layers = sparse.layers;
  sparse.num_experts = 64;
  sparse.experts_per_token = 4;
  sparse.moe_ffn = dense.ffn / 8;
  sparse.shared_ffn = dense.ffn / 2;
  const Hardware h100 = hardware_preset("h100");
  EXPECT_EQ(analytic_cost(sparse, h100), analytic_cost(dense, h100));
}

TEST(Analytic, NamesWhatItCannotUse) {
  const ModelShape llama = model_preset("llama-3-8b");
  const Hardware h100 = hardware_preset("h100");
  EXPECT_EQ(message_for({}, h100), "[model] hidden is 0, must be an integer from 1 to 262144");
  EXPECT_EQ(message_for(llama, {}), "[analytic] peak_flops is 0, must be above 0");
  EXPECT_EQ(message_for(llama, h100, {.tensor_parallel = 0}),
            "[analytic] tensor_parallel is 0, must divide the 8 devices of a node");
  EXPECT_EQ(message_for(llama, h100, {.tensor_parallel = 3}),
            "[analytic] tensor_parallel is 3, must divide the 8 devices of a node");
  EXPECT_EQ(message_for(model_preset("qwen2.5-7b"), h100, {.tensor_parallel = 8}),
            "[analytic] tensor_parallel is 8, must divide the 4 KV heads");
  Hardware slow = h100;
  slow.network_gb_per_s = 0;
  EXPECT_EQ(message_for(llama, slow), "[analytic] network_gb_per_s is 0, must be above 0");
}

TEST(Analytic, HasOptionsThatReadFromJson) {
  const auto options = options_from_json<AnalyticOptions>(
      Json::parse(R"({"tensor_parallel": 4, "recompute": "full"})"), "analytic");
  EXPECT_EQ(options.tensor_parallel, 4);
  EXPECT_EQ(options.recompute, Recompute::full);
  EXPECT_EQ(options_to_json(AnalyticOptions{}).dump(),
            R"({"tensor_parallel":1,"recompute":"none","keep_gathered_kv":false})");
}

}  // namespace
}  // namespace isochron

#include "isochron/engine/optim/adamw.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "isochron/engine/parallel/world.h"
#include "tests/support/collective_order.h"
#include "tests/support/message_of.h"
#include "tests/support/process_ranks.h"

namespace isochron {
namespace {

constexpr std::int64_t num_rows = 12;
constexpr std::int64_t width = 24;

// y = tanh(x first + bias) second, and a weight that is used twice: loss = sum of squares of a row.
struct Model {
  std::vector<Parameter> parameters;

  explicit Model(at::ScalarType dtype = at::kFloat, std::uint64_t seed = 1) {
    at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
    const auto add = [&](const char* name, at::IntArrayRef shape) {
      parameters.push_back({name, at::randn(shape, generator, at::kFloat).mul_(0.3).to(dtype)});
      parameters.back().value.requires_grad_();
    };
    add("tied", {width, width});
    add("first", {width, 50});
    add("bias", {50});
    add("second", {50, width});
    add("norm", {width});
  }

  // Of rows [begin, end) of a batch.
  [[nodiscard]] at::Tensor loss(std::int64_t begin, std::int64_t end, std::uint64_t batch) const {
    at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(100 + batch);
    const at::Tensor rows = at::randn({num_rows, width}, generator, at::kFloat)
                                .narrow(0, begin, end - begin)
                                .to(parameters[0].value.scalar_type());
    const auto value = [&](std::size_t i) { return parameters[i].value; };
    const at::Tensor hidden =
        at::tanh(at::addmm(value(2), rows.matmul(value(0)), value(1))).matmul(value(3));
    return (hidden * value(4)).matmul(value(0).t()).square().sum() / num_rows;
  }

  [[nodiscard]] std::vector<at::Tensor> values() const {
    std::vector<at::Tensor> values;
    for (const Parameter& parameter : parameters) values.push_back(parameter.value);
    return values;
  }
};

// Rows of a micro-batch of a rank. A rank may have none.
struct Rows {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// An uneven split: rank 0 has a row alone, the last one nothing if there are several.
std::vector<Rows> rows_of(std::int32_t rank, std::int32_t size) {
  if (size == 1) return {{0, 5}, {5, 6}, {6, 12}};
  if (rank == 0) return {{0, 1}};
  if (size == 2) return {{1, 4}, {4, 12}};
  if (rank == size - 1) return {};
  const std::int64_t share = (num_rows - 1) / (size - 2);
  const std::int64_t begin = 1 + (rank - 1) * share;
  const std::int64_t end = rank == size - 2 ? num_rows : begin + share;
  return {{begin, begin + 2}, {begin + 2, end}};
}

UpdateOutcome update(const Model& model, ShardedAdamW& optimizer, const std::vector<Rows>& rows,
                     std::uint64_t batch, bool overlap, double lr = 0.01) {
  optimizer.begin();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i + 1 == rows.size()) optimizer.begin_last_backward(overlap);
    model.loss(rows[i].begin, rows[i].end, batch).backward();
  }
  if (rows.empty()) optimizer.begin_last_backward(overlap);
  return optimizer.finish(lr);
}

// The same updates with torch's own optimizer, on the whole batch.
struct Reference {
  Model model;
  torch::optim::AdamW optimizer;

  explicit Reference(double epsilon = 1e-8)
      : optimizer(model.values(),
                  torch::optim::AdamWOptions(0.01).eps(epsilon).weight_decay(0.01)) {}

  double update(std::uint64_t batch, double clip) {
    optimizer.zero_grad();
    model.loss(0, num_rows, batch).backward();
    const double norm = torch::nn::utils::clip_grad_norm_(model.values(), clip);
    optimizer.step();
    return norm;
  }
};

double largest_difference(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(
        largest,
        (a[i].detach().to(at::kDouble) - b[i].detach().to(at::kDouble)).abs().max().item<double>());
  }
  return largest;
}

bool are_equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!at::equal(a[i], b[i])) return false;
  }
  return true;
}

std::string bytes_of(const std::vector<at::Tensor>& values) {
  std::string bytes;
  for (const at::Tensor& value : values) {
    const at::Tensor flat = value.detach().contiguous();
    bytes.append(static_cast<const char*>(flat.const_data_ptr()), flat.nbytes());
  }
  return bytes;
}

// Small buckets, so that there are several. A large epsilon, since AdamW divides a gradient by its
// own size: with a small one the rounding of a gradient near zero moves a weight by a part of lr.
AdamWOptions options() { return {.epsilon = 0.01, .clip_grad = 0.5, .bucket_bytes = 5000}; }

TEST(AdamW, OneRankEqualsTorch) {
  for (const double clip : {0.5, 1e9}) {
    SCOPED_TRACE(testing::Message() << "clip_grad " << clip);
    World world({}, {});
    Model model;
    ShardedAdamW optimizer(model.parameters, world.all(),
                           {.clip_grad = clip, .bucket_bytes = 5000});
    Reference reference;
    for (std::uint64_t batch = 0; batch < 10; ++batch) {
      const UpdateOutcome outcome = update(model, optimizer, {{0, num_rows}}, batch, true);
      const double norm = reference.update(batch, clip);
      EXPECT_FALSE(outcome.skipped);
      EXPECT_NEAR(outcome.grad_norm, norm, 1e-5 * norm);
      EXPECT_EQ(outcome.grad_norm > clip, clip < 1) << "the clip is tested";
      // Weights are around 0.3 and move by 0.01: a few units in the last place.
      EXPECT_LE(largest_difference(model.values(), reference.model.values()), 2e-7);
    }
    EXPECT_EQ(optimizer.num_updates(), 10);
  }
}

TEST(AdamW, AnyNumberOfRanksEqualsOne) {
  for (const std::int32_t size : {2, 3, 4}) {
    SCOPED_TRACE(testing::Message() << size << " ranks");
    const auto results = run_ranks(size, [](World& world) {
      const std::int32_t rank = world.place().rank;
      Model model(at::kFloat, rank == 0 ? 1 : 77);  // rank 0 decides
      ShardedAdamW optimizer(model.parameters, world.all(), options());
      Reference reference(options().epsilon);
      for (std::uint64_t batch = 0; batch < 4; ++batch) {
        // Ranks need not agree on overlap.
        const bool overlap = (static_cast<std::uint64_t>(rank) + batch) % 2 == 0;
        const auto rows = rows_of(rank, world.place().size);
        const UpdateOutcome outcome = update(model, optimizer, rows, batch, overlap);
        const double norm = reference.update(batch, options().clip_grad);
        EXPECT_NEAR(outcome.grad_norm, norm, 1e-5 * norm);
        EXPECT_LE(largest_difference(model.values(), reference.model.values()), 2e-7);
      }
      return bytes_of(model.values());
    });
    for (const std::string& result : results) {
      EXPECT_FALSE(result.empty());
      EXPECT_EQ(result, results[0]) << "ranks disagree on weights";
    }
  }
}

TEST(AdamW, OverlapChangesNoBit) {
  const auto weights = [](bool overlap) {
    return run_ranks(3, [overlap](World& world) {
      Model model;
      ShardedAdamW optimizer(model.parameters, world.all(), options());
      for (std::uint64_t batch = 0; batch < 2; ++batch) {
        (void)update(model, optimizer, rows_of(world.place().rank, 3), batch, overlap);
      }
      return bytes_of(model.values());
    })[0];
  };
  EXPECT_EQ(weights(true), weights(false));
}

TEST(AdamW, SumsTheGradientOverTheRanksBeforeClipping) {
  run_ranks(3, [](World& world) {
    Model model;
    ShardedAdamW optimizer(model.parameters, world.all(), options());
    Reference reference;
    (void)update(model, optimizer, rows_of(world.place().rank, 3), 0, true);
    (void)reference.update(0, 1e9);
    std::map<std::string, at::Tensor> expected;
    for (const Parameter& parameter : reference.model.parameters) {
      expected[parameter.name] = parameter.value.grad().view(-1);
    }
    const std::vector<StatePiece> pieces = optimizer.gradients();
    EXPECT_FALSE(pieces.empty());
    for (const StatePiece& piece : pieces) {
      EXPECT_EQ(piece.kind, "gradient");
      const at::Tensor part =
          expected[piece.parameter].narrow(0, piece.begin, piece.values.numel());
      EXPECT_TRUE(at::allclose(piece.values, part, 1e-5, 1e-6)) << piece.parameter;
    }
  });
}

TEST(AdamW, KeepsFp32MastersOfBf16Weights) {
  run_ranks(2, [](World& world) {
    Model model(at::kBFloat16);
    ShardedAdamW optimizer(model.parameters, world.all(), {.clip_grad = 1e9, .bucket_bytes = 5000});
    // Masters in fp32, whose gradients are those of a bf16 copy, of each rank's rows in turn.
    Model copy(at::kBFloat16);
    std::vector<at::Tensor> masters;
    for (const Parameter& parameter : copy.parameters) {
      masters.push_back(parameter.value.detach().to(at::kFloat).requires_grad_());
    }
    torch::optim::AdamW reference(masters, torch::optim::AdamWOptions(1e-4).weight_decay(0.01));
    for (std::uint64_t batch = 0; batch < 5; ++batch) {
      (void)update(model, optimizer, rows_of(world.place().rank, 2), batch, true, 1e-4);
      for (at::Tensor& master : masters) master.mutable_grad() = at::zeros_like(master);
      for (std::int32_t rank = 0; rank < 2; ++rank) {
        for (const Rows& rows : rows_of(rank, 2)) {
          for (at::Tensor value : copy.values()) value.mutable_grad() = at::Tensor();
          copy.loss(rows.begin, rows.end, batch).backward();
          for (std::size_t i = 0; i < masters.size(); ++i) {
            masters[i].mutable_grad().add_(copy.parameters[i].value.grad());
          }
        }
      }
      reference.step();
      for (std::size_t i = 0; i < masters.size(); ++i) {
        copy.parameters[i].value.set_data(masters[i].detach().to(at::kBFloat16));
      }
      EXPECT_TRUE(are_equal(model.values(), copy.values())) << batch;
    }
    for (const StatePiece& piece : optimizer.pieces()) {
      EXPECT_EQ(piece.values.scalar_type(), at::kFloat);
      EXPECT_EQ(piece.values.dim(), 1);
    }
  });
}

TEST(AdamW, AGradientThatIsNotFiniteOnOneRankSkipsTheUpdateOnAll) {
  run_ranks(3, [](World& world) {
    Model model;
    ShardedAdamW optimizer(model.parameters, world.all(), options());
    (void)update(model, optimizer, rows_of(world.place().rank, 3), 0, true);
    std::vector<at::Tensor> before;
    for (const at::Tensor& value : model.values()) before.push_back(value.detach().clone());
    optimizer.begin();
    optimizer.begin_last_backward(true);
    if (world.place().rank == 1) {
      (model.loss(0, 3, 1) * std::numeric_limits<double>::infinity()).backward();
    }
    const UpdateOutcome outcome = optimizer.finish(0.01);
    EXPECT_TRUE(outcome.skipped);
    EXPECT_FALSE(std::isfinite(outcome.grad_norm));
    EXPECT_EQ(optimizer.num_updates(), 1);
    EXPECT_TRUE(are_equal(model.values(), before));
    const UpdateOutcome next = update(model, optimizer, rows_of(world.place().rank, 3), 2, true);
    EXPECT_FALSE(next.skipped) << "and leaves nothing behind";
  });
}

TEST(AdamW, AParameterWithoutAGradientCountsAsZeros) {
  World world({}, {});
  const at::Tensor used = at::full({3}, 1.0).requires_grad_();
  const at::Tensor unused = at::full({70}, 2.0).requires_grad_();
  ShardedAdamW optimizer({{"used", used}, {"unused", unused}}, world.all(), {});
  optimizer.begin();
  optimizer.begin_last_backward(true);
  used.sum().backward();
  const UpdateOutcome outcome = optimizer.finish(0.1);
  EXPECT_NEAR(outcome.grad_norm, std::sqrt(3.0), 1e-12);
  EXPECT_TRUE(at::equal(unused, at::full({70}, 2.0f * (1 - 0.1f * 0.01f)))) << "decay alone";
  EXPECT_EQ(outcome.skipped, false);
}

TEST(AdamW, AGradientDoesNotReachTheNextUpdate) {
  World world({}, {});
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor always = at::full({3}, 1.0, dtype).requires_grad_();
    const at::Tensor once = at::full({70}, 2.0, dtype).requires_grad_();
    ShardedAdamW optimizer({{"always", always}, {"once", once}}, world.all(), {});
    for (const std::int64_t elements : {73, 3}) {
      optimizer.begin();
      optimizer.begin_last_backward(true);
      (elements == 3 ? always.sum() : always.sum() + once.sum()).backward();
      EXPECT_NEAR(optimizer.finish(0.1).grad_norm, std::sqrt(static_cast<double>(elements)), 1e-12);
    }
  }
}

TEST(AdamW, SpreadsItsStateEvenly) {
  for (const std::int32_t size : {2, 3, 4}) {
    run_ranks(size, [](World& world) {
      std::vector<Parameter> parameters;
      std::int64_t num_elements = 0;
      for (const std::int64_t elements : {100'000, 333, 64, 50'000, 12'345, 64, 200'001}) {
        parameters.push_back({"p", at::zeros({elements}).requires_grad_()});
        num_elements += elements;
      }
      ShardedAdamW optimizer(parameters, world.all(), {.bucket_bytes = 400'000});
      const double share = 12.0 * static_cast<double>(num_elements) / world.place().size;
      EXPECT_NEAR(static_cast<double>(optimizer.state_bytes()), share, 0.05 * share);
    });
  }
}

// The state as text: parameter, kind, begin, count, then the numbers.
std::string saved(ShardedAdamW& optimizer) {
  std::string text;
  for (const StatePiece& piece : optimizer.pieces()) {
    text += fmt::format("{} {} {} {}\n", piece.parameter, piece.kind, piece.begin,
                        piece.values.numel());
    text += bytes_of({piece.values});
  }
  return text;
}

using Whole = std::map<std::pair<std::string, std::string>, std::vector<float>>;

// Puts the pieces of all ranks together; every element is there once.
Whole joined(const std::vector<std::string>& texts, const Model& model) {
  Whole whole;
  for (const Parameter& parameter : model.parameters) {
    for (const char* kind : {"master", "exp_avg", "exp_avg_sq"}) {
      whole[{parameter.name, kind}].assign(static_cast<std::size_t>(parameter.value.numel()), NAN);
    }
  }
  for (const std::string& text : texts) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t line_end = text.find('\n', at);
      char parameter[32], kind[32];
      long begin = 0, count = 0;
      std::sscanf(text.c_str() + at, "%31s %31s %ld %ld", parameter, kind, &begin, &count);
      std::vector<float>& values = whole.at({parameter, kind});
      EXPECT_TRUE(std::isnan(values.at(static_cast<std::size_t>(begin)))) << "twice";
      std::memcpy(values.data() + begin, text.data() + line_end + 1,
                  sizeof(float) * static_cast<std::size_t>(count));
      at = line_end + 1 + sizeof(float) * static_cast<std::size_t>(count);
    }
  }
  for (const auto& [name, values] : whole) {
    for (const float value : values) EXPECT_FALSE(std::isnan(value)) << name.first << name.second;
  }
  return whole;
}

TEST(AdamW, AStateWrittenByThreeRanksContinuesOnAnyNumber) {
  const auto run = [](std::int32_t size, std::uint64_t first, std::uint64_t last,
                      const Whole* whole) {
    return run_ranks(size, [=](World& world) {
      Model model(at::kFloat, whole ? 99 : 1);
      ShardedAdamW optimizer(model.parameters, world.all(), options());
      if (whole) {
        for (StatePiece& piece : optimizer.pieces()) {
          std::vector<float> values = whole->at({piece.parameter, std::string(piece.kind)});
          piece.values.copy_(at::from_blob(values.data() + piece.begin, {piece.values.numel()}));
        }
        optimizer.set_num_updates(static_cast<std::int64_t>(first));
        optimizer.publish_weights();
      }
      for (std::uint64_t batch = first; batch < last; ++batch) {
        (void)update(model, optimizer, rows_of(world.place().rank, world.place().size), batch,
                     true);
      }
      return saved(optimizer);
    });
  };
  const Model shape;
  const Whole uninterrupted = joined(run(3, 0, 3, nullptr), shape);
  const Whole middle = joined(run(3, 0, 2, nullptr), shape);
  EXPECT_NE(uninterrupted, middle);
  EXPECT_EQ(joined(run(3, 2, 3, &middle), shape), uninterrupted) << "bit-equal on the same number";
  for (const std::int32_t size : {1, 2}) {
    const Whole resumed = joined(run(size, 2, 3, &middle), shape);
    for (const auto& [name, values] : uninterrupted) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_NEAR(resumed.at(name)[i], values[i], 5e-7) << size << name.first << name.second;
      }
    }
  }
}

TEST(AdamW, ABucketIsReducedBeforeTheBackwardOfTheNextEnds) {
  run_ranks(
      2,
      [](World& world) {
        const bool overlap = world.place().rank == 0;
        Tracer tracer;
        Model model;
        ShardedAdamW optimizer(model.parameters, world.all(), {.bucket_bytes = 1}, &tracer);
        // A bucket per parameter: when a gradient arrives, how many buckets are under way?
        std::vector<std::size_t> num_under_way(model.parameters.size());
        const std::size_t before = world.issued().size();
        for (std::size_t i = 0; i < model.parameters.size(); ++i) {
          model.parameters[i].value.register_hook(
              [&, i](const at::Tensor&) { num_under_way[i] = world.issued().size() - before; });
        }
        tracer.begin_step();
        optimizer.begin();
        optimizer.begin_last_backward(overlap);
        Nanoseconds backward_end = 0;
        {
          const auto scope = tracer.scope("backward");
          model.loss(0, 6, 0).backward();
          backward_end = tracer.now_ns();
        }
        (void)optimizer.finish(0.01);
        // Backwards: norm, second, bias and first in either order, tied.
        EXPECT_EQ(num_under_way[4], 0u);
        EXPECT_EQ(num_under_way[3], overlap ? 1u : 0u);
        EXPECT_EQ(num_under_way[0], overlap ? 4u : 0u);
        std::size_t num_inside = 0;
        std::size_t num_reduced = 0;
        for (const TracedScope& scope : tracer.scopes()) {
          if (scope.name != "reduce") continue;
          ++num_reduced;
          if (scope.begin_ns < backward_end) ++num_inside;
        }
        EXPECT_EQ(num_reduced, 5u);
        EXPECT_EQ(num_inside, overlap ? 5u : 0u);
        const std::vector<IssuedCollective> issued = world.issued();
        std::vector<std::int64_t> sizes;
        for (std::size_t i = before; i < before + 5; ++i) {
          EXPECT_EQ(issued[i].operation, "reduce");
          sizes.push_back(issued[i].elements);
        }
        EXPECT_EQ(sizes, (std::vector<std::int64_t>{64, 1216, 64, 1216, 576})) << "on both alike";
      },
      {.world = {.timeout = std::chrono::milliseconds{60'000}, .record = true}});
}

// Slot by slot as a plan has them: ranks 0 and 1 share their last slot, ranks 1 to 3 the one
// before; rank 3 ends early. Who overlaps follows from that: only those whose last slot is the last
// one of every member of its group.
TEST(AdamW, CollectivesOfGroupsAndBucketsFitIntoOneOrder) {
  const auto texts =
      run_ranks(4,
                [](World& world) {
                  const std::int32_t rank = world.place().rank;
                  Model model;
                  ShardedAdamW optimizer(model.parameters, world.all(), options());
                  const auto exchange = [&](std::int32_t first, std::int32_t count) {
                    at::Tensor values = at::ones({8});
                    world.group(first, count).all_reduce_sum(values, "exchange");
                    EXPECT_EQ(values[0].item<float>(), static_cast<float>(count));
                  };
                  for (std::uint64_t batch = 0; batch < 2; ++batch) {
                    optimizer.begin();
                    if (rank >= 1) exchange(1, 3);
                    if (rank >= 2) {
                      optimizer.begin_last_backward(false);  // rank 1, a member, goes on
                      model.loss(rank, rank + 1, batch).backward();
                    } else {
                      optimizer.begin_last_backward(true);
                      exchange(0, 2);
                      model.loss(rank, rank + 1, batch).backward();
                    }
                    (void)optimizer.finish(0.01);
                  }
                  return issued_text(world.issued());
                },
                {.world = {.timeout = std::chrono::milliseconds{60'000}, .record = true}});
  std::vector<std::vector<IssuedCollective>> issued;
  for (const std::string& text : texts) issued.push_back(issued_from_text(text));
  EXPECT_EQ(issued[0].size(), issued[3].size()) << "one exchange, all buckets, the norm, a step";
  EXPECT_GT(issued[0].size(), 10u);
  EXPECT_EQ(find_order_violation(issued), std::nullopt);
}

TEST(AdamW, RejectsCallsOutOfOrderAndWhatItCannotTrain) {
  World world({}, {});
  const at::Tensor value = at::ones({3}).requires_grad_();
  {
    ShardedAdamW optimizer({{"p", value}}, world.all(), {});
    EXPECT_EQ(message_of([&] { (void)optimizer.finish(0.1); }),
              "[optimizer] finish() comes after begin_last_backward()");
    EXPECT_EQ(message_of([&] { optimizer.begin_last_backward(true); }),
              "[optimizer] begin_last_backward() comes after begin()");
    EXPECT_EQ(message_of([&] { value.sum().backward(); }),
              "[optimizer] a gradient of p came before begin()");
    optimizer.begin();
    value.sum().backward();
    value.sum().backward();
    optimizer.begin_last_backward(true);
    value.sum().backward();
    EXPECT_EQ(message_of([&] { value.sum().backward(); }),
              "[optimizer] p got a second gradient in the last backward, where its bucket is "
              "reduced");
    EXPECT_EQ(message_of([&] { optimizer.set_num_updates(-1); }),
              "[optimizer] num_updates is -1, must not be negative");
  }
  EXPECT_FALSE(value.grad().defined()) << "the optimizer took its gradients along";
  const auto made = [&](std::vector<Parameter> parameters, AdamWOptions how) {
    return message_of([&] { ShardedAdamW(parameters, world.all(), how); });
  };
  EXPECT_EQ(made({}, {}), "[optimizer] there are 0 parameters, must be at least 1");
  EXPECT_EQ(made({{"q", at::ones({3})}}, {}), "[optimizer] q is not trained");
  EXPECT_EQ(made({{"q", at::ones({3, 2}).t().requires_grad_()}}, {}),
            "[optimizer] q must be contiguous numbers");
  EXPECT_EQ(made({{"p", value}}, {.beta2 = 1}),
            "[optimizer] a beta is 1, must be from 0 to below 1");
  EXPECT_EQ(made({{"p", value}}, {.clip_grad = 0}), "[optimizer] clip_grad is 0, must be above 0");
}

}  // namespace
}  // namespace isochron

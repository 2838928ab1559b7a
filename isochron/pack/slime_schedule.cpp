// build_dp_schedule of slime: pack first, distribute second.
//
// The samples of a step go first fit into bins under the cap; the largest bins are cut in two until
// the number of bins divides over the ranks; each rank gets as many. A bin of one sample cannot be
// cut, which is where it gives up: 5 samples of 9 tokens under a cap of 10 make 5 bins, and 2 ranks
// need 6. The same answers as slime, with a tree of maxima for first fit and a heap for splitting.

#include "isochron/pack/slime_schedule.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <unordered_map>

#include "isochron/balance/karmarkar_karp.h"
#include "isochron/core/require.h"
#include "isochron/pack/room_tree.h"

namespace isochron {
namespace {

template <class... Args>
void require_like_slime(bool condition, fmt::format_string<Args...> message, Args&&... args) {
  if (!condition) throw PeerAssertionError(fmt::format(message, std::forward<Args>(args)...));
}

void require_lengths(std::string_view where, std::span<const Tokens> lengths) {
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    require(lengths[i] >= 0 && lengths[i] <= max_length, where,
            "lengths[{}] is {}, must be from 0 to 2^31 - 1", i, lengths[i]);
  }
}

using Bin = std::vector<SequenceId>;

std::pair<Bin, Bin> split(Bin bin, std::span<const Tokens> lengths) {
  std::stable_sort(bin.begin(), bin.end(), [&](SequenceId a, SequenceId b) {
    return lengths[a.index()] > lengths[b.index()];
  });
  std::pair<Bin, Bin> halves;
  Tokens left = 0;
  Tokens right = 0;
  for (const SequenceId sample : bin) {
    const bool is_left = left <= right;
    (is_left ? halves.first : halves.second).push_back(sample);
    (is_left ? left : right) += lengths[sample.index()];
  }
  return halves;
}

Tokens tokens_of(const Bin& bin, std::span<const Tokens> lengths) {
  Tokens tokens = 0;
  for (const SequenceId sample : bin) tokens += lengths[sample.index()];
  return tokens;
}

std::vector<double> flops_of(std::span<const Tokens> lengths, const SlimeShape& shape) {
  std::vector<double> flops;
  for (const Tokens length : lengths) flops.push_back(slime_forward_flops(length, shape));
  return flops;
}

// The samples of each step: rollouts in order of first occurrence, `per_step` of them.
std::vector<std::vector<SequenceId>> samples_of_steps(std::span<const std::int64_t> rollouts,
                                                      std::int32_t per_step) {
  std::unordered_map<std::int64_t, std::size_t> position_of;
  std::vector<std::vector<SequenceId>> samples_of;
  for (std::size_t i = 0; i < rollouts.size(); ++i) {
    const auto [entry, is_first] = position_of.try_emplace(rollouts[i], samples_of.size());
    if (is_first) samples_of.emplace_back();
    samples_of[entry->second].push_back(SequenceId(static_cast<std::int32_t>(i)));
  }
  const std::size_t num_steps = samples_of.size() / static_cast<std::size_t>(per_step);
  require_like_slime(num_steps >= 1,
                     "num_rollouts ({}) < global_batch_size ({}); need at least one rollout per "
                     "step.",
                     samples_of.size(), per_step);
  std::vector<std::vector<SequenceId>> steps(num_steps);
  for (std::size_t i = 0; i < num_steps * static_cast<std::size_t>(per_step); ++i) {
    std::vector<SequenceId>& step = steps[i / static_cast<std::size_t>(per_step)];
    step.insert(step.end(), samples_of[i].begin(), samples_of[i].end());
  }
  return steps;
}

std::vector<Bin> chunks(std::size_t num_samples, std::int32_t size) {
  std::vector<Bin> bins;
  for (std::size_t i = 0; i < num_samples; ++i) {
    if (i % static_cast<std::size_t>(size) == 0) bins.emplace_back();
    bins.back().push_back(SequenceId(static_cast<std::int32_t>(i)));
  }
  return bins;
}

// As many bins as the tokens need at least, of about equal FLOPs. The cap is not kept.
std::vector<Bin> bins_by_flops(std::span<const Tokens> lengths, Tokens cap,
                               const SlimeShape& shape) {
  const Tokens total = std::accumulate(lengths.begin(), lengths.end(), Tokens{0});
  const Tokens count = std::max<Tokens>(1, total / cap + (total % cap != 0 ? 1 : 0));
  if (count >= static_cast<Tokens>(lengths.size())) return chunks(lengths.size(), 1);
  return balanced_partitions(flops_of(lengths, shape), static_cast<std::int32_t>(count),
                             PartSizes::free);
}

// Micro-batches of each rank.
std::vector<std::vector<SequenceId>> bins_of_ranks(const std::vector<Bin>& bins,
                                                   std::span<const Tokens> lengths,
                                                   const SlimeShape& shape,
                                                   const SlimeScheduleOptions& options) {
  if (options.balance_data) {
    const std::vector<double> flops = flops_of(lengths, shape);
    std::vector<double> weights;
    for (const Bin& bin : bins) {
      weights.push_back(0);
      for (const SequenceId sample : bin) weights.back() += flops[sample.index()];
    }
    return balanced_partitions(weights, options.dp_size, PartSizes::equal);
  }
  std::vector<std::vector<SequenceId>> bins_of(static_cast<std::size_t>(options.dp_size));
  for (std::size_t i = 0; i < bins.size(); ++i) {
    bins_of[i % bins_of.size()].push_back(SequenceId(static_cast<std::int32_t>(i)));
  }
  return bins_of;
}

void require_options(const SlimeShape& shape, const SlimeScheduleOptions& options) {
  constexpr std::string_view where = "slime_schedule";
  const auto require_positive = [&](std::string_view name, std::int64_t value) {
    require(value >= 1, where, "{} is {}, must be at least 1", name, value);
  };
  require_positive("global_batch_size", options.global_batch_size);
  require_positive("dp_size", options.dp_size);
  require_positive("cp_size", options.cp_size);
  require_positive("vpp_size", options.vpp_size);
  require_positive("microbatch_group_size_per_vp_stage",
                   options.microbatch_group_size_per_vp_stage);
  if (options.use_dynamic_batch_size) {
    require(options.max_tokens_per_gpu.has_value(), where,
            "max_tokens_per_gpu is not given, a dynamic batch size needs it");
    require_positive("max_tokens_per_gpu", *options.max_tokens_per_gpu);
    require(*options.max_tokens_per_gpu <= max_total_cost / options.cp_size, where,
            "max_tokens_per_gpu {} times cp_size {} is more than 2^62", *options.max_tokens_per_gpu,
            options.cp_size);
  } else {
    require(options.micro_batch_size.has_value(), where,
            "micro_batch_size is not given, a static batch size needs it");
    require_positive("micro_batch_size", *options.micro_batch_size);
  }
  if (options.balance_data || (options.use_dynamic_batch_size && options.balance_by_flops)) {
    (void)slime_forward_flops(0, shape);  // rejects a shape that is not given
  }
}

}  // namespace

std::vector<std::vector<SequenceId>> slime_first_fit_pack(std::span<const Tokens> lengths,
                                                          Tokens max_tokens) {
  constexpr std::string_view where = "slime_first_fit_pack";
  require_lengths(where, lengths);
  require(max_tokens >= 1 && max_tokens <= max_total_cost, where,
          "max_tokens is {}, must be from 1 to 2^62", max_tokens);
  RoomTree rooms(lengths.size(), {.tokens = max_tokens, .size = max_length});
  std::vector<Bin> bins;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const Room wanted{.tokens = lengths[i], .size = 1};
    // A sample above the cap opens a bin, and leaves no room in it.
    const std::size_t bin = lengths[i] > max_tokens ? bins.size() : rooms.first_with(wanted);
    rooms.take(bin, wanted);
    if (bin == bins.size()) bins.emplace_back();
    bins[bin].push_back(SequenceId(static_cast<std::int32_t>(i)));
  }
  return bins;
}

std::vector<std::vector<SequenceId>> slime_expand_bins(std::vector<std::vector<SequenceId>> bins,
                                                       std::int64_t target,
                                                       std::span<const Tokens> lengths) {
  constexpr std::string_view where = "slime_expand_bins";
  require_lengths(where, lengths);
  std::priority_queue<std::pair<Tokens, std::size_t>> splittable;
  const auto offer = [&](std::size_t i) {
    if (bins[i].size() > 1) splittable.emplace(tokens_of(bins[i], lengths), i);
  };
  for (std::size_t i = 0; i < bins.size(); ++i) {
    for (const SequenceId sample : bins[i]) {
      require(sample.value() >= 0 && sample.index() < lengths.size(), where,
              "bins[{}] has sample {}, must be from 0 to {}", i, sample.value(),
              static_cast<std::int64_t>(lengths.size()) - 1);
    }
    offer(i);
  }
  while (static_cast<std::int64_t>(bins.size()) < target && !splittable.empty()) {
    const std::size_t i = splittable.top().second;
    splittable.pop();
    auto [left, right] = split(std::move(bins[i]), lengths);
    bins[i] = std::move(left);
    bins.push_back(std::move(right));
    offer(i);
    offer(bins.size() - 1);
  }
  return bins;
}

double slime_forward_flops(Tokens length, const SlimeShape& shape) {
  constexpr std::string_view where = "slime_forward_flops";
  require(length >= 0 && length <= max_length, where, "length is {}, must be from 0 to 2^31 - 1",
          length);
  // Four factors of 31 bits and a few fit 128.
  SlimeShape::describe([&](const auto& field) {
    const std::int64_t value = shape.*field.member;
    require(value >= 1 && value < std::int64_t{1} << 31, where,
            "{} is {}, must be from 1 to 2^31 - 1", field.key, value);
  });
  // Integers where Python has integers, rounded where it meets a float: the same bits.
  __extension__ using Integer = __int128;
  const Integer s = length;
  const Integer h = shape.hidden_size;
  const Integer q_width = Integer{shape.num_attention_heads} * shape.kv_channels;
  const Integer kv_width = Integer{shape.num_query_groups} * shape.kv_channels;
  const double projections = static_cast<double>(2 * s * h * q_width + 4 * s * h * kv_width);
  const double scores = static_cast<double>(q_width * s * s);  // causal: half of 2 s^2
  const double values = static_cast<double>(q_width * s * s);
  const double output = static_cast<double>(2 * s * h * h);
  const double mlp = static_cast<double>(6 * s * h * shape.ffn_hidden_size);
  const double layer = projections + (scores + values) + output + mlp;
  return layer * static_cast<double>(shape.num_layers) +
         static_cast<double>(2 * s * h * shape.vocab_size);
}

SlimeSchedule slime_schedule(std::span<const Tokens> lengths,
                             std::span<const std::int64_t> rollouts, const SlimeShape& shape,
                             const SlimeScheduleOptions& options) {
  constexpr std::string_view where = "slime_schedule";
  require(lengths.size() == rollouts.size(), where, "{} lengths and {} rollouts differ",
          lengths.size(), rollouts.size());
  require_lengths(where, lengths);
  require_options(shape, options);
  const Tokens cap = options.max_tokens_per_gpu.value_or(0) * options.cp_size;
  const std::int64_t group = options.vpp_size > 1 ? options.microbatch_group_size_per_vp_stage : 1;
  const std::int64_t align_to = options.dp_size * group;

  const auto num_ranks = static_cast<std::size_t>(options.dp_size);
  SlimeSchedule schedule;
  const std::vector<std::vector<SequenceId>> steps =
      samples_of_steps(rollouts, options.global_batch_size);
  schedule.partitions.resize(num_ranks);
  schedule.micro_batch_indices.resize(num_ranks);
  for (std::size_t step = 0; step < steps.size(); ++step) {
    const std::vector<SequenceId>& samples = steps[step];
    require_like_slime(samples.size() >= num_ranks,
                       "step {}: {} samples < dp_size {}; each step needs at least one sample per "
                       "rank.",
                       step, samples.size(), options.dp_size);
    std::vector<Tokens> step_lengths;
    for (const SequenceId sample : samples) step_lengths.push_back(lengths[sample.index()]);

    // Ids inside a bin count the samples of the step.
    std::vector<Bin> bins;
    if (!options.use_dynamic_batch_size) {
      bins = chunks(samples.size(), *options.micro_batch_size);
    } else if (options.balance_by_flops) {
      bins = bins_by_flops(step_lengths, cap, shape);
    } else {
      bins = slime_first_fit_pack(step_lengths, cap);
    }
    const auto num_bins = static_cast<std::int64_t>(bins.size());
    const std::int64_t target = std::max((num_bins + align_to - 1) / align_to * align_to, align_to);
    if (options.use_dynamic_batch_size) {
      bins = slime_expand_bins(std::move(bins), target, step_lengths);
      require_like_slime(static_cast<std::int64_t>(bins.size()) == target,
                         "dynamic path: could only produce {} mbs after maximal splitting; need "
                         "{}. step {} has {} "
                         "samples, below the alignment threshold ({}).",
                         bins.size(), target, step, samples.size(), align_to);
    } else {
      require_like_slime(
          num_bins == target,
          "static path: num_mbs ({}) is not a multiple of dp_size * mb_group ({}); got "
          "step_size={}, micro_batch_size={}, dp_size={}, mb_group={}. Splitting static mbs would "
          "break the fixed-size invariant; adjust the config so step_size % (dp_size * "
          "micro_batch_size * mb_group) == 0.",
          num_bins, align_to, samples.size(), *options.micro_batch_size, options.dp_size, group);
    }

    const auto bins_of = bins_of_ranks(bins, step_lengths, shape, options);
    for (std::size_t rank = 0; rank < num_ranks; ++rank) {
      std::vector<SequenceId>& partition = schedule.partitions[rank];
      for (const SequenceId bin : bins_of[rank]) {
        std::vector<std::int32_t> positions;
        for (const SequenceId sample : bins[bin.index()]) {
          positions.push_back(static_cast<std::int32_t>(partition.size()));
          partition.push_back(samples[sample.index()]);
        }
        schedule.micro_batch_indices[rank].push_back(std::move(positions));
      }
    }
    schedule.num_microbatches.push_back(static_cast<std::int32_t>(bins.size() / num_ranks));
    schedule.global_batch_sizes.push_back(options.global_batch_size);
  }
  return schedule;
}

std::int32_t slime_min_microbatches(std::span<const Tokens> lengths, Tokens max_tokens) {
  return static_cast<std::int32_t>(slime_first_fit_pack(lengths, max_tokens).size());
}

std::vector<std::vector<SequenceId>> slime_capped_partitions(std::span<const Tokens> lengths,
                                                             std::int32_t count,
                                                             Tokens max_tokens) {
  require(count >= 1, "slime_capped_partitions", "count is {}, must be at least 1", count);
  for (const Tokens length : lengths) {
    require_like_slime(length <= max_tokens, "This should never happen.");
  }
  std::vector<Bin> bins = slime_first_fit_pack(lengths, max_tokens);
  require_like_slime(bins.size() <= static_cast<std::size_t>(count), "This should never happen.");
  bins.resize(static_cast<std::size_t>(count));
  return bins;
}

}  // namespace isochron

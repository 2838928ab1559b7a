// Prints what the planner answers on fixed batches, a line with a hash per answer and one over all.
//
//   print_plans [--threads N]
//
// compare_builds.py builds it with several compilers and flags: every byte must be equal. With
// --threads, N threads answer everything at the same time, and each must answer the same.

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "isochron/balance/balance.h"
#include "isochron/core/batch.h"
#include "isochron/core/random.h"
#include "isochron/cost/cost_model.h"
#include "isochron/pack/pack.h"
#include "isochron/plan/plan.h"
#include "tests/support/step_question.h"

namespace isochron {
namespace {

// FNV-1a over bytes, integers as eight bytes with the lowest first.
class Hash {
 public:
  void add(std::string_view text) {
    add(static_cast<std::int64_t>(text.size()));
    for (const char c : text) add_byte(static_cast<unsigned char>(c));
  }
  void add(std::int64_t value) {
    for (int shift = 0; shift < 64; shift += 8) {
      add_byte(static_cast<unsigned char>((static_cast<std::uint64_t>(value) >> shift) & 0xff));
    }
  }
  void add(double value) { add(std::bit_cast<std::int64_t>(value)); }
  void add(SequenceId id) { add(std::int64_t{id.value()}); }
  template <class T>
  void add(const std::vector<T>& values) {
    add(static_cast<std::int64_t>(values.size()));
    for (const T& value : values) add(value);
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  void add_byte(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001b3ull; }
  std::uint64_t value_ = 0xcbf29ce484222325ull;
};

std::string hex(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, value);
  return text;
}

void add(Hash& hash, const Balance& balance) {
  hash.add(name_of(balance.status));
  hash.add(balance.reason);
  hash.add(balance.max_cost);
  hash.add(balance.mean_cost);
  hash.add(balance.lower_bound);
  hash.add(balance.sequences_of_rank);
}

void add(Hash& hash, const Packing& packing) {
  hash.add(name_of(packing.status));
  hash.add(packing.reason);
  hash.add(std::int64_t{packing.lower_bound});
  hash.add(packing.max_cost);
  hash.add(packing.max_cost_bound);
  hash.add(packing.microbatches);
  hash.add(packing.oversized);
  hash.add(packing.dropped);
}

void add(Hash& hash, const StepPlan& plan) { hash.add(to_json(plan)); }

struct Instance {
  std::string name;
  std::vector<Tokens> lengths;
  std::vector<Nanoseconds> costs;
  std::vector<PromptGroupId> groups;  // runs of 1 to 4, none across a multiple of `minibatch`
  std::int32_t minibatch = 0;
  Tokens capacity = 0;

  [[nodiscard]] Sequences sequences() const {
    return {.lengths = lengths, .costs = costs, .groups = groups};
  }
  [[nodiscard]] Tokens total() const {
    Tokens sum = 0;
    for (const Tokens length : lengths) sum += length;
    return sum;
  }
};

// Lengths of several kinds: few distinct values (ties decide), any value, a long tail.
Instance make_instance(std::uint64_t seed) {
  Random random(seed);
  Instance instance;
  const auto count = static_cast<std::int32_t>(random.between(1, seed % 8 == 7 ? 600 : 60));
  switch (seed % 3) {
    case 0:
      instance.name = "ties";
      for (std::int32_t i = 0; i < count; ++i) instance.lengths.push_back(random.between(1, 6));
      break;
    case 1:
      instance.name = "uniform";
      for (std::int32_t i = 0; i < count; ++i) instance.lengths.push_back(random.between(1, 9999));
      break;
    default:
      instance.name = "long_tailed";
      instance.lengths = long_tailed_lengths(count, seed);
  }
  instance.name += " " + std::to_string(seed) + " of " + std::to_string(count);
  for (const Tokens s : instance.lengths) instance.costs.push_back(24576 * s + s * s);
  instance.minibatch = static_cast<std::int32_t>(random.between(2, 24));
  std::int32_t group = -1;
  std::int64_t left = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    if (left == 0 || i % instance.minibatch == 0) {
      left = random.between(1, 4);
      ++group;
    }
    instance.groups.emplace_back(group);
    --left;
  }
  const Tokens longest = *std::max_element(instance.lengths.begin(), instance.lengths.end());
  // From too small for the longest sequence to room for several of them.
  instance.capacity = std::max<Tokens>(1, longest * random.between(8, 40) / 10);
  return instance;
}

using Lines = std::vector<std::string>;

template <class Solve>
void answer(Lines& lines, std::string name, Solve solve) {
  Hash hash;
  std::string_view outcome = "rejected";
  try {
    const auto result = solve();
    outcome = name_of(result.status);
    add(hash, result);
  } catch (const std::invalid_argument& error) {  // the message is part of the contract
    hash.add(error.what());
  }
  lines.push_back(std::move(name) + ": " + std::string(outcome) + " " + hex(hash.value()));
}

// Digits of a number: counting it up visits every combination of choices.
class Choices {
 public:
  explicit Choices(std::uint64_t combination) : rest_(combination) {}

  template <class T>
  T from(std::initializer_list<T> values) {
    const T value = values.begin()[rest_ % values.size()];
    rest_ /= values.size();
    return value;
  }

 private:
  std::uint64_t rest_;
};

// Every combination of options many times, each on a batch of its own.
void answer_balance(Lines& lines) {
  for (std::uint64_t seed = 0; seed < 32 * 32; ++seed) {
    const Instance instance = make_instance(seed);
    const auto ranks = static_cast<std::int32_t>(Random(seed).between(1, 16));
    const Tokens share = instance.total() / ranks + 1;
    Choices choices(seed);
    const BalanceOptions options{
        .equal_count = choices.from({false, true}),
        .keep_groups = choices.from({KeepGroups::none, KeepGroups::rank}),
        .minibatch = choices.from({0, instance.minibatch}),
        .capacity = choices.from({Tokens{0}, share + instance.capacity / 4}),
        .order = choices.from({Order::index, Order::small_ends})};
    answer(lines, "balance " + instance.name + " on " + std::to_string(ranks),
           [&] { return balance(instance.sequences(), ranks, options); });
  }
}

void answer_pack(Lines& lines) {
  for (std::uint64_t seed = 0; seed < 384 * 4; ++seed) {
    const Instance instance = make_instance(100'000 + seed);
    const auto least = static_cast<std::int32_t>(instance.total() / instance.capacity + 1);
    // Up to half more than the least, sometimes more than there are sequences.
    const auto wanted = static_cast<std::int32_t>(least + Random(seed).between(0, least / 2 + 2));
    Choices choices(seed);
    const std::int32_t multiple = choices.from({1, 4});
    const std::int32_t count = (wanted + multiple - 1) / multiple * multiple;
    const PackOptions options{
        .capacity = instance.capacity,
        .multiple = multiple,
        .min_count = choices.from({0, wanted}),
        .count = choices.from({std::optional<std::int32_t>{}, std::optional(count)}),
        .max_sequences = choices.from({0, 3}),
        .oversize = choices.from({Oversize::error, Oversize::alone}),
        .short_ = choices.from({Short::empty, Short::error, Short::drop}),
        .keep_groups = choices.from({KeepGroups::none, KeepGroups::microbatch}),
        .order = choices.from({Order::index, Order::small_ends})};
    answer(lines, "pack " + instance.name, [&] { return pack(instance.sequences(), options); });
  }
}

// Steps under every combination of options, and a large one in every mode with all else left alone.
void answer_steps(Lines& lines) {
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const StepQuestion question = random_step_question(seed);
    answer(lines, "step " + std::to_string(seed), [&] {
      return plan_step(question.batch, question.topology, question.cost, question.options);
    });
  }
  Batch batch;
  batch.lengths = long_tailed_lengths(256, 7);
  const CostModel cost = cost_preset("qwen3-8b_h100");
  for (const std::string context : {"static:4", "dynamic", "dynamic:any"}) {
    for (const Sync sync : {Sync::step, Sync::microbatch}) {
      for (const std::int32_t stages : {1, 4}) {
        const Topology topology = {.ranks = 32, .capacity = 16'384, .pipeline = {.stages = stages}};
        const PlanOptions options = {.context = context, .sync = sync, .oversize = Oversize::alone};
        answer(lines,
               "step " + context + " " + std::string(name_of(sync)) + " " + std::to_string(stages),
               [&] { return plan_step(batch, topology, cost, options); });
      }
    }
  }
}

// Costs so large that the last bit of a double is above one nanosecond: rounding hides nothing.
CostModel unrounded_model() {
  return {.name = "unrounded",
          .quadratic_ns = 0.7,
          .linear_ns = 12345.6789,
          .microbatch_ns = 1e17 / 3,
          .context = {{.kind = ContextKind::all_gather_kv,
                       .bytes_per_token = 98765.4321,
                       .links = {{.max_ranks = 64, .gb_per_s = 1.1e-4, .latency_us = 1e14 / 7}},
                       .overlap = 0.3}}};
}

void answer_cost(Lines& lines, const CostModel& model, int max_length_bits) {
  Random random(42);
  Hash hash;
  hash.add(to_json(model));
  hash.add(microbatch_cost(model));
  for (int i = 0; i < 200; ++i) {
    const Tokens length = random.between(1, std::int64_t{1} << random.between(1, max_length_bits));
    const Nanoseconds extra = random.between(0, 1'000'000);
    hash.add(sequence_cost(model, length, extra));
    const std::int64_t size = random.between(1, 16);
    const RankRange ranks{.first = size * random.between(0, 3), .size = size};
    for (const ContextCost& context : model.context) {
      hash.add(find_sequence_cost(model, context, ranks, length, extra).value_or(-1));
      if (const auto link = find_link(context, ranks)) hash.add(link_latency(*link));
    }
  }
  lines.push_back("cost " + model.name + " " + hex(hash.value()));
}

// Batches as large as real ones, with all options left alone.
void answer_large(Lines& lines) {
  for (const std::int32_t count : {1024, 4096}) {
    const std::vector<Tokens> lengths = long_tailed_lengths(count, 7);
    std::vector<Nanoseconds> costs;
    for (const Tokens s : lengths) costs.push_back(24576 * s + s * s);
    for (const std::int32_t ranks : {8, 64}) {
      const std::string name = std::to_string(count) + " on " + std::to_string(ranks);
      answer(lines, "balance " + name, [&] { return balance(costs, ranks); });
      answer(lines, "balance equal " + name,
             [&] { return balance(costs, ranks, {.equal_count = true}); });
    }
    for (const Tokens capacity : {131072, 524288}) {
      answer(lines, "pack " + std::to_string(count) + " under " + std::to_string(capacity),
             [&] { return pack(lengths, costs, {.capacity = capacity}); });
    }
  }
}

Lines all_answers() {
  Lines lines;
  answer_balance(lines);
  answer_pack(lines);
  answer_large(lines);
  answer_steps(lines);
  answer_cost(lines, unrounded_model(), 30);
  for (const std::string& name : cost_names()) answer_cost(lines, cost_preset(name), 20);
  return lines;
}

int run(int num_threads) {
  std::vector<Lines> answers(static_cast<std::size_t>(num_threads));
  std::vector<std::thread> threads;
  for (Lines& lines : answers) threads.emplace_back([&lines] { lines = all_answers(); });
  for (std::thread& thread : threads) thread.join();
  Hash total;
  for (const std::string& line : answers.front()) {
    std::printf("%s\n", line.c_str());
    total.add(line);
  }
  std::printf("%zu answers %s\n", answers.front().size(), hex(total.value()).c_str());
  const bool is_equal = std::all_of(answers.begin(), answers.end(),
                                    [&](const Lines& lines) { return lines == answers.front(); });
  if (!is_equal) std::fprintf(stderr, "print_plans: threads answer differently\n");
  return is_equal ? 0 : 1;
}

}  // namespace
}  // namespace isochron

int main(int argc, char** argv) {
  int num_threads = 1;
  if (argc == 3 && std::strcmp(argv[1], "--threads") == 0) num_threads = std::atoi(argv[2]);
  if (num_threads < 1 || (argc != 1 && argc != 3)) {
    std::fprintf(stderr, "print_plans: usage: print_plans [--threads N]\n");
    return 2;
  }
  return isochron::run(num_threads);
}

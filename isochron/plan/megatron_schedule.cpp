// One micro-batch after the other. The longest sequence opens a group of as many ranks as it needs,
// a power of two. Each next one, longest first, joins a group or opens one on free ranks, of its
// own need or wider, wherever the largest work of a rank (length^2 / ranks) stays smallest, unless
// that exceeds 1.05 * longest * capacity; else it waits for the next micro-batch. Ranks left empty
// are given to the smallest groups by doubling, or else one group on all ranks takes what fits.
//
// All quantities are exact in double: sums of lengths and squares over powers of two.

#include "isochron/plan/megatron_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace isochron {

namespace {

constexpr double slack_of_work = 1.05;

struct Failure : std::runtime_error {
  Failure(MegatronFailure which, const std::string& text) : std::runtime_error(text), kind(which) {}
  MegatronFailure kind;
};

struct Group {
  std::int64_t size = 1;
  std::vector<std::size_t> sequences;
  double work = 0;             // of each rank
  double tokens_per_rank = 0;  // packed
};
using Groups = std::vector<Group>;  // on consecutive ranks from 0 on

std::int64_t num_ranks(const Groups& groups) {
  return std::accumulate(groups.begin(), groups.end(), std::int64_t{0},
                         [](std::int64_t sum, const Group& group) { return sum + group.size; });
}

class Scheduler {
 public:
  Scheduler(std::span<const Tokens> lengths, const MegatronOptions& options)
      : lengths_(lengths), options_(options) {}

  [[nodiscard]] std::vector<Groups> run() const {
    std::vector<std::size_t> rest(lengths_.size());
    std::iota(rest.begin(), rest.end(), std::size_t{0});
    std::vector<Groups> microbatches;
    while (!rest.empty()) {
      std::stable_sort(rest.begin(), rest.end(),
                       [&](std::size_t a, std::size_t b) { return lengths_[a] > lengths_[b]; });
      microbatches.push_back(next_microbatch(rest));
    }
    return microbatches;
  }

 private:
  [[nodiscard]] double tokens_per_rank(std::size_t sequence, std::int64_t size) const {
    const Tokens length = lengths_[sequence];
    const Tokens counted = options_.pad_for_tensor_parallel == 0
                               ? length
                               : padded_length(length, size, options_.pad_for_tensor_parallel);
    return static_cast<double>(counted) / static_cast<double>(size);
  }

  [[nodiscard]] double work(std::size_t sequence, std::int64_t size) const {
    const auto length = static_cast<double>(lengths_[sequence]);
    return length * length / static_cast<double>(size);
  }

  [[nodiscard]] bool fits(double tokens) const {
    return tokens <= static_cast<double>(options_.capacity);
  }

  [[nodiscard]] std::int64_t ranks_needed(std::size_t sequence) const {
    std::int64_t size = options_.min_context_size;
    while (size < max_length && !fits(tokens_per_rank(sequence, size))) size *= 2;
    return size;
  }

  void join(Group& group, std::size_t sequence) const {
    group.sequences.push_back(sequence);
    group.work += work(sequence, group.size);
    group.tokens_per_rank += tokens_per_rank(sequence, group.size);
  }

  [[nodiscard]] Group resized(const Group& group, std::int64_t size) const {
    Group result{.size = size, .sequences = {}};
    for (const std::size_t sequence : group.sequences) join(result, sequence);
    return result;
  }

  // Takes what it places out of `rest`, which is longest first.
  Groups next_microbatch(std::vector<std::size_t>& rest) const {
    const std::size_t longest = rest.front();
    const std::int64_t size = ranks_needed(longest);
    if (size > options_.ranks) {
      throw Failure(
          MegatronFailure::assertion,
          fmt::format(
              "Sequence length {} requires CP size {}, but only {} DPxCP ranks are available.",
              lengths_[longest], size, options_.ranks));
    }
    const double most_work = slack_of_work * static_cast<double>(lengths_[longest]) *
                             static_cast<double>(options_.capacity);
    Groups groups(1, Group{.size = size, .sequences = {}});
    join(groups[0], longest);
    std::vector<std::size_t> left;
    for (auto it = rest.begin() + 1; it != rest.end(); ++it) {
      if (!place(groups, *it, most_work)) left.push_back(*it);
    }
    while (num_ranks(groups) < options_.ranks) {
      if (double_one(groups)) continue;
      left.clear();
      groups = {one_on_all_ranks(rest, left)};
    }
    rest = std::move(left);
    return groups;
  }

  // The first of the candidates with the smallest work: sizes ascending; of a size first the groups
  // there are, oldest first, then a new one.
  bool place(Groups& groups, std::size_t sequence, double most_work) const {
    double highest = 0;
    for (const Group& group : groups) highest = std::max(highest, group.work);
    const std::int64_t num_free = options_.ranks - num_ranks(groups);
    double least = 0;
    std::int64_t best_size = 0;  // 0: no candidate
    std::size_t best_group = 0;  // groups.size(): a new one
    const auto weigh = [&](double work_there, std::int64_t size, std::size_t group) {
      const double projected = std::max(highest, work_there);
      if (projected > most_work || (best_size != 0 && projected >= least)) return;
      least = projected;
      best_size = size;
      best_group = group;
    };
    for (std::int64_t size = ranks_needed(sequence); size <= options_.ranks; size *= 2) {
      const double extra = work(sequence, size);
      const double tokens = tokens_per_rank(sequence, size);
      for (std::size_t i = 0; i < groups.size(); ++i) {
        if (groups[i].size == size && fits(groups[i].tokens_per_rank + tokens)) {
          weigh(groups[i].work + extra, size, i);
        }
      }
      if (num_free >= size) weigh(extra, size, groups.size());
    }
    if (best_size == 0) return false;
    if (best_group == groups.size()) groups.push_back({.size = best_size, .sequences = {}});
    join(groups[best_group], sequence);
    return true;
  }

  // Gives the first of the smallest groups that can grow as many ranks again; the groups behind it
  // move on, without a look at whether there are ranks for them.
  bool double_one(Groups& groups) const {
    std::int64_t smallest = options_.ranks;
    for (const Group& group : groups) smallest = std::min(smallest, group.size);
    std::int64_t first = 0;
    for (Group& group : groups) {
      const std::int64_t first_behind = first + group.size;
      first = first_behind;
      if (group.size != smallest || first_behind + smallest > options_.ranks) continue;
      const Group doubled = resized(group, 2 * smallest);
      // Padding to more ranks may take more room; this only concerns padded lengths.
      if (!fits(doubled.tokens_per_rank)) continue;
      if (num_ranks(groups) + smallest > options_.ranks) {
        throw Failure(MegatronFailure::index, "list assignment index out of range");
      }
      group = doubled;
      return true;
    }
    return false;
  }

  Group one_on_all_ranks(const std::vector<std::size_t>& rest,
                         std::vector<std::size_t>& left) const {
    Group group{.size = options_.ranks, .sequences = {}};
    for (const std::size_t sequence : rest) {
      if (fits(group.tokens_per_rank + tokens_per_rank(sequence, group.size))) {
        join(group, sequence);
      } else {
        left.push_back(sequence);
      }
    }
    return group;
  }

  std::span<const Tokens> lengths_;
  const MegatronOptions& options_;
};

// Doubles the first group of the smallest size until no rank is empty.
void expand(Groups& groups, std::int64_t ranks) {
  while (num_ranks(groups) < ranks) {
    const std::int64_t smallest = groups.back().size;
    if (num_ranks(groups) + smallest > ranks) {
      throw Failure(MegatronFailure::endless,
                    "align_sample_id_groups does not end: no group can grow into the empty ranks");
    }
    const auto first = std::find_if(groups.begin(), groups.end(),
                                    [&](const Group& group) { return group.size == smallest; });
    first->size *= 2;
  }
}

// The groups from the middle on, which stay, and those before it, which get a micro-batch of their
// own.
Groups split_off_first_half(Groups& groups, std::int64_t ranks) {
  std::int64_t first = 0;
  std::size_t middle = 0;
  for (; first < ranks / 2; ++middle) {
    first += groups[middle].size;
    if (middle > 0 && groups[middle].size > groups[middle - 1].size) {
      throw Failure(MegatronFailure::assertion, "split_group: CP size is not decreasing");
    }
  }
  Groups half(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(middle));
  groups.erase(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(middle));
  expand(half, ranks);
  expand(groups, ranks);
  return half;
}

// Splits micro-batches, last first, round and round, until their number is a multiple.
void align(std::vector<Groups>& microbatches, const MegatronOptions& options) {
  const auto multiple = static_cast<std::size_t>(options.slot_multiple);
  std::size_t num_in_vain = 0;
  std::size_t place = microbatches.size();
  while (microbatches.size() % multiple != 0) {
    if (place == 0) {
      if (num_in_vain >= microbatches.size()) {
        throw Failure(MegatronFailure::assertion,
                      "align_sample_id_groups: no tail microbatch has enough ids to split");
      }
      place = microbatches.size();
    }
    --place;
    if (microbatches[place].size() == 1) {
      ++num_in_vain;
      continue;
    }
    microbatches.push_back(split_off_first_half(microbatches[place], options.ranks));
    num_in_vain = 0;
  }
}

Slot slot_of(const Groups& groups) {
  Slot slot;
  std::int64_t first = 0;
  for (const Group& group : groups) {
    ContextGroup& placed = slot.emplace_back();
    placed.ranks = {.first = first, .size = group.size};
    for (const std::size_t i : group.sequences) {
      placed.sequences.emplace_back(static_cast<std::int32_t>(i));
    }
    first += group.size;
  }
  return slot;
}

}  // namespace

MegatronSchedule megatron_schedule(std::span<const Tokens> lengths,
                                   const MegatronOptions& options) {
  MegatronSchedule schedule;
  try {
    std::vector<Groups> microbatches = Scheduler(lengths, options).run();
    align(microbatches, options);
    for (const Groups& groups : microbatches) schedule.microbatches.push_back(slot_of(groups));
  } catch (const Failure& failure) {
    schedule.failure = failure.kind;
    schedule.error = failure.what();
  }
  return schedule;
}

}  // namespace isochron

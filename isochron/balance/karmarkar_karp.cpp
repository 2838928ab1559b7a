// Largest differencing into k parts (Karmarkar and Karp, 1982; k-way as verl wrote it).
//
// A state is a partition of some items into k sets. The two states with the largest spread (largest
// minus smallest sum) become one: the i-th largest set of the first takes in the i-th smallest of
// the second, so that their differences cancel. Sets are ordered by (sum, number of items, items);
// two sets never share an item, so the first item decides, and the order is total.
//
//   k = 4      A  9 7 5 -        only the non-empty sets are kept. Of A and B with a and b of them
//              B  - 1 4 6        the c = a + b - k smallest of each meet, crosswise; all others
//              =  9 8 9 6        stay as they are, and nothing looks at them.
//
// Each meeting leaves one set less, so that there are n - k of them in all. A heap finds the
// smallest where few meet, a sort where many do, and the smaller of two states moves to the larger.
// O(n log n) where the textbook form, which sorts k sets at each of n merges, takes O(n k log k).

#include "isochron/balance/karmarkar_karp.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <limits>
#include <utility>

#include "isochron/core/radix_sort.h"
#include "isochron/core/require.h"
#include "isochron/core/units.h"

namespace isochron {
namespace {

constexpr std::int32_t none = -1;

template <class T>
struct Part {
  T sum;
  std::int32_t count;
  std::int32_t head;  // first item; the others follow by Differencing::next_
  std::int32_t tail;  // last item
};

template <class T>
bool is_larger(const Part<T>& a, const Part<T>& b) {
  if (a.sum != b.sum) return a.sum > b.sum;
  if (a.count != b.count) return a.count > b.count;
  return a.head > b.head;
}

enum class Layout { any, heap, descending };  // heap: the smallest part in front

template <class T>
struct State {
  std::vector<Part<T>> parts;  // the non-empty ones
  Layout layout = Layout::any;
};

// What decides which state is next.
template <class T>
struct Entry {
  T spread;
  Part<T> largest;
  std::int32_t state;  // none: a single item, which needs no state yet
};

template <class T>
bool is_later(const Entry<T>& a, const Entry<T>& b) {
  if (a.spread != b.spread) return a.spread < b.spread;
  return is_larger(b.largest, a.largest);
}

// Bits that order as the value does, for values of at least 0. Adding 0 makes -0 the same as 0.
std::uint64_t ordered_bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }
std::uint64_t ordered_bits(float value) { return std::bit_cast<std::uint32_t>(value + 0.0f); }
std::uint64_t ordered_bits(double value) { return std::bit_cast<std::uint64_t>(value + 0.0); }

// Items ascending by (value, index).
template <class T>
std::vector<std::int32_t> ascending_items(std::span<const T> values) {
  std::vector<std::uint64_t> keys(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) keys[i] = ordered_bits(values[i]);
  return ascending_positions(std::move(keys));
}

// Whether a sum of these values is the same in every order: whole numbers that do not outgrow the
// mantissa.
template <class T>
bool sums_are_exact(std::span<const T> values) {
  if constexpr (std::floating_point<T>) {
    T room = static_cast<T>(std::int64_t{1} << std::numeric_limits<T>::digits);
    for (const T value : values) {
      if (value > room || std::trunc(value) != value) return false;
      room -= value;
    }
  }
  return true;
}

template <class T>
class Differencing {
 public:
  Differencing(std::span<const T> values, std::size_t num_parts)
      : values_(values),
        num_parts_(num_parts),
        is_exact_(sums_are_exact(values)),
        next_(values.size(), none) {}

  std::vector<std::vector<SequenceId>> partition(PartSizes sizes) {
    const std::vector<std::int32_t> ascending = ascending_items(values_);
    if (sizes == PartSizes::equal) {
      start_from_blocks(ascending);
    } else {
      singles_ = ascending;
    }
    Entry<T> first = pop();
    while (!singles_.empty() || !entries_.empty()) {
      const Entry<T> second = pop();
      push(merge(first, second));
      first = pop();
    }
    return items_of(state_of(first));
  }

 private:
  Part<T> part_of(std::int32_t item) const {
    return {values_[static_cast<std::size_t>(item)], 1, item, item};
  }

  // Each k neighbours of the ascending items make a state, an item a set.
  void start_from_blocks(std::span<const std::int32_t> ascending) {
    const std::size_t num_blocks = ascending.size() / num_parts_;
    states_.resize(num_blocks);
    entries_.resize(num_blocks);
    for (std::size_t block = 0; block < num_blocks; ++block) {
      std::vector<Part<T>>& parts = states_[block].parts;
      parts.resize(num_parts_);
      for (std::size_t i = 0; i < num_parts_; ++i) {
        parts[num_parts_ - 1 - i] = part_of(ascending[block * num_parts_ + i]);
      }
      states_[block].layout = Layout::descending;
      entries_[block] = {parts.front().sum - parts.back().sum, parts.front(),
                         static_cast<std::int32_t>(block)};
    }
    std::make_heap(entries_.begin(), entries_.end(), is_later<T>);
  }

  void push(const Entry<T>& entry) {
    entries_.push_back(entry);
    std::push_heap(entries_.begin(), entries_.end(), is_later<T>);
  }

  // The state of the largest spread; of equal ones that with the larger largest set. Single items
  // are sorted, so that the next of them is the last.
  Entry<T> pop() {
    if (!singles_.empty()) {
      const Part<T> part = part_of(singles_.back());
      const Entry<T> single = {num_parts_ == 1 ? T{0} : part.sum, part, none};
      if (entries_.empty() || is_later(entries_.front(), single)) {
        singles_.pop_back();
        return single;
      }
    }
    std::pop_heap(entries_.begin(), entries_.end(), is_later<T>);
    const Entry<T> entry = entries_.back();
    entries_.pop_back();
    return entry;
  }

  State<T>& state_of(Entry<T>& entry) {
    if (entry.state == none) {
      if (unused_.empty()) {
        entry.state = static_cast<std::int32_t>(states_.size());
        states_.emplace_back();
      } else {
        entry.state = unused_.back();
        unused_.pop_back();
      }
      states_[static_cast<std::size_t>(entry.state)].parts.assign(1, entry.largest);
      states_[static_cast<std::size_t>(entry.state)].layout = Layout::any;
    }
    return states_[static_cast<std::size_t>(entry.state)];
  }

  void take_in(Part<T>& part, const Part<T>& other) {
    if (is_exact_) {
      part.sum += other.sum;
    } else {
      // Item by item: rounding depends on the order.
      for (std::int32_t item = other.head; item != none;
           item = next_[static_cast<std::size_t>(item)]) {
        part.sum += values_[static_cast<std::size_t>(item)];
      }
    }
    next_[static_cast<std::size_t>(part.tail)] = other.head;
    part.count += other.count;
    part.tail = other.tail;
  }

  // Moves the `count` smallest parts to the end, the smallest last.
  void expose_smallest(State<T>& state, std::size_t count) {
    std::vector<Part<T>>& parts = state.parts;
    if (state.layout == Layout::descending) return;
    if (8 * count >= parts.size()) {  // a sort looks at each part about log n < 3 * 8 times
      std::sort(parts.begin(), parts.end(), is_larger<T>);
      state.layout = Layout::descending;
      return;
    }
    if (state.layout != Layout::heap) {
      std::make_heap(parts.begin(), parts.end(), is_larger<T>);
      state.layout = Layout::heap;
    }
    for (std::size_t i = 0; i < count; ++i) {
      std::pop_heap(parts.begin(), parts.end() - static_cast<std::ptrdiff_t>(i), is_larger<T>);
    }
  }

  Entry<T> merge(Entry<T> first, Entry<T> second) {
    state_of(first);
    state_of(second);  // may move the states
    State<T>* a = &state_of(first);
    State<T>* b = &state_of(second);
    const std::size_t num_a = a->parts.size();
    const std::size_t num_b = b->parts.size();
    const std::size_t meeting = std::max(num_a + num_b, num_parts_) - num_parts_;

    Entry<T> merged = {T{0}, {T{0}, 0, none, none}, first.state};
    const auto offer = [&](const Part<T>& part) {
      if (is_larger(part, merged.largest)) merged.largest = part;
    };
    if (meeting < num_a) offer(first.largest);
    if (meeting < num_b) offer(second.largest);
    if (meeting > 0) {
      expose_smallest(*a, meeting);
      expose_smallest(*b, meeting);
      for (std::size_t i = 0; i < meeting; ++i) {
        Part<T>& part = a->parts[num_a - 1 - i];
        take_in(part, b->parts[num_b - meeting + i]);
        offer(part);
      }
    }
    if (num_b > num_a) {
      std::copy(a->parts.end() - static_cast<std::ptrdiff_t>(meeting), a->parts.end(),
                b->parts.end() - static_cast<std::ptrdiff_t>(meeting));
      std::swap(a, b);
      std::swap(merged.state, second.state);
    }
    // The larger state now ends with the joined parts; what is left of the smaller one follows.
    const bool is_heap = a->layout == Layout::heap && b->parts.size() == meeting;
    if (is_heap) {
      for (std::size_t i = meeting; i > 0; --i) {
        std::push_heap(a->parts.begin(), a->parts.end() - static_cast<std::ptrdiff_t>(i - 1),
                       is_larger<T>);
      }
    } else {
      a->parts.insert(a->parts.end(), b->parts.begin(),
                      b->parts.end() - static_cast<std::ptrdiff_t>(meeting));
      a->layout = Layout::any;
    }
    unused_.push_back(second.state);
    merged.spread = merged.largest.sum - smallest_sum(*a);
    return merged;
  }

  T smallest_sum(const State<T>& state) const {
    if (state.parts.size() < num_parts_) return T{0};  // of an empty set
    if (state.layout == Layout::heap) return state.parts.front().sum;
    T smallest = state.parts.front().sum;
    for (const Part<T>& part : state.parts) smallest = std::min(smallest, part.sum);
    return smallest;
  }

  std::vector<std::vector<SequenceId>> items_of(State<T>& state) const {
    std::sort(state.parts.begin(), state.parts.end(), is_larger<T>);
    std::vector<std::vector<SequenceId>> items(state.parts.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      items[i].reserve(static_cast<std::size_t>(state.parts[i].count));
      for (std::int32_t item = state.parts[i].head; item != none;
           item = next_[static_cast<std::size_t>(item)]) {
        items[i].push_back(SequenceId(item));
      }
    }
    return items;
  }

  std::span<const T> values_;
  std::size_t num_parts_;
  bool is_exact_;
  std::vector<std::int32_t> next_;     // item that follows in the same set
  std::vector<std::int32_t> singles_;  // items not yet in a state, ascending
  std::vector<Entry<T>> entries_;      // heap
  std::vector<State<T>> states_;
  std::vector<std::int32_t> unused_;  // states whose memory can serve again
};

template <class T>
void require_partitionable(std::span<const T> values, std::int32_t parts, PartSizes sizes) {
  constexpr const char* where = "karmarkar_karp";
  const std::size_t num_values = values.size();
  require(num_values <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()), where,
          "{} values are more than 2^31 - 1", num_values);
  require(parts >= 1, where, "parts is {}, must be at least 1", parts);
  const auto num_parts = static_cast<std::size_t>(parts);
  require(num_values >= num_parts, where, "{} values are fewer than {} parts", num_values, parts);
  require(sizes == PartSizes::free || num_values % num_parts == 0, where,
          "{} values do not divide into {} parts of equal size", num_values, parts);
  T room = static_cast<T>(max_total_cost);
  if constexpr (std::floating_point<T>) room = std::numeric_limits<T>::max() / 2;
  for (std::size_t i = 0; i < num_values; ++i) {
    if constexpr (std::floating_point<T>) {
      require(std::isfinite(values[i]), where, "values[{}] is {}, must be finite", i, values[i]);
    }
    require(values[i] >= 0, where, "values[{}] is {}, must be at least 0", i, values[i]);
    require(values[i] <= room, where, "values up to values[{}] add up to more than {}", i,
            std::floating_point<T> ? "half the largest number of their type" : "2^62");
    room -= values[i];
  }
}

template <class T>
std::vector<std::vector<SequenceId>> differencing(std::span<const T> values, std::int32_t parts,
                                                  PartSizes sizes) {
  require_partitionable(values, parts, sizes);
  return Differencing<T>(values, static_cast<std::size_t>(parts)).partition(sizes);
}

template <class T>
std::vector<std::vector<SequenceId>> sorted_differencing(std::span<const T> values,
                                                         std::int32_t parts, PartSizes sizes) {
  std::vector<std::vector<SequenceId>> partitions = differencing(values, parts, sizes);
  for (std::vector<SequenceId>& items : partitions) std::sort(items.begin(), items.end());
  return partitions;
}

}  // namespace

std::vector<std::vector<SequenceId>> karmarkar_karp(std::span<const std::int64_t> values,
                                                    std::int32_t parts, PartSizes sizes) {
  return differencing(values, parts, sizes);
}
std::vector<std::vector<SequenceId>> karmarkar_karp(std::span<const float> values,
                                                    std::int32_t parts, PartSizes sizes) {
  return differencing(values, parts, sizes);
}
std::vector<std::vector<SequenceId>> karmarkar_karp(std::span<const double> values,
                                                    std::int32_t parts, PartSizes sizes) {
  return differencing(values, parts, sizes);
}

std::vector<std::vector<SequenceId>> balanced_partitions(std::span<const std::int64_t> values,
                                                         std::int32_t parts, PartSizes sizes) {
  return sorted_differencing(values, parts, sizes);
}
std::vector<std::vector<SequenceId>> balanced_partitions(std::span<const float> values,
                                                         std::int32_t parts, PartSizes sizes) {
  return sorted_differencing(values, parts, sizes);
}
std::vector<std::vector<SequenceId>> balanced_partitions(std::span<const double> values,
                                                         std::int32_t parts, PartSizes sizes) {
  return sorted_differencing(values, parts, sizes);
}

}  // namespace isochron

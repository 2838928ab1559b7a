// First fit, in the order given. Where the tokens would fit into fewer micro-batches, each of these
// is filled in turn: the largest item that is left, and beside it those that leave the least room.
// The largest has to go somewhere, so nothing is lost by that; the room that all of them may leave
// together is known, so a dead end shows early.

#include "isochron/plan/steps/cell_bins.h"

#include <algorithm>

namespace isochron {

namespace {

constexpr std::int32_t max_nodes = 64;       // of the search for one micro-batch
constexpr std::size_t max_tight_items = 96;  // more of them leave little room anyway

}  // namespace

std::int32_t CellBins::pack(std::span<const Tokens> tokens, std::span<const std::int32_t> sequences,
                            std::int64_t& work) {
  const std::int32_t count = first_fit(tokens, sequences);
  work -= static_cast<std::int64_t>(tokens.size());
  if (count < 2 || max_sequences_ > 0 || tokens.size() > max_tight_items) return count;
  Tokens slack = (count - 1) * capacity_;
  std::int32_t num_large = 0;  // no two of which share a micro-batch
  for (const Tokens each : tokens) {
    slack -= each;
    num_large += 2 * each > capacity_ ? 1 : 0;
  }
  if (slack < 0 || num_large >= count || !pack_tightly(tokens, count - 1, slack, work))
    return count;
  return count - 1;
}

std::int32_t CellBins::first_fit(std::span<const Tokens> tokens,
                                 std::span<const std::int32_t> sequences) {
  rooms_.clear();
  bin_of_.resize(tokens.size());
  const Tokens least = tokens.empty() ? 0 : *std::min_element(tokens.begin(), tokens.end());
  const std::int32_t least_seats = max_sequences_ == 0 ? 0 : 1;
  std::size_t num_full = 0;  // of the first bins: they take nothing any more
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::int32_t seats = max_sequences_ == 0 ? 0 : sequences[i];
    while (num_full < rooms_.size() &&
           (rooms_[num_full].tokens < least || rooms_[num_full].sequences < least_seats)) {
      ++num_full;
    }
    std::size_t bin = num_full;
    while (bin < rooms_.size() &&
           (rooms_[bin].tokens < tokens[i] || rooms_[bin].sequences < seats)) {
      ++bin;
    }
    if (bin == rooms_.size()) rooms_.push_back({.tokens = capacity_, .sequences = max_sequences_});
    rooms_[bin].tokens -= tokens[i];
    rooms_[bin].sequences -= seats;
    bin_of_[i] = static_cast<std::int32_t>(bin);
  }
  return static_cast<std::int32_t>(rooms_.size());
}

bool CellBins::pack_tightly(std::span<const Tokens> tokens, std::int32_t count, Tokens slack,
                            std::int64_t& work) {
  left_.resize(tokens.size());
  for (std::size_t i = 0; i < left_.size(); ++i) left_[i] = i;
  std::stable_sort(left_.begin(), left_.end(),
                   [&](std::size_t a, std::size_t b) { return tokens[a] > tokens[b]; });
  std::vector<std::int32_t> bins(tokens.size(), count - 1);  // the last one takes the rest
  for (std::int32_t bin = 0; bin + 1 < count; ++bin) {
    if (left_.empty()) break;
    const Tokens first = tokens[left_.front()];
    if (first > capacity_) return false;
    trial_.places.assign(1, 0);
    best_ = {.places = trial_.places, .room = capacity_ - first};
    std::int32_t nodes = max_nodes;
    fill(tokens, 1, capacity_ - first, slack / (count - bin), nodes);
    work -= max_nodes - nodes;
    slack -= best_.room;
    if (slack < 0) return false;
    for (std::size_t k = best_.places.size(); k-- > 0;) {
      const std::size_t place = best_.places[k];
      bins[left_[place]] = bin;
      left_.erase(left_.begin() + static_cast<std::ptrdiff_t>(place));
    }
  }
  bin_of_ = std::move(bins);
  return true;  // the last one has room: what all may leave is not used up
}

// Adds items from a place on to the trial, each with and without. Ends at `enough` room or less.
void CellBins::fill(std::span<const Tokens> tokens, std::size_t from, Tokens room, Tokens enough,
                    std::int32_t& nodes) {
  if (room < best_.room) {
    best_.places = trial_.places;
    best_.room = room;
  }
  for (std::size_t i = from; i < left_.size() && best_.room > enough && nodes > 0; ++i) {
    const Tokens needs = tokens[left_[i]];
    if (needs > room || (i > from && needs == tokens[left_[i - 1]])) continue;
    --nodes;
    trial_.places.push_back(i);
    fill(tokens, i + 1, room - needs, enough, nodes);
    trial_.places.pop_back();
  }
}

}  // namespace isochron

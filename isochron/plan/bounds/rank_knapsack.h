#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace isochron {

// Groups that stand side by side on all ranks, of every leader one at most. They gain something,
// and their leaders' rises; both together have a limit.
class RankKnapsack {
 public:
  using Table = std::vector<double>;  // memory that several share

  RankKnapsack(std::size_t num_leaders, std::int32_t num_ranks, double limit);

  // A group of a leader that never rises by more than `most`. Leader by leader, by rising sizes.
  void add(std::size_t leader, std::int32_t size, double gain, double most);
  // After the last group.
  void close(Table& table);

  // What is left of the limit before anything rises; negative if that is too much already.
  [[nodiscard]] double room() const { return room_; }
  // What a leader may rise by, alone.
  [[nodiscard]] double room_of(std::size_t leader) const { return limit_ - most_gain_[leader]; }

  struct Filled {
    double excess = 0;                      // over the limit, at most; not above 0: none
    std::vector<std::size_t> leaders = {};  // of the groups that exceed it
    std::int64_t work = 0;                  // sums that it took
  };
  // The groups that gain most with these rises. Remembers what it saw.
  [[nodiscard]] Filled filled(std::span<const double> rises, Table& table);

 private:
  struct Group {
    std::size_t leader = 0;
    std::size_t size = 0;
    double gain = 0;
  };

  std::size_t width_;  // ranks, and none
  double limit_;
  double room_ = 0;
  std::vector<Group> groups_;
  std::vector<double> most_gain_;   // by leader
  std::vector<double> last_rises_;  // of the last filling, and its excess
  double last_excess_;
};

}  // namespace isochron

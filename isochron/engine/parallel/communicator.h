#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace isochron {

// A collective under way. Letting go of it without wait() gives up its result, on this rank alone.
class Pending {
 public:
  virtual ~Pending() = default;
  virtual void wait() = 0;  // once; throws what the collective throws
};

// Ranks that talk to each other. Every member calls the same collectives in the same order. Tensors
// are contiguous and on the device of the world. A collective that fails or takes longer than the
// timeout throws std::runtime_error that names the operation, the group and, where it is known,
// the rank that is late, with what it was last seen doing; nothing may be issued afterwards.
//
// Those that return Pending are under way afterwards and need no help of the thread that issued
// them. Any number of them may be under way; they are awaited in the order in which they were
// issued. Until then their tensors stay as they are.
class Communicator {
 public:
  virtual ~Communicator() = default;
  [[nodiscard]] virtual std::int32_t rank() const = 0;  // in this group
  [[nodiscard]] virtual std::int32_t size() const = 0;
  [[nodiscard]] virtual const std::string& name() const = 0;

  // In place, over all members; every member gets the same bits. `what` names the operation in
  // messages and records.
  virtual void all_reduce_sum(at::Tensor& values, std::string_view what) = 0;
  virtual void all_reduce_max(at::Tensor& values, std::string_view what) = 0;
  virtual void broadcast(at::Tensor& values, std::int32_t root, std::string_view what) = 0;
  // `all` holds size() parts of equal size; this rank gives part rank() and gets all of them.
  virtual std::unique_ptr<Pending> all_gather(at::Tensor& all, std::string_view what) = 0;
  // `all` holds size() parts of equal size; `part` becomes the sum over the members of part rank().
  // `part` may be that part of `all`. On the CPU it is summed in rank order. `all` is overwritten
  // or not.
  virtual std::unique_ptr<Pending> reduce_scatter_sum(at::Tensor& part, at::Tensor& all,
                                                      std::string_view what) = 0;
  // Both hold size() parts of equal size and share no memory: part i of `sent` goes to member i,
  // part i of `received` comes from member i.
  virtual std::unique_ptr<Pending> all_to_all(at::Tensor& received, at::Tensor& sent,
                                              std::string_view what) = 0;
};

// Opening a group waits for its members like a collective, and closing one ends what may be issued
// on it: both are recorded, as these operations without elements.
inline constexpr std::string_view group_opened = "open group";
inline constexpr std::string_view group_closed = "close group";

// One collective as a rank issued it: what the order checker of tests compares.
struct IssuedCollective {
  std::string communicator;
  std::int32_t first_rank = 0;  // members of the communicator: consecutive ranks of the world
  std::int32_t num_ranks = 1;
  std::string operation;
  std::int64_t elements = 0;

  bool operator==(const IssuedCollective&) const = default;
};

}  // namespace isochron

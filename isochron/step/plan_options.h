#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "isochron/core/enum_names.h"
#include "isochron/core/fields.h"
#include "isochron/core/policy.h"
#include "isochron/step/topology.h"

namespace isochron {

// When ranks wait for each other.
enum class Sync {
  step,        // a group when its last member is free; all at the end of the step
  microbatch,  // all ranks after every slot (FSDP, expert parallelism)
};

// How many slots a rank runs.
enum class Counts {
  free,   // as many as it needs
  equal,  // every rank is in exactly one group of every slot
};

enum class Pass {
  train,    // forward and backward
  forward,  // forward only: log-probs, values
};

template <>
struct EnumNames<Sync> {
  static constexpr std::array<std::pair<Sync, std::string_view>, 2> values = {
      {{Sync::step, "step"}, {Sync::microbatch, "microbatch"}}};
};
template <>
struct EnumNames<Counts> {
  static constexpr std::array<std::pair<Counts, std::string_view>, 2> values = {
      {{Counts::free, "free"}, {Counts::equal, "equal"}}};
};
template <>
struct EnumNames<Pass> {
  static constexpr std::array<std::pair<Pass, std::string_view>, 2> values = {
      {{Pass::train, "train"}, {Pass::forward, "forward"}}};
};

inline constexpr std::int32_t max_pad_multiple = 1 << 20;  // rows: a second of planning

struct PlanOptions {
  std::string context = "static:1";   // static:C, dynamic, dynamic:powers, dynamic:any
  std::int32_t min_context_size = 1;  // ranks of a group, where sizes are dynamic
  std::int32_t max_context_size = 0;  // 0: all ranks
  Sync sync = Sync::step;
  std::optional<Counts> counts = {};  // none: free, or equal where sync or stages ask for it
  Pass pass = Pass::train;
  bool balance = true;             // false: deal the input in order, as a loader would
  std::int32_t max_sequences = 0;  // of a group in one slot; 0: no limit
  std::int32_t tensor_parallel = 1;
  std::optional<Oversize> oversize = {};  // none: widen where sizes are dynamic, else error
  Short short_ = Short::empty;
  KeepGroups keep_groups = KeepGroups::none;
  std::optional<Pad> pad = {};  // none: rows if pad_multiple is above 1, else uneven
  std::int32_t pad_multiple = 1;
  std::int64_t max_activation_bytes = 0;  // of the slots in flight on a stage; 0: no limit
  std::optional<std::int64_t> effort = {};

  template <class Row>
  static void describe(Row row) {
    using Self = PlanOptions;
    row(Field{
        "context", &Self::context,
        "ranks that share a sequence: static:C, dynamic (aligned), dynamic:powers or dynamic:any"});
    row(Field{"min_context_size", &Self::min_context_size, "dynamic: ranks of a group, at least",
              "", IntegerRange{1, max_ranks}});
    row(Field{"max_context_size", &Self::max_context_size,
              "dynamic: ranks of a group, at most; 0: all", "", IntegerRange{0, max_ranks}});
    row(Field{"sync", &Self::sync, "all ranks wait for each other after a step or a micro-batch"});
    row(Field{"counts", &Self::counts,
              "slots per rank; not given: free, equal where sync or stages ask for it"});
    row(Field{"pass", &Self::pass, "forward and backward, or forward only"});
    row(Field{"balance", &Self::balance, "false: deal the input in order, as a loader would"});
    row(Field{"max_sequences", &Self::max_sequences,
              "sequences that one micro-batch may hold; 0: no limit", "", IntegerRange{0}});
    row(Field{"tensor_parallel", &Self::tensor_parallel,
              "devices of a rank; lengths are padded to a multiple", "",
              IntegerRange{1, max_ranks}});
    row(Field{
        "oversize", &Self::oversize,
        "a sequence over the capacity; not given: widen where sizes are dynamic, else error"});
    row(Field{"short", &Self::short_, "too few sequences for the slots that are required"});
    row(Field{"keep_groups", &Self::keep_groups,
              "where sequences of a prompt group stay together"});
    row(Field{"pad", &Self::pad,
              "rows that pad_multiple does not divide; not given: rows if it is above 1"});
    row(Field{"pad_multiple", &Self::pad_multiple,
              "the number of rows is a multiple of this, up to 1048576", "",
              IntegerRange{1, max_pad_multiple}});
    row(Field{"max_activation_bytes", &Self::max_activation_bytes,
              "of the slots in flight on a stage; 0: no limit", "", IntegerRange{0}});
    row(Field{"effort", &Self::effort,
              "work of the search, in placements weighed; not given: grows with the batch", "",
              IntegerRange{0}});
  }

  bool operator==(const PlanOptions&) const = default;
};

// The meaning of `context`.
struct ContextMode {
  // powers: aligned, of a power of two up to half of the ranks, or all ranks: Megatron's groups
  enum class Kind { fixed, aligned, powers, any };
  Kind kind = Kind::fixed;
  std::int32_t size = 1;  // of every group, if fixed

  bool operator==(const ContextMode&) const = default;
};

// Throws std::invalid_argument unless the text is static:C with C from 1 to 2^20, dynamic,
// dynamic:powers or dynamic:any.
[[nodiscard]] ContextMode context_mode(const std::string& text);

// The options with every default that depends on others filled in. Throws std::invalid_argument,
// with the value and what is allowed, for options that are out of range or contradict each other:
// counts free with sync microbatch or several stages, static:C that does not divide the ranks,
// widen without a dynamic context, a minimum above the maximum or outside a dynamic context.
[[nodiscard]] PlanOptions resolved(const PlanOptions& options, const Topology& topology);

}  // namespace isochron

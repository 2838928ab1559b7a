#include "isochron/step/plan_options.h"

#include <string>
#include <string_view>

#include "isochron/core/field_text.h"
#include "isochron/core/require.h"

namespace isochron {

namespace {

constexpr std::string_view where = "plan";

}  // namespace

ContextMode context_mode(const std::string& text) {
  using Kind = ContextMode::Kind;
  if (text == "dynamic") return {.kind = Kind::aligned};
  if (text == "dynamic:powers") return {.kind = Kind::powers};
  if (text == "dynamic:any") return {.kind = Kind::any};
  constexpr std::string_view prefix = "static:";
  require(text.starts_with(prefix), where,
          "context is \"{}\", must be static:C, dynamic, dynamic:powers or dynamic:any", text);
  const auto size = value_from_text<std::int32_t>(
      where, "C of context static:C", text.substr(prefix.size()), {.least = 1, .most = max_ranks});
  require(size >= 1 && size <= max_ranks, where, "context is \"{}\", C must be 1 to {}", text,
          max_ranks);
  require(text.substr(prefix.size()) == std::to_string(size), where,
          "context is \"{}\", must be static:{}", text, size);
  return {.kind = Kind::fixed, .size = size};
}

PlanOptions resolved(const PlanOptions& options, const Topology& topology) {
  require_valid(topology);
  PlanOptions result = options;
  const ContextMode mode = context_mode(options.context);
  const bool is_dynamic = mode.kind != ContextMode::Kind::fixed;

  require(is_dynamic || topology.ranks % mode.size == 0, where,
          "context is {}, must divide the {} ranks", options.context, topology.ranks);
  require(options.min_context_size >= 1 && options.min_context_size <= topology.ranks, where,
          "min_context_size is {}, must be 1 to the {} ranks", options.min_context_size,
          topology.ranks);
  require(options.max_context_size == 0 || (options.max_context_size >= options.min_context_size &&
                                            options.max_context_size <= topology.ranks),
          where, "max_context_size is {}, must be 0 or from the minimum {} to the {} ranks",
          options.max_context_size, options.min_context_size, topology.ranks);
  require(is_dynamic || (options.min_context_size == 1 && options.max_context_size == 0), where,
          "min_context_size and max_context_size need a dynamic context, not {}", options.context);

  const bool is_equal = options.sync == Sync::microbatch || topology.pipeline.stages > 1;
  if (!options.counts) result.counts = is_equal ? Counts::equal : Counts::free;
  require(!is_equal || *result.counts == Counts::equal, where,
          "counts is free, must be equal with {}",
          options.sync == Sync::microbatch ? "sync microbatch" : "several stages");

  if (!options.oversize) result.oversize = is_dynamic ? Oversize::widen : Oversize::error;
  require(is_dynamic || *result.oversize != Oversize::widen, where,
          "oversize is widen, must be error or alone with context {}", options.context);

  require(options.max_sequences >= 0, where, "max_sequences is {}, must be at least 0",
          options.max_sequences);
  require(options.tensor_parallel >= 1 && options.tensor_parallel <= max_ranks, where,
          "tensor_parallel is {}, must be 1 to {}", options.tensor_parallel, max_ranks);
  require(options.pad_multiple >= 1 && options.pad_multiple <= max_pad_multiple, where,
          "pad_multiple is {}, must be 1 to {}", options.pad_multiple, max_pad_multiple);
  if (!options.pad) result.pad = options.pad_multiple > 1 ? Pad::rows : Pad::uneven;
  require(options.max_activation_bytes >= 0, where,
          "max_activation_bytes is {}, must be at least 0", options.max_activation_bytes);
  require(!options.effort || *options.effort >= 0, where, "effort is {}, must be at least 0",
          options.effort.value_or(0));
  return result;
}

}  // namespace isochron

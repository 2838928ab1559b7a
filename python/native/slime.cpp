#include <nanobind/stl/vector.h>

#include <string>

#include "isochron/pack/slime_schedule.h"
#include "python/native/arrays.h"
#include "python/native/bindings.h"
#include "python/native/ids.h"
#include "python/native/record.h"
#include "python/native/signature.h"

namespace isochron::python {

namespace {

void bind_shape(nb::module_& module) {
  using Shape = SlimeShape;
  nb::class_<Shape> type(module, "SlimeShape", "What slime's estimate of FLOPs knows of a model.");
  add_record(type, "SlimeShape",
             Attribute{"hidden_size", &Shape::hidden_size, "Width of the model."},
             Attribute{"num_attention_heads", &Shape::num_attention_heads, "Query heads."},
             Attribute{"kv_channels", &Shape::kv_channels, "Dimension of a head."},
             Attribute{"num_query_groups", &Shape::num_query_groups, "KV heads."},
             Attribute{"ffn_hidden_size", &Shape::ffn_hidden_size, "Width of the MLP."},
             Attribute{"vocab_size", &Shape::vocab_size, "Tokens of the vocabulary."},
             Attribute{"num_layers", &Shape::num_layers, "Layers."});
  module.def(
      "slime_forward_flops",
      [](nb::handle length, const Shape& shape) {
        return slime_forward_flops(
            integer_argument<Tokens>(length, "slime_forward_flops", "length"), shape);
      },
      nb::arg("length"), nb::arg("shape"),
      nb::sig("def slime_forward_flops(length: int, shape: SlimeShape) -> float"),
      "slime's calculate_fwd_flops of one sample of a dense model.");
}

void bind_schedule(nb::module_& module) {
  using Self = const SlimeSchedule&;
  nb::class_<SlimeSchedule> type(module, "SlimeSchedule",
                                 "What slime's build_dp_schedule returns.");
  type.def_prop_ro(
      "partitions", [](Self self) { return id_lists(self.partitions); },
      "Samples of each rank, in the order of running.");
  type.def_ro("micro_batch_indices", &SlimeSchedule::micro_batch_indices,
              "Of each rank, each micro-batch of all steps: positions in the rank's samples.");
  type.def_ro("num_microbatches", &SlimeSchedule::num_microbatches, "Of a rank in each step.");
  type.def_ro("global_batch_sizes", &SlimeSchedule::global_batch_sizes, "Rollouts of each step.");
  add_equality(type);

  const std::string text = "def slime_schedule(" + integers_parameter("lengths") + ", " +
                           integers_parameter("rollouts") + ", shape: SlimeShape, *, " +
                           option_parameters<SlimeScheduleOptions>("global_batch_size") +
                           ") -> SlimeSchedule";
  module.def(
      "slime_schedule",
      [](nb::handle lengths, nb::handle rollouts, const SlimeShape& shape,
         const nb::kwargs& options) {
        const Integers tokens(lengths, "slime_schedule", "lengths");
        const Integers rollout_ids(rollouts, "slime_schedule", "rollouts");
        const auto chosen = options_of<SlimeScheduleOptions>(options, "slime_schedule");
        const nb::gil_scoped_release release;
        return slime_schedule(tokens.span(), rollout_ids.span(), shape, chosen);
      },
      nb::arg("lengths"), nb::arg("rollouts"), nb::arg("shape"), nb::arg("options"),
      nb::sig(text.c_str()),
      ("slime's build_dp_schedule, answer for answer and error for error. rollouts[i] is the "
       "rollout of sample i." +
       option_lines<SlimeScheduleOptions>())
          .c_str());
}

void bind_bins(nb::module_& module) {
  const std::string lengths = integers_parameter("lengths");
  module.def(
      "slime_first_fit_pack",
      [](nb::handle tokens, nb::handle max_tokens) {
        return id_lists(slime_first_fit_pack(
            Integers(tokens, "slime_first_fit_pack", "lengths").span(),
            integer_argument<Tokens>(max_tokens, "slime_first_fit_pack", "max_tokens")));
      },
      nb::arg("lengths"), nb::arg("max_tokens"),
      nb::sig(("def slime_first_fit_pack(" + lengths + ", max_tokens: int) -> list[list[int]]")
                  .c_str()),
      "slime's first_fit_pack: in input order, each sample to the first bin with room.");
  const std::string expand =
      "def slime_expand_bins(bins: collections.abc.Sequence[collections.abc.Sequence[int]], "
      "target: int, " +
      lengths + ") -> list[list[int]]";
  module.def(
      "slime_expand_bins",
      [](nb::handle bins, nb::handle target, nb::handle tokens) {
        return id_lists(
            slime_expand_bins(id_lists_of(bins, "slime_expand_bins", "bins"),
                              integer_argument<std::int64_t>(target, "slime_expand_bins", "target"),
                              Integers(tokens, "slime_expand_bins", "lengths").span()));
      },
      nb::arg("bins"), nb::arg("target"), nb::arg("lengths"), nb::sig(expand.c_str()),
      "slime's expand_bins_by_splitting: cuts the bin with the most tokens in two until there are "
      "`target` bins.");
  module.def(
      "slime_min_microbatches",
      [](nb::handle tokens, nb::handle max_tokens) {
        return slime_min_microbatches(
            Integers(tokens, "slime_min_microbatches", "lengths").span(),
            integer_argument<Tokens>(max_tokens, "slime_min_microbatches", "max_tokens"));
      },
      nb::arg("lengths"), nb::arg("max_tokens"),
      nb::sig(("def slime_min_microbatches(" + lengths + ", max_tokens: int) -> int").c_str()),
      "slime's get_minimum_num_micro_batch_size: the number of first-fit bins.");
  module.def(
      "slime_capped_partitions",
      [](nb::handle tokens, nb::handle count, nb::handle max_tokens) {
        constexpr std::string_view where = "slime_capped_partitions";
        return id_lists(
            slime_capped_partitions(Integers(tokens, where, "lengths").span(),
                                    integer_argument<std::int32_t>(count, where, "count"),
                                    integer_argument<Tokens>(max_tokens, where, "max_tokens")));
      },
      nb::arg("lengths"), nb::arg("count"), nb::arg("max_tokens"),
      nb::sig(("def slime_capped_partitions(" + lengths +
               ", count: int, max_tokens: int) -> list[list[int]]")
                  .c_str()),
      "slime's _get_capped_partitions: first fit into exactly `count` bins, some perhaps empty.");
}

}  // namespace

void bind_slime(nb::module_& module) {
  bind_shape(module);
  bind_schedule(module);
  bind_bins(module);
}

}  // namespace isochron::python

// Head and log-softmax in chunks of labelled tokens: C rows of logits exist at a time.
//
//   forward   for each chunk: logits = hidden W^T, their log-sum-exp, the logit of the label
//   backward  for each chunk, last first: logits again, their gradient, then two products
//
// The logits of the last chunk stay until the backward, which starts with them: there they would
// have to exist again, so this costs no memory at the peak and saves one product in n chunks. Rows
// without a label are never multiplied.

#include "isochron/engine/loss/token_outputs.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "isochron/core/require.h"
#include "isochron/engine/loss/softmax_rows.h"

// L labelled tokens, C of them in a chunk.

namespace isochron {

namespace {

// The labelled rows, as indices, or all of them in their order.
struct LabelledRows {
  at::Tensor index_L;  // undefined: all
  std::int64_t count = 0;

  // Waits for a device: a backward takes the rows of its forward.
  [[nodiscard]] static LabelledRows of(const at::Tensor& labels_T) {
    at::Tensor index = at::nonzero(labels_T >= 0).squeeze(1);
    const std::int64_t count = index.numel();
    return {.index_L = count == labels_T.numel() ? at::Tensor() : std::move(index), .count = count};
  }

  [[nodiscard]] at::Tensor take(const at::Tensor& from, std::int64_t begin,
                                std::int64_t size) const {
    if (!index_L.defined()) return from.narrow(0, begin, size);
    return from.index_select(0, index_L.narrow(0, begin, size));
  }

  void put(const at::Tensor& into, std::int64_t begin, const at::Tensor& rows) const {
    if (index_L.defined()) {
      into.index_copy_(0, index_L.narrow(0, begin, rows.size(0)), rows);
    } else {
      into.narrow(0, begin, rows.size(0)).copy_(rows);
    }
  }
};

// Whether the matrix units take operands of half the width and give results in fp32.
bool has_wide_products(const at::Tensor& tensor) {
  return tensor.is_cuda() &&
         (tensor.scalar_type() == at::kBFloat16 || tensor.scalar_type() == at::kHalf);
}

at::Tensor logits_of(const at::Tensor& hidden_CD, const at::Tensor& weight_VD, double temperature) {
  const at::ScalarType wide = at::toOpMathType(hidden_CD.scalar_type());
  at::Tensor logits_CV = has_wide_products(hidden_CD) ? at::mm(hidden_CD, weight_VD.t(), wide)
                                                      : at::mm(hidden_CD, weight_VD.t()).to(wide);
  return temperature == 1 ? logits_CV : logits_CV.mul_(1 / temperature);
}

// grad_weight += grad_logits^T hidden, in the wide type of `grad_weight`.
void add_weight_gradient_(at::Tensor& grad_weight_VD, const at::Tensor& grad_logits_CV,
                          const at::Tensor& hidden_CD, at::ScalarType wide, bool is_first) {
  const at::Tensor transposed_VC = grad_logits_CV.t();
  if (has_wide_products(hidden_CD)) {
    if (is_first) {
      grad_weight_VD = at::mm(transposed_VC, hidden_CD, wide);
    } else {
      at::addmm_out(grad_weight_VD, grad_weight_VD, transposed_VC, hidden_CD, wide);
    }
  } else if (hidden_CD.scalar_type() != wide) {
    const at::Tensor part = at::mm(transposed_VC, hidden_CD);
    grad_weight_VD = is_first ? part.to(wide) : grad_weight_VD.add_(part);
  } else if (is_first) {
    grad_weight_VD = at::mm(transposed_VC, hidden_CD);
  } else {
    grad_weight_VD.addmm_(transposed_VC, hidden_CD);
  }
}

struct Forward {
  at::Tensor log_prob_T, entropy_T;  // entropy: defined if asked for
  at::Tensor lse_L, last_logits;     // for the backward
};

Forward run_forward(const at::Tensor& hidden_TD, const at::Tensor& weight_VD,
                    const at::Tensor& labels_T, const LabelledRows& rows,
                    const HeadOptions& options) {
  const auto wide = hidden_TD.options().dtype(at::toOpMathType(hidden_TD.scalar_type()));
  Forward out;
  out.log_prob_T = at::zeros({hidden_TD.size(0)}, wide);
  if (options.entropy) out.entropy_T = at::zeros({hidden_TD.size(0)}, wide);
  out.lse_L = at::empty({rows.count}, wide);
  for (std::int64_t begin = 0; begin < rows.count; begin += options.chunk) {
    const std::int64_t size = std::min(options.chunk, rows.count - begin);
    out.last_logits.reset();
    out.last_logits = logits_of(rows.take(hidden_TD, begin, size), weight_VD, options.temperature);
    const SoftmaxOutputs chunk =
        softmax_rows(out.last_logits, rows.take(labels_T, begin, size), options.entropy);
    out.lse_L.narrow(0, begin, size).copy_(chunk.lse_C);
    rows.put(out.log_prob_T, begin, chunk.log_prob_C);
    if (options.entropy) rows.put(out.entropy_T, begin, chunk.entropy_C);
  }
  return out;
}

struct HeadNode : torch::autograd::Function<HeadNode> {
  static std::vector<at::Tensor> forward(torch::autograd::AutogradContext* context,
                                         const at::Tensor& hidden_TD, const at::Tensor& weight_VD,
                                         const at::Tensor& labels_T, const HeadOptions& options) {
    const LabelledRows rows = LabelledRows::of(labels_T);
    Forward out = run_forward(hidden_TD, weight_VD, labels_T, rows, options);
    context->set_materialize_grads(false);
    context->saved_data["chunk"] = options.chunk;
    context->saved_data["temperature"] = options.temperature;
    context->saved_data["count"] = rows.count;
    context->save_for_backward(
        {hidden_TD, weight_VD, labels_T, out.lse_L, out.entropy_T, rows.index_L, out.last_logits});
    if (!options.entropy) return {out.log_prob_T};
    return {out.log_prob_T, out.entropy_T};
  }

  static std::vector<at::Tensor> backward(torch::autograd::AutogradContext* context,
                                          const std::vector<at::Tensor>& grads) {
    const auto saved = context->get_saved_variables();
    const auto& [hidden_TD, weight_VD, labels_T, lse_L, entropy_T] =
        std::tie(saved[0], saved[1], saved[2], saved[3], saved[4]);
    at::Tensor logits_CV = saved[6];
    const std::int64_t chunk = context->saved_data["chunk"].toInt();
    const double temperature = context->saved_data["temperature"].toDouble();
    const LabelledRows rows = {.index_L = saved[5], .count = context->saved_data["count"].toInt()};
    const bool has_entropy = grads.size() > 1 && grads[1].defined();

    const bool covers_all = !rows.index_L.defined();
    at::Tensor grad_hidden_TD = covers_all ? at::empty_like(hidden_TD) : at::zeros_like(hidden_TD);
    at::Tensor grad_weight_VD;
    const std::int64_t last = (rows.count - 1) / chunk * chunk;
    for (std::int64_t begin = last; rows.count > 0 && begin >= 0; begin -= chunk) {
      const std::int64_t size = std::min(chunk, rows.count - begin);
      const auto scaled = [&](const at::Tensor& grad_T) {
        return grad_T.defined() ? rows.take(grad_T, begin, size) / temperature : at::Tensor();
      };
      const at::Tensor hidden_CD = rows.take(hidden_TD, begin, size);
      // Where the kept logits are overwritten, torch rejects a second backward through this node.
      if (begin != last) logits_CV = logits_of(hidden_CD, weight_VD, temperature);
      const at::ScalarType wide = logits_CV.scalar_type();
      const at::Tensor grad_logits = softmax_rows_backward(
          logits_CV,
          {.labels_C = rows.take(labels_T, begin, size),
           .lse_C = lse_L.narrow(0, begin, size),
           .entropy_C = has_entropy ? rows.take(entropy_T, begin, size) : at::Tensor(),
           .grad_log_prob_C = scaled(grads[0]),
           .grad_entropy_C = has_entropy ? scaled(grads[1]) : at::Tensor()},
          hidden_TD.scalar_type());
      logits_CV.reset();
      rows.put(grad_hidden_TD, begin, at::mm(grad_logits, weight_VD));
      if (context->needs_input_grad(1)) {
        add_weight_gradient_(grad_weight_VD, grad_logits, hidden_CD, wide, begin == last);
      }
    }
    if (rows.count == 0) grad_weight_VD = at::zeros_like(weight_VD);
    if (grad_weight_VD.defined()) grad_weight_VD = grad_weight_VD.to(weight_VD.scalar_type());
    return {grad_hidden_TD, grad_weight_VD, {}, {}};
  }
};

}  // namespace

TokenOutputs token_outputs(const at::Tensor& hidden_TD, const at::Tensor& weight_VD,
                           const at::Tensor& labels_T, const HeadOptions& options) {
  constexpr std::string_view where = "token outputs";
  require(options.chunk >= 1, where, "chunk is {}, must be at least 1", options.chunk);
  require(options.temperature > 0, where, "temperature is {}, must be above 0",
          options.temperature);
  require(hidden_TD.dim() == 2 && weight_VD.dim() == 2 && hidden_TD.size(1) == weight_VD.size(1),
          where, "the hidden states have width {}, must have that of the head, {}",
          hidden_TD.size(-1), weight_VD.size(-1));
  require(labels_T.scalar_type() == at::kLong && labels_T.dim() == 1 &&
              labels_T.size(0) == hidden_TD.size(0),
          where, "{} labels, must be one int64 for each of {} tokens", labels_T.numel(),
          hidden_TD.size(0));
  if (!at::GradMode::is_enabled()) {
    const Forward out =
        run_forward(hidden_TD, weight_VD, labels_T, LabelledRows::of(labels_T), options);
    return {.log_prob_T = out.log_prob_T, .entropy_T = out.entropy_T};
  }
  const auto out = HeadNode::apply(hidden_TD, weight_VD, labels_T, options);
  return {.log_prob_T = out[0], .entropy_T = options.entropy ? out[1] : at::Tensor()};
}

}  // namespace isochron

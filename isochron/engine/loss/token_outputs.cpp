// Head and log-softmax in chunks of labelled tokens: C rows of logits exist at a time.
//
//   forward   for each chunk: logits = hidden W^T, their log-sum-exp, the logit of the label
//   backward  for each chunk, last first: logits again, p = exp(logits - lse),
//             d logits = g (1[label] - p) - g_entropy p (log p + entropy),  then two products
//
// The logits of the last chunk stay until the backward, which starts with them and frees them:
// there they would have to exist again, so this costs no memory at the peak and saves one product
// in n chunks. Rows without a label are never multiplied.

#include "isochron/engine/loss/token_outputs.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "isochron/core/require.h"

// L labelled tokens, C of them in a chunk.

namespace isochron {

namespace {

// The labelled rows, as indices, or all of them in their order.
struct LabelledRows {
  at::Tensor index_L;  // undefined: all
  std::int64_t count = 0;

  explicit LabelledRows(const at::Tensor& labels_T) : count(labels_T.numel()) {
    at::Tensor index = at::nonzero(labels_T >= 0).squeeze(1);
    if (index.numel() == count) return;
    count = index.numel();
    index_L = std::move(index);
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

// Calls visit(first row, rows) over a chunk: all at once on a device, on the CPU in parallel over
// blocks that stay in a cache while several passes go over them.
template <class Visit>
void for_row_blocks(const at::Tensor& logits_CV, const Visit& visit) {
  const std::int64_t rows = logits_CV.size(0);
  if (!logits_CV.is_cpu()) {
    visit(std::int64_t{0}, rows);
    return;
  }
  constexpr std::int64_t block_elements = 1 << 16;  // 256 KiB of fp32
  const std::int64_t block = std::max<std::int64_t>(1, block_elements / logits_CV.size(1));
  at::parallel_for(0, (rows + block - 1) / block, 1, [&](std::int64_t begin, std::int64_t end) {
    const at::NoGradGuard no_grad;  // of this thread
    for (std::int64_t i = begin; i < end; ++i) {
      visit(i * block, std::min(block, rows - i * block));
    }
  });
}

at::Tensor logits_of(const at::Tensor& hidden_CD, const at::Tensor& weight_VD, double temperature) {
  at::Tensor logits_CV = at::mm(hidden_CD, weight_VD.t());
  logits_CV = logits_CV.to(at::toOpMathType(logits_CV.scalar_type()));
  return temperature == 1 ? logits_CV : logits_CV.mul_(1 / temperature);
}

struct ChunkOutputs {
  at::Tensor lse_C, log_prob_C, entropy_C;  // entropy: defined if asked for
};

ChunkOutputs outputs_of(const at::Tensor& logits_CV, const at::Tensor& labels_C, bool has_entropy) {
  const auto options = logits_CV.options();
  const std::int64_t rows = logits_CV.size(0);
  ChunkOutputs out = {.lse_C = at::empty({rows}, options),
                      .log_prob_C = logits_CV.gather(1, labels_C.unsqueeze(1)).squeeze(1),
                      .entropy_C = {}};
  if (has_entropy) out.entropy_C = at::empty({rows}, options);
  for_row_blocks(logits_CV, [&](std::int64_t begin, std::int64_t size) {
    const at::Tensor block = logits_CV.narrow(0, begin, size);
    const at::Tensor largest = block.amax(1, /*keepdim=*/true);
    at::Tensor exponentials = at::sub(block, largest).exp_();
    const at::Tensor sum = exponentials.sum(1);
    const at::Tensor lse = sum.log().add_(largest.squeeze(1));
    out.lse_C.narrow(0, begin, size).copy_(lse);
    if (has_entropy) {
      out.entropy_C.narrow(0, begin, size).copy_(lse - exponentials.mul_(block).sum(1).div_(sum));
    }
  });
  out.log_prob_C.sub_(out.lse_C);
  return out;
}

// What the backward needs of a chunk beside its logits. Gradients are already divided by the
// temperature; an undefined one is zero.
struct ChunkGradients {
  at::Tensor labels_C, lse_C, entropy_C, grad_log_prob_C, grad_entropy_C;
};

// Turns the logits into their gradient.
void to_gradient_(const at::Tensor& logits_CV, const ChunkGradients& chunk) {
  for_row_blocks(logits_CV, [&](std::int64_t begin, std::int64_t size) {
    const auto column = [&](const at::Tensor& all) {
      return all.narrow(0, begin, size).unsqueeze(1);
    };
    const at::Tensor log_p = logits_CV.narrow(0, begin, size).sub_(column(chunk.lse_C));
    at::Tensor factor;  // of -p
    if (chunk.grad_entropy_C.defined()) {
      factor = (log_p + column(chunk.entropy_C)).mul_(column(chunk.grad_entropy_C));
      if (chunk.grad_log_prob_C.defined()) factor.add_(column(chunk.grad_log_prob_C));
    } else {
      factor = column(chunk.grad_log_prob_C);
    }
    log_p.exp_().mul_(factor.neg());
    if (chunk.grad_log_prob_C.defined()) {
      log_p.scatter_add_(1, column(chunk.labels_C), column(chunk.grad_log_prob_C));
    }
  });
}

// grad_weight += grad_logits^T hidden, in the wide type of `grad_weight`.
void add_weight_gradient_(at::Tensor& grad_weight_VD, const at::Tensor& grad_logits_CV,
                          const at::Tensor& hidden_CD, at::ScalarType wide, bool is_first) {
  const at::Tensor transposed_VC = grad_logits_CV.t();
  if (hidden_CD.scalar_type() != wide) {
    const std::int64_t num_rows = transposed_VC.size(0);
    const std::int64_t width = hidden_CD.size(1);
    if (is_first) {
      grad_weight_VD = at::empty({num_rows, width}, hidden_CD.options().dtype(wide));
    }
    // Some rows at a time: all of them in the narrow type would be half of the sum again.
    constexpr std::int64_t block_elements = std::int64_t{1} << 25;
    const std::int64_t block = std::max<std::int64_t>(1, block_elements / width);
    for (std::int64_t begin = 0; begin < num_rows; begin += block) {
      const std::int64_t size = std::min(block, num_rows - begin);
      const at::Tensor part = at::mm(transposed_VC.narrow(0, begin, size), hidden_CD);
      const at::Tensor sum = grad_weight_VD.narrow(0, begin, size);
      is_first ? sum.copy_(part) : sum.add_(part);
    }
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
    const ChunkOutputs chunk =
        outputs_of(out.last_logits, rows.take(labels_T, begin, size), options.entropy);
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
    const LabelledRows rows(labels_T);
    Forward out = run_forward(hidden_TD, weight_VD, labels_T, rows, options);
    context->set_materialize_grads(false);
    context->saved_data["chunk"] = options.chunk;
    context->saved_data["temperature"] = options.temperature;
    // Not a saved variable: those stay until the backward has ended.
    context->saved_data[last_logits] = std::move(out.last_logits);
    context->save_for_backward({hidden_TD, weight_VD, labels_T, out.lse_L, out.entropy_T});
    if (!options.entropy) return {out.log_prob_T};
    return {out.log_prob_T, out.entropy_T};
  }

  static std::vector<at::Tensor> backward(torch::autograd::AutogradContext* context,
                                          const std::vector<at::Tensor>& grads) {
    const auto saved = context->get_saved_variables();
    const auto& [hidden_TD, weight_VD, labels_T, lse_L, entropy_T] =
        std::tie(saved[0], saved[1], saved[2], saved[3], saved[4]);
    const auto kept = context->saved_data.find(last_logits);
    ISOCHRON_ASSERT(kept != context->saved_data.end());  // one backward for each forward
    at::Tensor logits_CV = std::move(kept->second).toTensor();
    context->saved_data.erase(kept);
    const std::int64_t chunk = context->saved_data["chunk"].toInt();
    const double temperature = context->saved_data["temperature"].toDouble();
    const LabelledRows rows(labels_T);
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
      if (begin != last) logits_CV = logits_of(hidden_CD, weight_VD, temperature);
      to_gradient_(logits_CV,
                   {.labels_C = rows.take(labels_T, begin, size),
                    .lse_C = lse_L.narrow(0, begin, size),
                    .entropy_C = has_entropy ? rows.take(entropy_T, begin, size) : at::Tensor(),
                    .grad_log_prob_C = scaled(grads[0]),
                    .grad_entropy_C = has_entropy ? scaled(grads[1]) : at::Tensor()});
      const at::ScalarType wide = logits_CV.scalar_type();
      const at::Tensor grad_logits = logits_CV.to(hidden_TD.scalar_type());
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

 private:
  static constexpr const char* last_logits = "last_logits";
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
        run_forward(hidden_TD, weight_VD, labels_T, LabelledRows(labels_T), options);
    return {.log_prob_T = out.log_prob_T, .entropy_T = out.entropy_T};
  }
  const auto out = HeadNode::apply(hidden_TD, weight_VD, labels_T, options);
  return {.log_prob_T = out[0], .entropy_T = options.entropy ? out[1] : at::Tensor()};
}

}  // namespace isochron

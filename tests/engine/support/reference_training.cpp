#include "tests/engine/support/reference_training.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

namespace isochron {

namespace {

double num_trained(const TokenRows& rows) {
  double count = 0;
  for (const auto& mask : rows.loss_mask) {
    for (std::size_t t = 1; t < mask.size(); ++t) count += mask[t];
  }
  return count;
}

}  // namespace

ReferenceTraining::ReferenceTraining(Decoder& model, const AdamWOptions& options)
    : model_(model), options_(options) {
  for (const Parameter& parameter : model.parameters()) {
    moments_[parameter.name] = {at::zeros_like(parameter.value), at::zeros_like(parameter.value)};
  }
}

at::Tensor ReferenceTraining::row_log_probs(const std::vector<std::int32_t>& tokens,
                                            std::int64_t id, const Dropout& dropout) {
  const auto length = static_cast<std::int64_t>(tokens.size());
  const at::Tensor ids = at::tensor(std::vector<std::int64_t>(tokens.begin(), tokens.end()));
  const at::Tensor hidden = model_.hidden_TD({.tokens_T = ids,
                                              .positions_T = at::arange(length),
                                              .cu_seqlens = {0, length},
                                              .rows_T = at::full({length}, id, at::kLong)},
                                             dropout);
  return hidden.matmul(model_.head_weight().t()).log_softmax(-1);
}

at::Tensor ReferenceTraining::row_loss(const std::vector<std::int32_t>& tokens,
                                       const std::vector<std::uint8_t>& mask, std::int64_t id,
                                       const Dropout& dropout) {
  const at::Tensor log_probs = row_log_probs(tokens, id, dropout);
  at::Tensor sum = at::zeros({}, at::kDouble);
  for (std::size_t t = 1; t < tokens.size(); ++t) {
    if (mask[t] != 0) sum = sum - log_probs[static_cast<std::int64_t>(t - 1)][tokens[t]];
  }
  return sum;
}

double ReferenceTraining::loss(const TokenRows& rows) {
  const at::NoGradGuard no_grad;
  double sum = 0;
  for (std::size_t i = 0; i < rows.tokens.size(); ++i) {
    sum += row_loss(rows.tokens[i], rows.loss_mask[i]).item<double>();
  }
  return num_trained(rows) == 0 ? 0 : sum / num_trained(rows);
}

ReferenceScores ReferenceTraining::scores(const std::vector<std::int32_t>& tokens) {
  const at::NoGradGuard no_grad;
  const at::Tensor log_probs = row_log_probs(tokens);
  ReferenceScores scores;
  for (std::size_t t = 1; t < tokens.size(); ++t) {
    const at::Tensor distribution = log_probs[static_cast<std::int64_t>(t - 1)];
    scores.log_probs.push_back(distribution[tokens[t]].item<double>());
    scores.entropies.push_back(-(distribution * distribution.exp()).sum().item<double>());
  }
  return scores;
}

ReferenceUpdate ReferenceTraining::update(const TokenRows& rows, double lr,
                                          const Dropout& dropout) {
  ReferenceUpdate result;
  for (std::size_t i = 0; i < rows.tokens.size(); ++i) {
    const at::Tensor sum =
        row_loss(rows.tokens[i], rows.loss_mask[i], TokenRows::id_of(i), dropout);
    result.loss += sum.item<double>();
    if (sum.requires_grad()) torch::autograd::backward({sum}, {});
  }
  const double scale = num_trained(rows) == 0 ? 0 : 1 / num_trained(rows);
  result.loss *= scale;
  double squares = 0;
  for (const Parameter& parameter : model_.parameters()) {
    at::Tensor gradient = parameter.value.grad().defined() ? parameter.value.grad() * scale
                                                           : at::zeros_like(parameter.value);
    squares += gradient.square().sum().item<double>();
    result.gradients[parameter.name] = gradient;
    at::Tensor(parameter.value).mutable_grad().reset();
  }
  result.grad_norm = std::sqrt(squares);

  const at::NoGradGuard no_grad;
  const double clip = std::min(1.0, options_.clip_grad / (result.grad_norm + 1e-6));
  ++num_updates_;
  for (const Parameter& parameter : model_.parameters()) {
    const at::Tensor gradient = result.gradients[parameter.name] * clip;
    Moments& moments = moments_[parameter.name];
    moments.first = options_.beta1 * moments.first + (1 - options_.beta1) * gradient;
    moments.second = options_.beta2 * moments.second + (1 - options_.beta2) * gradient.square();
    const at::Tensor mean = moments.first / (1 - std::pow(options_.beta1, num_updates_));
    const at::Tensor spread = moments.second / (1 - std::pow(options_.beta2, num_updates_));
    at::Tensor weight = parameter.value;
    weight.sub_(lr * options_.weight_decay * weight);
    weight.sub_(lr * mean / (spread.sqrt() + options_.epsilon));
  }
  return result;
}

}  // namespace isochron

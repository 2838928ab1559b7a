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

at::Tensor ReferenceTraining::row_loss(const std::vector<std::int32_t>& tokens,
                                       const std::vector<std::uint8_t>& mask, std::int64_t id,
                                       const Dropout& dropout) {
  const auto length = static_cast<std::int64_t>(tokens.size());
  const at::Tensor ids = at::tensor(std::vector<std::int64_t>(tokens.begin(), tokens.end()));
  const at::Tensor hidden = model_.hidden_TD({.tokens_T = ids,
                                              .positions_T = at::arange(length),
                                              .cu_seqlens = {0, length},
                                              .rows_T = at::full({length}, id, at::kLong)},
                                             dropout);
  const at::Tensor log_probs = hidden.matmul(model_.head_weight().t()).log_softmax(-1);
  at::Tensor sum = at::zeros({}, at::kDouble);
  for (std::int64_t t = 1; t < length; ++t) {
    const auto index = static_cast<std::size_t>(t);
    if (mask[index] != 0) sum = sum - log_probs[t - 1][tokens[index]];
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

std::vector<double> ReferenceTraining::log_probs(const std::vector<std::int32_t>& tokens) {
  const at::NoGradGuard no_grad;
  std::vector<double> values;
  for (std::size_t t = 1; t < tokens.size(); ++t) {
    std::vector<std::uint8_t> only(tokens.size(), 0);
    only[t] = 1;
    values.push_back(-row_loss(tokens, only).item<double>());
  }
  return values;
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

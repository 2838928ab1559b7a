// A training step of a model preset with random weights in bf16 on one GPU (fp32 on the CPU): the
// time of its parts, tokens per second, MFU, and the kernels that take the time.
//
//   step_bench PRESET cuda|cpu REPEATS CHUNK RECOMPUTE LENGTH..     (one micro-batch of these rows)

#include <ATen/ATen.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "isochron/core/field_text.h"
#include "isochron/cost/flops.h"
#include "isochron/engine/loss/token_outputs.h"
#include "isochron/engine/model/decoder.h"
#include "isochron/engine/model/rms_norm.h"
#include "isochron/engine/optim/adamw.h"
#include "isochron/engine/parallel/world.h"

namespace {

using isochron::PackedTokens;

struct Question {
  isochron::ModelShape shape;
  at::Device device = at::kCPU;
  int repeats = 0;
  isochron::HeadOptions head;
  isochron::Recompute recompute = {};
  std::vector<isochron::Tokens> lengths;
};

Question question_of(const std::vector<std::string>& args) {
  Question question = {
      .shape = isochron::model_preset(args[0]),
      .device = at::Device(args[1] == "cuda" ? "cuda:0" : args[1]),
      .repeats = std::stoi(args[2]),
      .head = {.chunk = std::stoll(args[3])},
      .recompute = isochron::value_from_text<isochron::Recompute>("bench", "recompute", args[4]),
      .lengths = {}};
  for (std::size_t i = 5; i < args.size(); ++i) {
    question.lengths.push_back(static_cast<isochron::Tokens>(std::stoll(args[i])));
  }
  return question;
}

isochron::Decoder random_decoder(const Question& question) {
  isochron::ModelConfig config;
  config.shape = question.shape;
  config.rope.theta = 1e6;
  isochron::Decoder decoder(config,
                            {.device = question.device,
                             .dtype = question.device.is_cuda() ? at::kBFloat16 : at::kFloat,
                             .recompute = question.recompute});
  const at::NoGradGuard no_grad;
  for (const isochron::Parameter& parameter : decoder.parameters()) {
    at::Tensor value = parameter.value;
    parameter.value.dim() == 1 ? value.fill_(1) : value.normal_(0, config.initializer_range);
  }
  return decoder;
}

struct Batch {
  PackedTokens input = {.tokens_T = {}, .positions_T = {}, .cu_seqlens = {0}};
  at::Tensor labels_T;

  explicit Batch(const Question& question) {
    std::vector<at::Tensor> positions;
    for (const isochron::Tokens length : question.lengths) {
      positions.push_back(at::arange(length, at::kLong));
      input.cu_seqlens.push_back(input.cu_seqlens.back() + length);
    }
    const std::int64_t vocabulary = question.shape.vocabulary;
    input.positions_T = at::cat(positions).to(question.device);
    input.tokens_T =
        at::randint(vocabulary, {input.cu_seqlens.back()}, at::kLong).to(question.device);
    labels_T = at::randint_like(input.tokens_T, vocabulary);
  }
};

// Median milliseconds of a run, after two to warm up.
double milliseconds_of(const Question& question, const std::function<void()>& run) {
  std::vector<double> times;
  for (int i = -2; i < question.repeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    if (question.device.is_cuda()) at::accelerator::synchronizeDevice(question.device.index());
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    if (i >= 0) times.push_back(time.count());
  }
  std::ranges::nth_element(times, times.begin() + question.repeats / 2);
  return times[static_cast<std::size_t>(question.repeats / 2)];
}

// Kernels of one run with their times, the longest first, and what the device waited for.
void print_kernels(const Question& question, const std::function<void()>& run) {
  using namespace torch::profiler::impl;
  using namespace torch::autograd::profiler;
  const ProfilerConfig config(ProfilerState::KINETO);
  const std::set<ActivityType> activities = {ActivityType::CUDA};
  prepareProfiler(config, activities);
  enableProfiler(config, activities);
  run();
  at::accelerator::synchronizeDevice(question.device.index());
  const auto result = disableProfiler();
  std::vector<const KinetoEvent*> events;
  for (const KinetoEvent& event : result->events()) {
    if (event.deviceType() == c10::DeviceType::CUDA) events.push_back(&event);
  }
  std::ranges::sort(events, {}, [](const KinetoEvent* event) { return event->startNs(); });
  std::map<std::string, std::pair<double, int>> kernels;
  double total = 0;
  double short_waits = 0;  // between kernels that follow each other
  double long_waits = 0;   // for the host
  std::uint64_t end_ns = events.front()->startNs();
  for (const KinetoEvent* event : events) {
    const auto wait = static_cast<double>(std::max(event->startNs(), end_ns) - end_ns) / 1e6;
    (wait > 0.01 ? long_waits : short_waits) += wait;
    end_ns = std::max(end_ns, event->endNs());
    auto& [time, count] = kernels[event->name()];
    time += static_cast<double>(event->durationNs()) / 1e6;
    total += static_cast<double>(event->durationNs()) / 1e6;
    ++count;
  }
  std::vector<std::pair<std::string, std::pair<double, int>>> sorted(kernels.begin(),
                                                                     kernels.end());
  std::ranges::sort(sorted, std::greater(), [](const auto& kernel) { return kernel.second.first; });
  fmt::print("{} kernels of a step: {:.2f} ms; {:.2f} ms between them, {:.2f} ms without any\n",
             events.size(), total, short_waits, long_waits);
  for (std::size_t i = 0; i < std::min<std::size_t>(40, sorted.size()); ++i) {
    const auto& [name, cost] = sorted[i];
    fmt::print("{:9.3f} ms {:5} x  {}\n", cost.first, cost.second, name.substr(0, 110));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() < 6) {
    fmt::print(stderr, "usage: step_bench PRESET cuda|cpu REPEATS CHUNK RECOMPUTE LENGTH..\n");
    return 2;
  }
  const Question question = question_of(args);
  isochron::World world({}, {.device = question.device});
  const isochron::Decoder decoder = random_decoder(question);
  isochron::ShardedAdamW optimizer(decoder.parameters(), world.all(), {});
  const Batch batch(question);
  const at::Tensor& embedding_VD = decoder.parameters().front().value;
  const auto loss_of = [&](const at::Tensor& hidden_TD) {
    return -isochron::token_outputs(hidden_TD, decoder.head_weight(), batch.labels_T, question.head)
                .log_prob_T.mean();
  };
  const at::Tensor hidden_TD =
      at::randn({batch.labels_T.numel(), question.shape.hidden}, embedding_VD.options())
          .requires_grad_();
  const auto print_part = [&](std::string_view name, const std::function<void()>& run) {
    fmt::print("{:<40} {:9.2f} ms\n", name, milliseconds_of(question, run));
  };

  optimizer.begin();
  print_part("embedding, both ways", [&] {
    at::embedding(embedding_VD, batch.input.tokens_T).backward(hidden_TD.detach());
  });
  print_part("layers, forward", [&] { static_cast<void>(decoder.hidden_TD(batch.input)); });
  print_part("layers and embedding, both ways",
             [&] { decoder.hidden_TD(batch.input).backward(hidden_TD.detach()); });
  print_part("head, forward", [&] { static_cast<void>(loss_of(hidden_TD)); });
  print_part("head, both ways", [&] { loss_of(hidden_TD).backward(); });
  optimizer.begin_last_backward(/*overlap=*/false);
  static_cast<void>(optimizer.finish(1e-6));
  print_part("optimizer", [&] {
    optimizer.begin();
    optimizer.begin_last_backward(/*overlap=*/false);
    static_cast<void>(optimizer.finish(1e-6));
  });
  // As the engine runs a step: it waits for the device after each micro-batch.
  const auto step = [&](int num_microbatches) {
    optimizer.begin();
    for (int i = 0; i < num_microbatches; ++i) {
      const at::Tensor loss = loss_of(decoder.hidden_TD(batch.input));
      if (i + 1 == num_microbatches) optimizer.begin_last_backward(/*overlap=*/true);
      loss.backward();
      if (question.device.is_cuda()) at::accelerator::synchronizeDevice(question.device.index());
    }
    static_cast<void>(optimizer.finish(1e-6));
  };
  const double flops = isochron::model_flops(question.shape, question.lengths);
  for (const int num_microbatches : {1, 4}) {
    const double step_ms = milliseconds_of(question, [&] { step(num_microbatches); });
    const auto tokens = static_cast<double>(num_microbatches * batch.labels_T.numel());
    fmt::print("{:<40} {:9.2f} ms, {:.0f} tokens/s",
               fmt::format("step of {} micro-batches", num_microbatches), step_ms,
               tokens / step_ms * 1e3);
    if (question.device.is_cuda()) {
      const auto share = isochron::mfu(num_microbatches * flops, step_ms / 1e3,
                                       isochron::hardware_preset("h200"), 1);
      fmt::print(", MFU {:.3f} of an H200", share.value());
    }
    fmt::print("\n");
  }
  if (question.device.is_cuda()) print_kernels(question, [&] { step(1); });
  return 0;
}

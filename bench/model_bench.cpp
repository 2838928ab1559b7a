// Forward and backward of a model folder over one packed micro-batch: seconds of each repetition.
//
//   model_bench FOLDER THREADS REPEATS RECOMPUTE LENGTH..     (tokens are counted up modulo 1000)

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <string>
#include <vector>

#include "isochron/core/field_text.h"
#include "isochron/engine/loss/token_outputs.h"
#include "isochron/engine/model/hf_folder.h"

namespace {

isochron::PackedTokens packed(const std::vector<std::int64_t>& lengths) {
  isochron::PackedTokens input = {.tokens_T = {}, .positions_T = {}, .cu_seqlens = {0}};
  std::vector<at::Tensor> positions;
  for (const std::int64_t length : lengths) {
    positions.push_back(at::arange(length, at::kLong));
    input.cu_seqlens.push_back(input.cu_seqlens.back() + length);
  }
  input.positions_T = at::cat(positions);
  input.tokens_T = at::arange(input.cu_seqlens.back(), at::kLong).remainder(1000);
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() < 5) {
    fmt::print(stderr, "usage: model_bench FOLDER THREADS REPEATS RECOMPUTE LENGTH..\n");
    return 2;
  }
  at::set_num_threads(std::stoi(args[1]));
  const auto recompute =
      isochron::value_from_text<isochron::Recompute>("bench", "recompute", args[3]);
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 4; i < args.size(); ++i) lengths.push_back(std::stoll(args[i]));

  const isochron::Decoder decoder = isochron::load_decoder(args[0], {.recompute = recompute});
  const isochron::PackedTokens input = packed(lengths);
  at::Tensor labels = at::cat({input.tokens_T.slice(0, 1), at::full({1}, -1, at::kLong)});
  for (std::size_t i = 1; i < input.cu_seqlens.size(); ++i) {
    labels[input.cu_seqlens[i] - 1].fill_(-1);
  }
  for (int i = 0; i < std::stoi(args[2]); ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const std::clock_t busy = std::clock();
    const auto outputs =
        isochron::token_outputs(decoder.hidden_TD(input), decoder.head_weight(), labels);
    const at::Tensor loss = -outputs.log_prob_T.sum() / (labels >= 0).sum();
    loss.backward();
    for (const isochron::Parameter& parameter : decoder.parameters()) {
      parameter.value.mutable_grad().reset();
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    fmt::print("{{\"seconds\": {}, \"processor_seconds\": {}, \"loss\": {}}}\n", seconds.count(),
               static_cast<double>(std::clock() - busy) / CLOCKS_PER_SEC, loss.item<double>());
  }
  return 0;
}

// The tree of mask_stream.h over tensors: int64 operations wrap around on every device, as uint64
// does, and a right shift needs its upper bits cleared. The CPU has a kernel for what is as large
// as the activations; elsewhere these are torch's operations.

#include "isochron/engine/model/dropout.h"

#include <ATen/ATen.h>

#include <bit>

#include "isochron/engine/model/cpu_kernels.h"
#include "isochron/engine/model/mask_stream.h"

namespace isochron {

namespace {

std::int64_t as_signed(std::uint64_t bits) { return std::bit_cast<std::int64_t>(bits); }

void xor_with_shifted_(at::Tensor& z, int shift) {
  const std::int64_t low_bits = (std::int64_t{1} << (64 - shift)) - 1;
  z.bitwise_xor_(z.bitwise_right_shift(shift).bitwise_and_(low_bits));
}

// number_at() for tensors that broadcast, one of them as large as the result.
at::Tensor numbers_at(const at::Tensor& streams, const at::Tensor& indices) {
  const std::int64_t stride = as_signed(0x9e3779b97f4a7c15ull);
  at::Tensor z = indices.add(1).mul_(stride) + streams;
  xor_with_shifted_(z, 30);
  z.mul_(as_signed(0xbf58476d1ce4e5b9ull));
  xor_with_shifted_(z, 27);
  z.mul_(as_signed(0x94d049bb133111ebull));
  xor_with_shifted_(z, 31);
  return z;
}

at::Tensor numbers_at(const at::Tensor& streams, std::uint64_t index) {
  return numbers_at(streams, at::full({}, as_signed(index), streams.options()));
}

}  // namespace

InputMask::InputMask(at::Tensor streams_T, std::uint64_t index, double probability)
    : streams_T_(std::move(streams_T)), index_(index), probability_(probability) {}

at::Tensor InputMask::apply(const at::Tensor& x_TD) const {
  if (!streams_T_.defined()) return x_TD;
  at::Tensor out_TD = at::empty_like(x_TD);
  apply_to(x_TD, out_TD);
  return out_TD;
}

void InputMask::apply_(const at::Tensor& x_TD) const {
  if (!streams_T_.defined()) return;
  at::Tensor out_TD = x_TD;
  apply_to(x_TD, out_TD);
}

void InputMask::apply_to(const at::Tensor& x_TD, at::Tensor& out_TD) const {
  const std::int32_t limit = drop_limit(probability_);
  const double scale = 1 / (1 - probability_);
  if (cpu::has_kernels(x_TD)) return cpu::drop(x_TD, out_TD, streams_T_, index_, limit, scale);
  const std::int64_t width = x_TD.size(1);
  const at::Tensor pairs_P = at::arange((width + 1) / 2, streams_T_.options());
  const at::Tensor halves_TD = numbers_at(numbers_at(streams_T_, index_).unsqueeze(1), pairs_P)
                                   .view(at::kInt)  // the low half of a number comes first
                                   .narrow(1, 0, width);
  at::mul_out(out_TD, x_TD, at::scalar_tensor(scale, at::dtype(at::kDouble)));
  out_TD.masked_fill_(halves_TD < limit, 0);
}

TokenMasks::TokenMasks(const Dropout& dropout, const at::Tensor& rows_T,
                       const at::Tensor& positions_T)
    : probability_(dropout.probability) {
  const at::Tensor start =
      at::full({}, as_signed(step_stream(dropout.seed, dropout.step)), rows_T.options());
  streams_T_ = numbers_at(numbers_at(start, rows_T), positions_T);
}

LayerMasks TokenMasks::of_layer(std::int64_t layer) const {
  if (!streams_T_.defined()) return {};
  const auto mask = [&](MaskedInput input) {
    return InputMask(streams_T_, input_index(layer, input), probability_);
  };
  return {.qkv = mask(MaskedInput::qkv),
          .output = mask(MaskedInput::output),
          .gate_up = mask(MaskedInput::gate_up),
          .down = mask(MaskedInput::down)};
}

}  // namespace isochron

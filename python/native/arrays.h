#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace isochron::python {

namespace nb = nanobind;

// Whole numbers that Python hands over: a list, or anything one-dimensional with a buffer or DLPack
// (numpy, torch). 64-bit integers that lie one behind the other in host memory are looked at where
// they are; others are copied.
//
// Throws std::invalid_argument("[where] ..") with the name, the position and the value for numbers
// that are not whole (bool and float among them), that need more than 64 bits, more dimensions than
// one, and memory of a device.
class Integers {
 public:
  Integers(nb::handle values, std::string_view where, std::string_view name);

  [[nodiscard]] std::span<const std::int64_t> span() const { return span_; }
  [[nodiscard]] std::vector<std::int64_t> to_vector() const { return {span_.begin(), span_.end()}; }

 private:
  nb::ndarray<nb::ro> array_;  // keeps what `span_` looks at, if not copied
  std::vector<std::int64_t> copy_;
  std::span<const std::int64_t> span_;
};

// Numbers in the type in which they come: integers as above, float32 and float64 as they are. A
// list with a float in it is float64.
class Numbers {
 public:
  using Spans =
      std::variant<std::span<const std::int64_t>, std::span<const float>, std::span<const double>>;

  Numbers(nb::handle values, std::string_view where, std::string_view name);

  [[nodiscard]] const Spans& spans() const { return spans_; }

 private:
  nb::ndarray<nb::ro> array_;
  std::variant<std::vector<std::int64_t>, std::vector<float>, std::vector<double>> copy_;
  Spans spans_;
};

// A vector as a read-only numpy array. Return it with nb::rv_policy::reference_internal: it looks
// into the object that owns the vector, and keeps it.
template <class T>
using View = nb::ndarray<nb::numpy, const T, nb::ndim<1>>;

template <class T>
[[nodiscard]] View<T> view_of(const std::vector<T>& values) {
  static const T nothing{};  // an empty vector may have no address
  return View<T>(values.empty() ? &nothing : values.data(), {values.size()});
}

// A vector as a numpy array that owns it.
template <class T>
[[nodiscard]] nb::ndarray<nb::numpy, T, nb::ndim<1>> owned_array(std::vector<T> values) {
  auto kept = std::make_unique<std::vector<T>>(std::move(values));
  T* data = kept->data();
  const std::size_t size = kept->size();
  const nb::capsule owner(
      kept.release(), [](void* vector) noexcept { delete static_cast<std::vector<T>*>(vector); });
  return {data, {size}, owner};
}

}  // namespace isochron::python

#include "python/native/arrays.h"

#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "isochron/core/require.h"
#include "python/native/python_value.h"

namespace isochron::python {

namespace {

using Array = nb::ndarray<nb::ro>;
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

// Of one argument, for its errors.
struct Argument {
  std::string_view where;
  std::string_view name;
};

constexpr std::string_view wanted = "must be a list, a numpy array or a tensor of one dimension";

std::optional<Array> find_array(nb::handle values, const Argument& argument) {
  PyObject* object = values.ptr();
  if (PyList_Check(object) || PyTuple_Check(object)) return std::nullopt;
  if (PyBytes_Check(object) || PyByteArray_Check(object)) return std::nullopt;  // text, not numbers
  Array array;
  if (!nb::try_cast(values, array, false)) return std::nullopt;
  require(array.device_type() == nb::device::cpu::value, argument.where,
          "{} is in the memory of a device, must be on the CPU", argument.name);
  require(array.ndim() == 1, argument.where, "{} has {} dimensions, {}", argument.name,
          array.ndim(), wanted);
  return array;
}

bool is_type(const Array& array, nb::dlpack::dtype_code code, int bits) {
  return array.dtype().code == static_cast<std::uint8_t>(code) && array.dtype().bits == bits &&
         array.dtype().lanes == 1;
}

template <class T>
bool is_of(const Array& array) {
  return array.dtype() == nb::dtype<T>();
}

bool is_dense(const Array& array) { return array.size() <= 1 || array.stride(0) == 1; }

template <class T>
std::span<const T> dense_span(const Array& array) {
  return {static_cast<const T*>(array.data()), array.size()};
}

template <class From, class To>
bool copy_if(const Array& array, std::vector<To>& copy) {
  if (!is_of<From>(array)) return false;
  const auto* data = static_cast<const From*>(array.data());
  for (std::size_t i = 0; i < array.size(); ++i) {
    copy.push_back(static_cast<To>(data[static_cast<std::int64_t>(i) * array.stride(0)]));
  }
  return true;
}

// Integers of another width, or not one behind the other.
void copy_integers(const Array& array, const Argument& argument, std::vector<std::int64_t>& copy) {
  copy.reserve(array.size());
  if (is_of<std::uint64_t>(array)) {
    const auto* data = static_cast<const std::uint64_t*>(array.data());
    for (std::size_t i = 0; i < array.size(); ++i) {
      const std::uint64_t value = data[static_cast<std::int64_t>(i) * array.stride(0)];
      require(value <= static_cast<std::uint64_t>(largest), argument.where,
              "{}[{}] is {}, must be at most {}", argument.name, i, value, largest);
      copy.push_back(static_cast<std::int64_t>(value));
    }
    return;
  }
  const bool is_copied = copy_if<std::int64_t>(array, copy) || copy_if<std::int32_t>(array, copy) ||
                         copy_if<std::int16_t>(array, copy) || copy_if<std::int8_t>(array, copy) ||
                         copy_if<std::uint32_t>(array, copy) ||
                         copy_if<std::uint16_t>(array, copy) || copy_if<std::uint8_t>(array, copy);
  require(is_copied, argument.where, "{} has numbers of another type, must be integers",
          argument.name);
}

// The items of a list or of anything else that can be gone through.
nb::object items_of(nb::handle values, const Argument& argument) {
  require(!values.is_none() && !PyUnicode_Check(values.ptr()) && !PyBytes_Check(values.ptr()) &&
              !PyByteArray_Check(values.ptr()) && !PyDict_Check(values.ptr()) &&
              PyObject_HasAttrString(values.ptr(), "__iter__") == 1,
          argument.where, "{} is {}, {}", argument.name, shown_value(values), wanted);
  PyObject* items = PySequence_List(values.ptr());
  if (items == nullptr) throw nb::python_error();
  return nb::steal(items);
}

std::vector<std::int64_t> integers_of_items(const nb::object& items, const Argument& argument) {
  std::vector<std::int64_t> copy;
  copy.reserve(nb::len(items));
  for (const nb::handle item : items) {
    const auto value = find_integer_value(item);
    require(value.has_value(), argument.where, "{}[{}] is {}, must be an integer of 64 bits",
            argument.name, copy.size(), shown_value(item));
    copy.push_back(*value);
  }
  return copy;
}

}  // namespace

Integers::Integers(nb::handle values, std::string_view where, std::string_view name) {
  const Argument argument{.where = where, .name = name};
  if (auto array = find_array(values, argument)) {
    if (is_of<std::int64_t>(*array) && is_dense(*array)) {
      array_ = *std::move(array);
      span_ = dense_span<std::int64_t>(array_);
      return;
    }
    copy_integers(*array, argument, copy_);
  } else {
    copy_ = integers_of_items(items_of(values, argument), argument);
  }
  span_ = copy_;
}

Numbers::Numbers(nb::handle values, std::string_view where, std::string_view name) {
  const Argument argument{.where = where, .name = name};
  const auto take = [this]<class T>(std::vector<T> copy) {
    copy_ = std::move(copy);
    spans_ = std::span<const T>(std::get<std::vector<T>>(copy_));
  };
  if (auto array = find_array(values, argument)) {
    const auto take_array = [&]<class T>(const T& /*type*/) {
      if (!is_of<T>(*array)) return false;
      if (is_dense(*array)) {
        array_ = *std::move(array);
        spans_ = dense_span<T>(array_);
      } else {
        std::vector<T> copy;
        copy_if<T>(*array, copy);
        take(std::move(copy));
      }
      return true;
    };
    if (take_array(std::int64_t{}) || take_array(float{}) || take_array(double{})) return;
    std::vector<std::int64_t> copy;
    require(!is_type(*array, nb::dlpack::dtype_code::Float, 16), where,
            "{} is float16, must be integers, float32 or float64", name);
    copy_integers(*array, argument, copy);
    take(std::move(copy));
    return;
  }
  const nb::object items = items_of(values, argument);
  bool is_whole = true;
  for (const nb::handle item : items) is_whole = is_whole && PyIndex_Check(item.ptr());
  if (is_whole) {
    take(integers_of_items(items, argument));
    return;
  }
  std::vector<double> copy;
  copy.reserve(nb::len(items));
  for (const nb::handle item : items) {
    const auto value = find_number_value(item);
    require(value.has_value(), where, "{}[{}] is {}, must be a number", name, copy.size(),
            shown_value(item));
    copy.push_back(*value);
  }
  take(std::move(copy));
}

}  // namespace isochron::python

#include "python/native/python_value.h"

#include <nanobind/stl/string.h>

namespace isochron::python {

std::string ShownValue::text() const {
  constexpr std::size_t longest = 60;
  std::string shown;
  try {
    shown = nb::cast<std::string>(nb::repr(value));
  } catch (nb::python_error&) {  // an integer of thousands of digits, or somebody's own repr
    return "a " + nb::cast<std::string>(nb::str(nb::handle(value.type()).attr("__name__")));
  }
  for (char& c : shown) c = c == '\n' || c == '\r' ? ' ' : c;
  if (shown.size() <= longest) return shown;
  std::size_t end = longest;
  while ((shown[end] & 0xC0) == 0x80) --end;  // not inside a character
  return shown.substr(0, end) + "..";
}

std::optional<std::int64_t> find_integer_value(nb::handle value) {
  nb::object number = nb::borrow(value);
  if (!PyLong_CheckExact(value.ptr())) {
    if (PyBool_Check(value.ptr()) || !PyIndex_Check(value.ptr())) return std::nullopt;
    number = nb::steal(PyNumber_Index(value.ptr()));
    if (!number.is_valid()) {  // an array of several numbers
      PyErr_Clear();
      return std::nullopt;
    }
  }
  int overflow = 0;
  const long long found = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0) return std::nullopt;
  return found;
}

std::optional<double> find_number_value(nb::handle value) {
  if (const auto integer = find_integer_value(value)) return static_cast<double>(*integer);
  if (PyBool_Check(value.ptr()) || PyUnicode_Check(value.ptr()) || PyIndex_Check(value.ptr()) ||
      PyObject_HasAttrString(value.ptr(), "__float__") != 1) {
    return std::nullopt;
  }
  const double found = PyFloat_AsDouble(value.ptr());
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return std::nullopt;
  }
  return found;
}

std::string text_argument(nb::handle value, std::string_view where, std::string_view name) {
  std::string text;
  require(PyUnicode_Check(value.ptr()) && nb::try_cast(value, text), where,
          "{} is {}, must be a text that UTF-8 can hold", name, shown_value(value));
  return text;
}

Json json_of(nb::handle value, std::string_view where, std::string_view name) {
  if (value.is_none()) return nullptr;
  if (PyBool_Check(value.ptr())) return value.ptr() == Py_True;
  if (PyUnicode_Check(value.ptr())) return text_argument(value, where, name);
  if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr())) {
    Json list = Json::array();
    for (const nb::handle item : nb::borrow(value)) list.push_back(json_of(item, where, name));
    return list;
  }
  if (const auto integer = find_integer_value(value)) return *integer;
  if (const auto number = find_number_value(value)) return *number;
  reject(where, "{} is {}, must be a number, a text, a bool or None", name, shown_value(value));
}

}  // namespace isochron::python

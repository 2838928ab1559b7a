#include "python/native/python_value.h"

#include <nanobind/stl/string.h>

namespace isochron::python {

std::string shown_value(nb::handle value) {
  constexpr std::size_t longest = 60;
  std::string text;
  try {
    text = nb::cast<std::string>(nb::repr(value));
  } catch (nb::python_error&) {  // an integer of thousands of digits, or somebody's own repr
    return "a " + nb::cast<std::string>(nb::str(nb::handle(value.type()).attr("__name__")));
  }
  for (char& c : text) c = c == '\n' || c == '\r' ? ' ' : c;
  return text.size() <= longest ? text : text.substr(0, longest) + "..";
}

std::optional<std::int64_t> find_integer_value(nb::handle value) {
  if (PyBool_Check(value.ptr()) || !PyIndex_Check(value.ptr())) return std::nullopt;
  PyObject* index = PyNumber_Index(value.ptr());
  if (index == nullptr) {  // an array of several numbers
    PyErr_Clear();
    return std::nullopt;
  }
  const nb::object number = nb::steal(index);
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

Json json_of(nb::handle value, std::string_view where, std::string_view name) {
  if (value.is_none()) return nullptr;
  if (PyBool_Check(value.ptr())) return value.ptr() == Py_True;
  if (PyUnicode_Check(value.ptr())) return nb::cast<std::string>(value);
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

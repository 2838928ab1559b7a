#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "python/native/options.h"

// Structs that a Python program reads, and where they are input also makes: fields by keyword, read
// only, compared by value, with a repr() that makes an equal one.

namespace isochron::python {

// A field of a struct: its name in C++ and JSON, the member, what it means.
template <class Owner, class T>
struct Attribute {
  const char* name;
  T Owner::*member;
  const char* help;
};
template <class Owner, class T>
Attribute(const char*, T Owner::*, const char*) -> Attribute<Owner, T>;

// A list of structs that are records themselves.
template <class T>
inline constexpr bool is_record_list = false;
template <class T>
inline constexpr bool is_record_list<std::vector<T>> = std::is_class_v<T>;

template <class T>
[[nodiscard]] nb::object python_value(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return nb::cast(std::string(name_of(value)));
  } else {
    return nb::cast(value);
  }
}

// The name of a record's class.
template <class T>
[[nodiscard]] std::string class_name() {
  return nb::cast<std::string>(nb::handle(nb::type<T>()).attr("__name__"));
}

template <class T>
[[nodiscard]] std::string record_type() {
  if constexpr (is_record_list<T>) {
    return "collections.abc.Sequence[" + class_name<typename T::value_type>() + "]";
  } else {
    return python_type<T>();
  }
}

template <class T>
[[nodiscard]] T value_of(nb::handle value, std::string_view where, std::string_view name) {
  if constexpr (is_record_list<T>) {
    T list;
    require(nb::try_cast(value, list), where, "{} is {}, must be a list of {}", name,
            shown_value(value), class_name<typename T::value_type>());
    return list;
  } else {
    return field_from_json<T>(json_of(value, where, name), where, name);
  }
}

// Fields that can be read.
template <class Owner, class... Ts>
void add_attributes(nb::class_<Owner>& type, const Attribute<Owner, Ts>&... attributes) {
  const auto add = [&]<class T>(const Attribute<Owner, T>& attribute) {
    if constexpr (std::is_enum_v<T>) {
      const std::string text =
          std::string("def ") + attribute.name + "(self, /) -> " + literal_type<T>();
      type.def_prop_ro(
          attribute.name,
          [member = attribute.member](const Owner& self) { return python_value(self.*member); },
          nb::sig(text.c_str()), attribute.help);
    } else {
      type.def_ro(attribute.name, attribute.member, attribute.help);
    }
  };
  (add(attributes), ...);
}

// "Name(first=1, second='x')" of some fields.
template <class Owner, class... Ts>
void add_repr(nb::class_<Owner>& type, const Attribute<Owner, Ts>&... attributes) {
  type.def("__repr__", [attributes...](nb::handle self) {
    const Owner& owner = nb::cast<const Owner&>(self);
    std::string text;
    const auto add = [&](const auto& attribute) {
      text += (text.empty() ? "" : ", ") + std::string(attribute.name) + "=" +
              nb::cast<std::string>(nb::repr(python_value(owner.*attribute.member)));
    };
    (add(attributes), ...);
    return nb::cast<std::string>(self.type().attr("__name__")) + "(" + text + ")";
  });
}

template <class Owner>
void add_equality(nb::class_<Owner>& type) {
  type.def(
      "__eq__",
      [](const Owner& self, nb::handle other) {
        const Owner* same = nullptr;
        return nb::try_cast(other, same) && same != nullptr && self == *same;
      },
      nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"));
}

// A constructor with a keyword for each field; `where` is what its errors begin with. What the
// fields together have to fulfil is checked by require_valid(), where the struct has one.
template <class Owner, class... Ts>
void add_constructor(nb::class_<Owner>& type, std::string_view where,
                     const Attribute<Owner, Ts>&... attributes) {
  std::string parameters = "def __init__(self, *";
  const auto add = [&]<class T>(const Attribute<Owner, T>& attribute) {
    parameters += std::string(", ") + attribute.name + ": " + record_type<T>() + " = ";
    if constexpr (is_record_list<T>) {
      parameters += "...";
    } else {
      parameters += python_default(Owner{}.*attribute.member);
    }
  };
  (add(attributes), ...);
  parameters += ") -> None";
  const auto init = [where = std::string(where), attributes...](Owner* self,
                                                                const nb::kwargs& values) {
    Json keys = Json::object();
    for (const auto& [key, value] : values) keys[nb::cast<std::string>(key)] = nullptr;
    require_known_keys(keys, where, std::vector<std::string>{attributes.name...});
    Owner made;
    const auto set = [&]<class T>(const Attribute<Owner, T>& attribute) {
      if (values.contains(attribute.name)) {
        made.*attribute.member = value_of<T>(values[attribute.name], where, attribute.name);
      }
    };
    (set(attributes), ...);
    if constexpr (requires { require_valid(made); }) require_valid(made);
    new (self) Owner(std::move(made));
  };
  type.def("__init__", init, nb::sig(parameters.c_str()));
}

// All of the above: a struct that is input and result.
template <class Owner, class... Ts>
void add_record(nb::class_<Owner>& type, std::string_view where,
                const Attribute<Owner, Ts>&... attributes) {
  add_constructor(type, where, attributes...);
  add_attributes(type, attributes...);
  add_repr(type, attributes...);
  add_equality(type);
}

}  // namespace isochron::python

#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <string>

#include "isochron/balance/balance.h"
#include "isochron/check/check.h"
#include "isochron/pack/pack.h"
#include "python/native/options.h"
#include "python/native/question.h"

// Answers that keep their question, so that they can be written down and checked alone.

namespace isochron::python {

struct BalanceAnswer {
  Balance balance;
  std::int32_t ranks = 0;
  BalanceOptions options;
  Question question;
};

struct PackAnswer {
  Packing packing;
  PackOptions options;
  Question question;
};

// The documents that the command line writes. Throws std::invalid_argument for an answer that was
// made from costs without lengths.
[[nodiscard]] std::string to_json(const BalanceAnswer& answer);
[[nodiscard]] std::string to_json(const PackAnswer& answer);

// Adds `status` and `reason`, which `result_of(owner)` has.
template <class Owner, class ResultOf>
void add_outcome(nb::class_<Owner>& type, ResultOf result_of) {
  const std::string text = "def status(self, /) -> " + literal_type<Status>();
  type.def_prop_ro(
      "status",
      [result_of](const Owner& self) { return std::string(name_of(result_of(self).status)); },
      nb::sig(text.c_str()), "Whether this is proved the best, or that there is no answer.");
  type.def_prop_ro(
      "reason", [result_of](const Owner& self) { return std::string(result_of(self).reason); },
      "Why there is no answer, in words; empty otherwise.");
}

// Adds `options`, `to_json()` and `check()`.
template <class Owner>
void add_document(nb::class_<Owner>& type) {
  type.def(
      "to_json", [](const Owner& self) { return to_json(self); },
      "The document that the command line writes: all that was asked and answered.");
  type.def(
      "check",
      [](const Owner& self) {
        const std::string document = to_json(self);
        const nb::gil_scoped_release release;
        return find_violation(document);
      },
      "The first rule that the result breaks, in words; None if it is valid.");
}

}  // namespace isochron::python

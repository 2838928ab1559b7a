#pragma once

#include <cstdint>
#include <string_view>

#include "isochron/core/json.h"

namespace isochron {

// How often something is done: every so many steps, at the end of every epoch, or never.
struct Frequency {
  static constexpr std::string_view each_epoch_text = "after_each_epoch";

  std::int64_t steps = -1;  // -1: never
  bool each_epoch = false;

  [[nodiscard]] bool is_ever() const { return each_epoch || steps > 0; }

  bool operator==(const Frequency&) const = default;
};

template <>
struct FieldForm<Frequency> {
  static constexpr std::string_view type_text = "integer|after_each_epoch";

  [[nodiscard]] static Json to_json(const Frequency& value) {
    if (value.each_epoch) return Frequency::each_epoch_text;
    return value.steps;
  }

  // Rejects 0 and what is below -1: steps that are a multiple of nothing.
  [[nodiscard]] static Frequency from_json(const Json& json, std::string_view where,
                                           std::string_view key) {
    if (json == Frequency::each_epoch_text) return {.each_epoch = true};
    const bool is_steps =
        json.is_number_integer() && (json == -1 || (json >= 1 && json <= INT64_MAX));
    require(is_steps, where, "{} is {}, must be -1 (never), at least 1 or {}", key, shown(json),
            Frequency::each_epoch_text);
    return {.steps = json.get<std::int64_t>()};
  }
};

}  // namespace isochron

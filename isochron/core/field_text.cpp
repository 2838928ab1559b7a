#include "isochron/core/field_text.h"

#include <charconv>
#include <cmath>
#include <numeric>

namespace isochron {

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replace = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replace, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

template <class T>
std::optional<T> find_spelled(std::string_view text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
  ISOCHRON_ASSERT(!candidates.empty());
  // A name of megabytes is nobody's typo, and the distance is quadratic.
  name = name.substr(0, 64);
  return *std::min_element(candidates.begin(), candidates.end(),
                           [&](const std::string& a, const std::string& b) {
                             return edit_distance(name, a) < edit_distance(name, b);
                           });
}

std::string flag_of(std::string_view key) {
  std::string flag = "--" + std::string(key);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

void require_listed(std::string_view where, std::string_view key, std::string_view text,
                    std::string_view values) {
  if (values.empty()) return;
  std::string shown;
  for (std::string_view rest = values; !rest.empty();) {
    const std::string_view value = rest.substr(0, rest.find('|'));
    if (value == text) return;
    shown += (shown.empty() ? "" : ", ") + std::string(value);
    rest.remove_prefix(std::min(value.size() + 1, rest.size()));
  }
  reject(where, "{} is \"{}\", must be one of {}", key, text, shown);
}

std::optional<std::int64_t> find_integer(std::string_view text) {
  return find_spelled<std::int64_t>(text);
}

std::optional<double> find_number(std::string_view text) {
  const auto value = find_spelled<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

}  // namespace isochron

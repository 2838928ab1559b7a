#include "isochron/cost/preset_names.h"

#include "isochron/core/json.h"

namespace isochron {

std::string preset_key(std::string_view name) {
  std::string key(name);
  for (char& c : key) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == ' ') c = '-';
  }
  return key;
}

void reject_unknown(std::string_view where, std::string_view noun, std::string_view name,
                    std::span<const std::string> known) {
  reject(where, "unknown {} {}, did you mean \"{}\"? Known are {}", noun, shown_name(name),
         nearest_name(preset_key(name.substr(0, 64)), known), joined(known));
}

std::string shown_name(std::string_view name) { return shown(std::string(name.substr(0, 64))); }

std::string joined(std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : names) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

}  // namespace isochron

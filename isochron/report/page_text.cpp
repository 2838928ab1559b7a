#include "isochron/report/page_text.h"

namespace isochron {

std::string escaped_for_script(std::string_view json) {
  std::string escaped;
  escaped.reserve(json.size() + json.size() / 16);
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string_view rest = json.substr(i);
    if (rest.front() == '<') {
      escaped += "\\u003c";
    } else if (rest.front() == '>') {
      escaped += "\\u003e";
    } else if (rest.front() == '&') {
      escaped += "\\u0026";
    } else if (rest.starts_with("\xe2\x80\xa8") || rest.starts_with("\xe2\x80\xa9")) {
      escaped += rest[2] == '\xa8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      escaped += rest.front();
    }
  }
  return escaped;
}

std::string page_with_data(const PageText& page, std::string_view json) {
  std::string html;
  for (const std::string_view piece : page.before_data) html += piece;
  html += escaped_for_script(json);
  for (const std::string_view piece : page.after_data) html += piece;
  return html;
}

}  // namespace isochron

#pragma once

#include <span>
#include <string>
#include <string_view>

// The pages of a report as embed_page.cmake puts them together.

namespace isochron {

struct PageText {
  std::span<const std::string_view> before_data;  // literals, to be written one after the other
  std::span<const std::string_view> after_data;
};

extern const PageText plan_page;
extern const PageText run_page;

// The page as one file. The data is JSON; nothing in it can end the element it stands in.
[[nodiscard]] std::string page_with_data(const PageText& page, std::string_view json);

// JSON that can stand in a script element: `<`, `>`, `&` and the line ends U+2028 and U+2029 as
// \u escapes. They occur in strings alone, so that the meaning stays.
[[nodiscard]] std::string escaped_for_script(std::string_view json);

}  // namespace isochron

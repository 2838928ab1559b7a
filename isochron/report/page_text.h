#pragma once

#include <array>
#include <string_view>

// The page of a report as embed_page.cmake puts it together.

namespace isochron {

extern const std::array<std::string_view, 3> page_before_data;
extern const std::array<std::string_view, 3> page_after_data;

}  // namespace isochron

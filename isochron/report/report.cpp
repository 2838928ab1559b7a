#include "isochron/report/report.h"

#include "isochron/report/page_text.h"
#include "isochron/report/report_json.h"

namespace isochron {

std::string report_html(std::span<const ReportEntry> entries) {
  std::string html;
  for (const std::string_view piece : page_before_data) html += piece;
  html += escaped_for_script(report_json(entries));
  for (const std::string_view piece : page_after_data) html += piece;
  return html;
}

}  // namespace isochron

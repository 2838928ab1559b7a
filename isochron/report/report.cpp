#include "isochron/report/report.h"

#include "isochron/report/page_text.h"
#include "isochron/report/report_json.h"

namespace isochron {

std::string report_html(std::span<const ReportEntry> entries) {
  return page_with_data(plan_page, report_json(entries));
}

}  // namespace isochron

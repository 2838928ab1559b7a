#include "isochron/report/run_report.h"

#include "isochron/report/page_text.h"
#include "isochron/report/run_json.h"

namespace isochron {

std::string run_report_html(std::span<const RunRecord> runs) {
  return page_with_data(run_page, run_json(runs));
}

}  // namespace isochron

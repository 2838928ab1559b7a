#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "apps/isochron/run_lines.h"
#include "isochron/report/run_report.h"

namespace isochron {

struct RankTrace {
  std::map<std::int64_t, std::vector<MeasuredScope>> scopes_of_step;
  std::vector<std::string> notes;
};

// The trace of a rank: a Chrome trace array with one event per line, possibly without its end.
// Complete events ("ph": "X") with args.step count; others are skipped, as are steps for which
// `is_wanted` is false. Names of scopes are looked up in `scope_names`, and put there if new. An
// earlier step, or a second `[`, is a run that was resumed: it replaces what stood from its first
// step on.
[[nodiscard]] RankTrace read_trace(std::istream& stream, std::string_view file, std::int32_t rank,
                                   const std::function<bool(std::int64_t step)>& is_wanted,
                                   std::vector<std::string>& scope_names,
                                   const CountBytes& count_bytes = {});

}  // namespace isochron

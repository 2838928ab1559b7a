#pragma once

#include <string>
#include <vector>

#include "apps/isochron/run_lines.h"
#include "isochron/report/run_report.h"

namespace isochron {

inline constexpr std::size_t max_run_steps = 2000;

// Whether `path` names a folder.
[[nodiscard]] bool is_folder(const std::string& path);

// What a run folder holds: config.yaml, metrics.jsonl, plans/step_N.json, trace/rank_R.json. The
// run may still be going on, or have been killed: whatever can be read is, and `notes` say what is
// missing, incomplete or damaged, with the file and the first line. The name is that of the folder.
//
// Where a run was resumed from an earlier step, what it wrote before from that step on is replaced.
// At most `max_steps` plans are read, spread evenly, and the traces of as many steps. Throws
// std::invalid_argument if the folder holds none of these files, std::runtime_error if it cannot be
// read.
[[nodiscard]] RunRecord read_run_folder(const std::string& path,
                                        std::size_t max_steps = max_run_steps,
                                        const CountBytes& count_bytes = {});

// Several folders. Those with the same name are called by their path. `count_bytes` hears of as
// many bytes as run_bytes() says, or fewer.
[[nodiscard]] std::vector<RunRecord> read_run_folders(const std::vector<std::string>& paths,
                                                      const CountBytes& count_bytes = {});
[[nodiscard]] std::int64_t run_bytes(const std::vector<std::string>& paths);

}  // namespace isochron

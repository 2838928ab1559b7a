#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "isochron/engine/parallel/place.h"

namespace isochron {

using Environment = std::map<std::string, std::string>;

// Which rank a process is, by the environment that its launcher gave it: torchrun (RANK,
// WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT, ..) or Slurm's srun (SLURM_PROCID,
// SLURM_NTASKS, SLURM_LOCALID, first host of the node list); torchrun's come first where both are
// there. The only rank if there is neither. Slurm has no port: MASTER_PORT, or one that follows
// from the job.
//
// Throws std::invalid_argument, naming the variable, its value and what is allowed, for a value
// that is no number or out of range, variables that contradict each other, and one that is missing.
[[nodiscard]] Place place_from_environment(const Environment& environment);

// The first host of a node list as Slurm writes it: "node[003-005,9],other" -> "node003".
[[nodiscard]] std::string first_host(std::string_view node_list);

}  // namespace isochron

#pragma once

#include <functional>
#include <optional>
#include <string>

#include "isochron/engine/parallel/place.h"

namespace isochron {

// The value of an environment variable, if it is set.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;

// The place of this process as its launcher wrote it into the environment: torchrun (RANK,
// WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT, TORCHELASTIC_*), else Slurm's
// srun with several tasks (SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID, first host of the node list,
// a port made of the job's number unless MASTER_PORT names one), else a single process.
// GLOO_SOCKET_IFNAME names the interface. Throws std::invalid_argument that names a variable which
// is missing or no number.
[[nodiscard]] Place launched_place(const EnvironmentLookup& lookup);

// The first host of a Slurm node list: "gpu[03-05,9],cpu1" gives "gpu03".
[[nodiscard]] std::string first_host(const std::string& node_list);

}  // namespace isochron

#include "isochron/engine/parallel/launcher.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "isochron/core/require.h"

namespace isochron {

namespace {

// Ports from here on are free on most hosts; the job's number tells jobs that share one apart.
constexpr std::int32_t first_slurm_port = 20'000;
constexpr std::int32_t num_slurm_ports = 10'000;

class Environment {
 public:
  explicit Environment(const EnvironmentLookup& lookup) : lookup_(lookup) {}

  [[nodiscard]] std::optional<std::string> find(const std::string& name) const {
    auto value = lookup_(name);
    if (value && value->empty()) return std::nullopt;
    return value;
  }

  [[nodiscard]] std::string text(const std::string& name) const {
    const auto value = find(name);
    require(value.has_value(), "launcher", "{} is not set", name);
    return *value;
  }

  [[nodiscard]] std::int32_t number(const std::string& name) const {
    const std::string value = text(name);
    std::int32_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    require(error == std::errc() && end == value.data() + value.size() && number >= 0, "launcher",
            "{} is \"{}\", must be a number", name, value);
    return number;
  }

 private:
  const EnvironmentLookup& lookup_;
};

Place torchrun_place(const Environment& environment) {
  return {.rank = environment.number("RANK"),
          .size = environment.number("WORLD_SIZE"),
          .local_rank = environment.number("LOCAL_RANK"),
          .local_size = environment.number("LOCAL_WORLD_SIZE"),
          .address = environment.text("MASTER_ADDR"),
          .port = environment.number("MASTER_PORT"),
          .agent_hosts_store = environment.find("TORCHELASTIC_USE_AGENT_STORE") == "True",
          .incarnation = environment.find("TORCHELASTIC_RUN_ID").value_or("0") + "/" +
                         environment.find("TORCHELASTIC_RESTART_COUNT").value_or("0")};
}

// "2(x3),1" is 2, 2, 2, 1 tasks on the nodes of the step; this node's is looked up by its number.
std::int32_t tasks_on_node(std::string_view list, std::int32_t node) {
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    std::int32_t tasks = 0;
    std::int32_t nodes = 1;
    std::from_chars(item.data(), item.data() + item.size(), tasks);
    if (const std::size_t times = item.find("(x"); times != std::string_view::npos) {
      std::from_chars(item.data() + times + 2, item.data() + item.size(), nodes);
    }
    if (node < nodes) return tasks;
    node -= nodes;
    list.remove_prefix(std::min(list.size(), item.size() + 1));
  }
  return 1;
}

Place slurm_place(const Environment& environment) {
  const auto port = environment.find("MASTER_PORT");
  return {.rank = environment.number("SLURM_PROCID"),
          .size = environment.number("SLURM_NTASKS"),
          .local_rank = environment.number("SLURM_LOCALID"),
          .local_size = tasks_on_node(environment.text("SLURM_STEP_TASKS_PER_NODE"),
                                      environment.number("SLURM_NODEID")),
          .address = environment.find("MASTER_ADDR")
                         .value_or(first_host(environment.text("SLURM_STEP_NODELIST"))),
          .port = port ? environment.number("MASTER_PORT")
                       : first_slurm_port + environment.number("SLURM_JOB_ID") % num_slurm_ports,
          .incarnation = environment.find("SLURM_RESTART_COUNT").value_or("0")};
}

}  // namespace

std::string first_host(const std::string& node_list) {
  const std::size_t end = node_list.find_first_of(",[");
  std::string host = node_list.substr(0, end);
  if (end == std::string::npos || node_list[end] == ',') return host;
  const std::size_t stop = node_list.find_first_of(",-]", end + 1);
  return host + node_list.substr(end + 1, stop - end - 1);
}

Place launched_place(const EnvironmentLookup& lookup) {
  const Environment environment(lookup);
  Place place;
  if (environment.find("RANK") && environment.find("WORLD_SIZE")) {
    place = torchrun_place(environment);
  } else if (environment.find("SLURM_PROCID") && environment.find("SLURM_STEP_NODELIST")) {
    place = slurm_place(environment);
  }
  place.interface = environment.find("GLOO_SOCKET_IFNAME").value_or("");
  return place;
}

}  // namespace isochron

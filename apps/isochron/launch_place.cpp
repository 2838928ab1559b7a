#include "apps/isochron/launch_place.h"

#include <algorithm>
#include <optional>

#include "isochron/core/field_text.h"
#include "isochron/core/units.h"

namespace isochron {

namespace {

constexpr const char* where = "launch";

std::optional<std::string> find(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  if (found == environment.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::int32_t integer(const Environment& environment, const std::string& name, std::int32_t low,
                     std::int32_t high) {
  const auto text = find(environment, name);
  require(text.has_value(), where, "{} is not set, must be from {} to {}", name, low, high);
  const auto value = find_integer(*text);
  require(value && *value >= low && *value <= high, where, "{} is \"{}\", must be from {} to {}",
          name, *text, low, high);
  return static_cast<std::int32_t>(*value);
}

std::int32_t integer_or(const Environment& environment, const std::string& name, std::int32_t low,
                        std::int32_t high, std::int32_t otherwise) {
  return find(environment, name) ? integer(environment, name, low, high) : otherwise;
}

void require_local_inside(const Place& place, const char* rank_name) {
  require(place.local_size <= place.size && place.local_rank < place.local_size, where,
          "{} is {}, must be below the {} ranks of the host", rank_name, place.local_rank,
          place.local_size);
}

Place torchrun_place(const Environment& environment) {
  Place place;
  place.size = integer(environment, "WORLD_SIZE", 1, max_ranks);
  place.rank = integer(environment, "RANK", 0, place.size - 1);
  place.local_size = integer_or(environment, "LOCAL_WORLD_SIZE", 1, place.size, place.size);
  place.local_rank =
      integer_or(environment, "LOCAL_RANK", 0, place.size - 1, place.rank % place.local_size);
  require_local_inside(place, "LOCAL_RANK");
  place.incarnation = find(environment, "TORCHELASTIC_RESTART_COUNT").value_or("0");
  if (place.size == 1) return place;
  const auto address = find(environment, "MASTER_ADDR");
  require(address.has_value(), where, "MASTER_ADDR is not set, must be the host of rank 0");
  place.address = *address;
  place.port = integer(environment, "MASTER_PORT", 1, 65535);
  const std::string agent = find(environment, "TORCHELASTIC_USE_AGENT_STORE").value_or("False");
  require(agent == "True" || agent == "False", where,
          "TORCHELASTIC_USE_AGENT_STORE is \"{}\", must be True or False", agent);
  place.agent_hosts_store = agent == "True";
  return place;
}

// "4(x2),3": tasks of the first node that has as many as this host cannot be told apart; the
// largest is what a host has to be ready for.
std::int32_t tasks_per_node(const std::string& text, std::int32_t size) {
  std::int32_t most = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(','));
    const auto count = find_integer(part.substr(0, part.find('(')));
    require(count && *count >= 1 && *count <= size, where,
            "SLURM_STEP_TASKS_PER_NODE is \"{}\", must be like 4(x2),3", text);
    most = std::max(most, static_cast<std::int32_t>(*count));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
  }
  return most;
}

Place slurm_place(const Environment& environment) {
  Place place;
  place.size = integer(environment, "SLURM_NTASKS", 1, max_ranks);
  place.rank = integer(environment, "SLURM_PROCID", 0, place.size - 1);
  const auto tasks = find(environment, "SLURM_STEP_TASKS_PER_NODE");
  place.local_size = tasks ? tasks_per_node(*tasks, place.size) : place.size;
  place.local_rank = integer_or(environment, "SLURM_LOCALID", 0, place.size - 1, 0);
  require_local_inside(place, "SLURM_LOCALID");
  place.incarnation = find(environment, "SLURM_RESTART_COUNT").value_or("0");
  if (place.size == 1) return place;
  auto nodes = find(environment, "SLURM_STEP_NODELIST");
  if (!nodes) nodes = find(environment, "SLURM_JOB_NODELIST");
  require(nodes.has_value(), where, "SLURM_STEP_NODELIST is not set, must name the nodes");
  place.address = first_host(*nodes);
  // Jobs that share a node get different ports; all tasks of a job the same.
  constexpr std::int32_t first_port = 20000;
  constexpr std::int32_t num_ports = 20000;
  const std::int32_t job = integer_or(environment, "SLURM_JOB_ID", 0, INT32_MAX, 0);
  place.port = integer_or(environment, "MASTER_PORT", 1, 65535, first_port + job % num_ports);
  return place;
}

}  // namespace

std::string first_host(std::string_view node_list) {
  const std::size_t bracket = node_list.find('[');
  const std::size_t comma = node_list.find(',');
  if (bracket == std::string_view::npos || comma < bracket) {
    const std::string host(node_list.substr(0, comma));
    require(!host.empty() && host.find(']') == std::string::npos, where,
            "the node list \"{}\" names no host", node_list);
    return host;
  }
  const std::size_t close = node_list.find(']', bracket);
  require(close != std::string_view::npos, where, "the node list \"{}\" has no closing bracket",
          node_list);
  const std::string_view range = node_list.substr(bracket + 1, close - bracket - 1);
  const std::string_view number = range.substr(0, range.find_first_of(",-"));
  require(!number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos,
          where, "the node list \"{}\" has \"{}\" in brackets, must be like 003-005,9", node_list,
          range);
  // Behind the bracket the name may go on: "rack[1-2]-gpu".
  const std::string_view behind = node_list.substr(close + 1);
  return std::string(node_list.substr(0, bracket)) + std::string(number) +
         std::string(behind.substr(0, behind.find(',')));
}

Place place_from_environment(const Environment& environment) {
  const bool has_rank = find(environment, "RANK").has_value();
  const bool has_size = find(environment, "WORLD_SIZE").has_value();
  if (has_rank || has_size) return torchrun_place(environment);
  if (find(environment, "SLURM_PROCID") && find(environment, "SLURM_NTASKS")) {
    return slurm_place(environment);
  }
  return {};
}

}  // namespace isochron

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace isochron {

// A device and how it is connected. 1 GB is 1e9 bytes; bandwidths are what one device reaches in
// one direction in a collective.
struct Hardware {
  std::string name;
  double peak_flops = 0;       // bf16, dense; 0: unknown
  std::int64_t hbm_bytes = 0;  // memory of a device
  double hbm_gb_per_s = 0;     // of that memory
  std::int64_t devices_per_node = 1;
  double node_gb_per_s = 0;     // inside a node
  double network_gb_per_s = 0;  // across nodes

  bool operator==(const Hardware&) const = default;
};

// The preset for a device that calls itself `device_name`: the one with the longest name that
// occurs in it, in any case. "NVIDIA H100 80GB HBM3" -> h100. None for an unknown device.
[[nodiscard]] std::optional<Hardware> find_hardware(std::string_view device_name);

// A preset by its own name, in any case: h100, a100, mi300x, ... Throws std::invalid_argument, with
// the nearest name, for another.
[[nodiscard]] Hardware hardware_preset(std::string_view name);
[[nodiscard]] std::vector<std::string> hardware_names();

}  // namespace isochron

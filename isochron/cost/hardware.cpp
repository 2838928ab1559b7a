// Peaks are those of SPEC A.5, memory and links those of the data sheets, in decimal units.
//
// A collective does not reach the rate on a data sheet. Inside a node it is taken to reach 7/9 of
// the sum of a device's links in one direction (h100: 350 of 450 GB/s), across nodes 9/10 of the
// adapter that a reference system gives each device (h100: 45 of 50 GB/s), over PCIe 4.0 x16 25 of
// 32 GB/s. `isochron calibrate` replaces all of it by what a machine measures.

#include "isochron/cost/hardware.h"

#include "isochron/cost/preset_names.h"

namespace isochron {

namespace {

constexpr std::int64_t gb = 1'000'000'000;

const std::vector<Hardware>& presets() {
  // name, peak, memory, its GB/s, devices per node, GB/s inside, GB/s across
  static const std::vector<Hardware> devices = {
      // NVIDIA H100 SXM data sheet: NVLink 900 GB/s both ways; DGX H100: 400 Gb/s per device.
      {"h100", 989e12, 80 * gb, 3350, 8, 350, 45},
      // H800 SXM: an H100 with NVLink 400 GB/s both ways.
      {"h800", 989e12, 80 * gb, 3350, 8, 155, 45},
      // NVIDIA H200 SXM data sheet: links as H100.
      {"h200", 989e12, 141 * gb, 4800, 8, 350, 45},
      // H20 SXM: 96 GB HBM3, links as H100.
      {"h20", 148e12, 96 * gb, 4000, 8, 350, 45},
      // NVIDIA A100 80GB SXM data sheet: NVLink 600 GB/s both ways; DGX A100: 200 Gb/s per device.
      {"a100", 312e12, 80 * gb, 2039, 8, 233, 22.5},
      // A800 80GB SXM: an A100 with NVLink 400 GB/s both ways.
      {"a800", 312e12, 80 * gb, 2039, 8, 155, 22.5},
      // NVIDIA L40S data sheet: no NVLink, PCIe 4.0 x16; one 200 Gb/s adapter per two devices.
      {"l40s", 362.05e12, 48 * gb, 864, 8, 25, 11.25},
      // NVIDIA L40 data sheet: links as L40S.
      {"l40", 181.05e12, 48 * gb, 864, 8, 25, 11.25},
      // L20: 48 GB GDDR6, links as L40S.
      {"l20", 119.5e12, 48 * gb, 864, 8, 25, 11.25},
      // NVIDIA A40 data sheet: PCIe 4.0 x16; the NVLink bridge joins pairs only and is left out.
      {"a40", 149.7e12, 48 * gb, 696, 8, 25, 11.25},
      // GeForce RTX 3070 Ti specification: GDDR6X, PCIe 4.0 x16; 10 Gb/s Ethernet.
      {"rtx-3070-ti", 21.75e12, 8 * gb, 608, 1, 25, 1.125},
      // NVIDIA DGX B200 data sheet: 1440 GB in 8 devices, NVLink 1800 GB/s both ways, 400 Gb/s.
      {"b200", 2.25e15, 180 * gb, 8000, 8, 700, 45},
      // NVIDIA GB200 NVL72 data sheet: 72 devices on one NVLink, 13.4 TB together, 400 Gb/s each.
      {"gb200", 2.5e15, 186 * gb, 8000, 72, 700, 45},
      // AMD MI300X data sheet: 7 Infinity Fabric links of 64 GB/s each way; 400 Gb/s per device.
      {"mi300x", 1307e12, 192 * gb, 5300, 8, 348, 45},
      // AMD MI350X data sheet: 7 Infinity Fabric links of 76.8 GB/s each way; 400 Gb/s per device.
      {"mi350x", 2300e12, 288 * gb, 8000, 8, 418, 45},
      // AMD MI355X data sheet: as MI350X.
      {"mi355x", 2500e12, 288 * gb, 8000, 8, 418, 45},
      // Atlas 800T A2, known by three names: HCCS 392 GB/s both ways, 200 Gb/s RoCE. There is no
      // public data sheet of its memory; 1600 GB/s is reported for HBM2e of that size.
      {"910b", 354e12, 64 * gb, 1600, 8, 152, 22.5},
      {"ascend910", 354e12, 64 * gb, 1600, 8, 152, 22.5},
      {"a2g3", 354e12, 64 * gb, 1600, 8, 152, 22.5},
      // Ascend 950DT as announced in 2025: 144 GB, 2 TB/s of links both ways; 400 Gb/s assumed.
      {"ascend950dt", 432e12, 144 * gb, 4000, 8, 778, 45},
      // A server of 8 memory channels DDR4-3200, processes on one machine, 100 Gb/s Ethernet.
      {"cpu", 448e9, 128 * gb, 204.8, 1, 10, 11.25},
  };
  return devices;
}

}  // namespace

std::optional<Hardware> find_hardware(std::string_view device_name) {
  const std::string key = preset_key(device_name);
  const Hardware* best = nullptr;
  for (const Hardware& hardware : presets()) {
    if (key.find(hardware.name) == std::string::npos) continue;
    const auto is_better = [&] {  // equally long: the last by name, as verl has it
      return hardware.name.size() != best->name.size() ? hardware.name.size() > best->name.size()
                                                       : hardware.name > best->name;
    };
    if (best == nullptr || is_better()) best = &hardware;
  }
  return best ? std::optional(*best) : std::nullopt;
}

Hardware hardware_preset(std::string_view name) {
  const std::string key = preset_key(name);
  for (const Hardware& hardware : presets()) {
    if (hardware.name == key) return hardware;
  }
  reject_unknown("hardware", "hardware", name, hardware_names());
}

std::vector<std::string> hardware_names() {
  std::vector<std::string> names;
  for (const Hardware& hardware : presets()) names.push_back(hardware.name);
  return names;
}

}  // namespace isochron

#include "isochron/cost/hardware.h"

#include <nanobind/stl/string_view.h>

#include "python/native/bindings.h"
#include "python/native/record.h"

namespace isochron::python {

void bind_hardware(nb::module_& module) {
  nb::class_<Hardware> type(module, "Hardware",
                            "A device and how it is connected. 1 GB is 1e9 bytes.");
  add_record(type, "Hardware", Attribute{"name", &Hardware::name, "What the device is called."},
             Attribute{"peak_flops", &Hardware::peak_flops, "bf16, dense; 0: unknown."},
             Attribute{"hbm_bytes", &Hardware::hbm_bytes, "Memory of a device."},
             Attribute{"hbm_gb_per_s", &Hardware::hbm_gb_per_s, "Of that memory."},
             Attribute{"devices_per_node", &Hardware::devices_per_node, "Devices of a node."},
             Attribute{"node_gb_per_s", &Hardware::node_gb_per_s, "Inside a node, one direction."},
             Attribute{"network_gb_per_s", &Hardware::network_gb_per_s, "Across nodes."});
  module.def(
      "find_hardware", &find_hardware, nb::arg("device_name"),
      "The preset for a device that calls itself so: \"NVIDIA H100 80GB HBM3\" -> h100; None "
      "for an unknown one.");
  module.def("hardware_preset", &hardware_preset, nb::arg("name"),
             "A preset by its own name, in any case. ValueError, with the nearest, for another.");
  module.def("hardware_names", &hardware_names, "The names of all presets.");
}

}  // namespace isochron::python

#pragma once

#include <nanobind/nanobind.h>

// The extension isochron._planner: one bind_x() per subject, called once by module.cpp. Names are
// those of C++ and of the JSON documents.

namespace isochron::python {

namespace nb = nanobind;

void bind_balance(nb::module_& module);
void bind_batch(nb::module_& module);
void bind_capacity(nb::module_& module);
void bind_check(nb::module_& module);
void bind_cost(nb::module_& module);
void bind_flops(nb::module_& module);
void bind_hardware(nb::module_& module);
void bind_karmarkar_karp(nb::module_& module);
void bind_layout(nb::module_& module);
void bind_megatron(nb::module_& module);
void bind_model_shape(nb::module_& module);
void bind_pack(nb::module_& module);
void bind_pad(nb::module_& module);
void bind_padding_row(nb::module_& module);
void bind_plan(nb::module_& module);
void bind_report(nb::module_& module);
void bind_simulate(nb::module_& module);
void bind_slime(nb::module_& module);
void bind_step_plan(nb::module_& module);
void bind_verl(nb::module_& module);

}  // namespace isochron::python

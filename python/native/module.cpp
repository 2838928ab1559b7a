#include <exception>

#include "isochron/pack/peer_error.h"
#include "python/native/bindings.h"

namespace isochron::python {

namespace {

// std::invalid_argument is a ValueError and std::runtime_error a RuntimeError by themselves; what
// verl and slime assert is an AssertionError, without an argument where theirs has no text.
void translate(const std::exception_ptr& thrown, void* /*payload*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const PeerAssertionError& error) {
    if (*error.what() == '\0') {
      PyErr_SetNone(PyExc_AssertionError);
    } else {
      PyErr_SetString(PyExc_AssertionError, error.what());
    }
  }
}

}  // namespace

NB_MODULE(_planner, module) {
  module.doc() = "The planner of isochron, in C++. Use it through the package isochron.";
  nb::register_exception_translator(translate);
  // Types before what returns them: signatures name them.
  bind_batch(module);
  bind_hardware(module);
  bind_model_shape(module);
  bind_cost(module);
  bind_flops(module);
  bind_capacity(module);
  bind_step_plan(module);
  bind_balance(module);
  bind_karmarkar_karp(module);
  bind_pack(module);
  bind_verl(module);
  bind_slime(module);
  bind_pad(module);
  bind_padding_row(module);
  bind_simulate(module);
  bind_plan(module);
  bind_megatron(module);
  bind_layout(module);
  bind_check(module);
  bind_report(module);
}

}  // namespace isochron::python

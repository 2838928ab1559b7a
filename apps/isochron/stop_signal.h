#pragma once

namespace isochron {

// From now on SIGTERM sets a flag instead of ending the process.
void catch_stop_signal();

[[nodiscard]] bool is_stop_signalled();

}  // namespace isochron

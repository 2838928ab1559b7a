#pragma once

namespace isochron {

// From now on SIGTERM sets a flag instead of ending the process.
void catch_stop_signal();

[[nodiscard]] bool is_stop_signalled();

// Writing to a rank that has gone is an error that names it, not the end of this process: the
// sockets of libtorch leave SIGPIPE on.
void ignore_broken_pipes();

}  // namespace isochron

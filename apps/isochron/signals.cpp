#include "apps/isochron/signals.h"

#include <csignal>

namespace isochron {

namespace {

volatile std::sig_atomic_t stop_signalled = 0;  // a handler can reach nothing else

}  // namespace

void catch_stop_signal() {
  struct sigaction action = {};
  action.sa_handler = [](int) { stop_signalled = 1; };
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTERM, &action, nullptr);
}

void ignore_broken_pipes() { std::signal(SIGPIPE, SIG_IGN); }

bool is_stop_signalled() { return stop_signalled != 0; }

}  // namespace isochron

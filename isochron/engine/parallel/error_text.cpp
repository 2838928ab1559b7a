#include "isochron/engine/parallel/error_text.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

namespace isochron {

std::string one_line(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  std::string_view text = torch_error ? torch_error->what_without_backtrace() : error.what();
  text = text.substr(0, text.find('\n'));
  if (text.starts_with('[') && text.find("] ") != std::string_view::npos) {
    text.remove_prefix(text.find("] ") + 2);  // "[../gloo/transport/tcp/pair.cc:534] "
  }
  while (text.ends_with('.') || text.ends_with(' ')) text.remove_suffix(1);
  return std::string(text);
}

std::string failure_text(std::string_view what, std::string_view communicator, double seconds,
                         std::string_view culprit, std::string_view error) {
  return fmt::format("[world] {} of {} failed after {:.1f} s: {}{}({})", what, communicator,
                     seconds, culprit, culprit.empty() ? "" : " ", error);
}

}  // namespace isochron

#pragma once

#include <stdexcept>
#include <string>

namespace isochron {

// The text of the std::invalid_argument that `call` throws; "accepted" if it throws none.
template <class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace isochron

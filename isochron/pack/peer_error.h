#pragma once

#include <stdexcept>
#include <string>

namespace isochron {

// What verl and slime raise, with their words: the functions that give their exact answers also
// give their exact errors. A binding raises AssertionError and ValueError.
class PeerAssertionError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

class PeerValueError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

}  // namespace isochron

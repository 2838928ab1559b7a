#pragma once

#include <string>
#include <vector>

namespace isochron {

// What a program left behind.
struct Finished {
  int exit_code = -1;  // 128 + the signal that ended it
  std::string out;
  std::string err;
};

// Runs the program of this build with `arguments`, from an empty working folder of the test, and
// waits for it.
[[nodiscard]] Finished run_program(const std::vector<std::string>& arguments,
                                   const std::string& input = "");

// A file in the working folder of the test; its path.
std::string write_test_file(const std::string& name, const std::string& text);
[[nodiscard]] std::string read_test_file(const std::string& name);

}  // namespace isochron

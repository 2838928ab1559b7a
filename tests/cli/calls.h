#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "isochron/core/json.h"
#include "tests/cli/process.h"

// Calls of the program with what they must give.

namespace isochron {

using Arguments = std::vector<std::string>;

inline Arguments joined(Arguments call, const Arguments& more) {
  call.insert(call.end(), more.begin(), more.end());
  return call;
}

inline bool is_one_line(const std::string& text) {
  return !text.empty() && text.find('\n') == text.size() - 1;
}

// The error line of a call that must fail with `exit_code` and print nothing.
inline std::string error_line(const Arguments& arguments, int exit_code,
                              const std::string& input = "") {
  const Finished finished = run_program(arguments, input);
  EXPECT_EQ(finished.exit_code, exit_code) << finished.err;
  EXPECT_EQ(finished.out, "");
  EXPECT_TRUE(is_one_line(finished.err)) << finished.err;
  return finished.err.substr(0, finished.err.size() - 1);
}

// The document of a call that writes one to standard output and nothing to standard error.
inline Json json_of(const Arguments& arguments, int exit_code = 0) {
  const Finished finished = run_program(arguments);
  EXPECT_EQ(finished.exit_code, exit_code) << finished.err;
  EXPECT_EQ(finished.err, "");
  return parse_json(finished.out, "test");
}

}  // namespace isochron

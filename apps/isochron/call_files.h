#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace isochron {

// A file that a call of the program names, and the flag that names it.
struct CallFile {
  std::string flag;
  std::string path;  // "-": a standard stream; empty: none
};

// All that a call reads and writes.
struct CallFiles {
  std::vector<CallFile> inputs;
  std::vector<CallFile> outputs;
};

// Before any work: no output may take the place of an input or of another output, however their
// paths are spelled (std::invalid_argument), and all of them can be written (std::runtime_error).
// An input that is a folder stands for all files below it, but for pages (.html). `where` is the
// verb, for messages.
void require_separate(const CallFiles& files, std::string_view where);

}  // namespace isochron

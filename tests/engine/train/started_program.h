#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace isochron {

// How a program ended, and what it said.
struct EndedProgram {
  int exit_code = -1;  // 128 + the signal that ended it
  std::string out;
  std::string err;
};

// The program of this build, running beside the test.
class StartedProgram {
 public:
  // Output goes to files in `folder`. `launcher`: a command that starts the program.
  StartedProgram(const std::vector<std::string>& arguments, std::filesystem::path folder,
                 const std::vector<std::string>& launcher = {});
  StartedProgram(const StartedProgram&) = delete;
  StartedProgram& operator=(const StartedProgram&) = delete;
  ~StartedProgram();  // kills it if nobody waited

  [[nodiscard]] pid_t process() const { return process_; }
  void signal(int number) const;
  // Kills it after `seconds`.
  EndedProgram wait(double seconds = 120);

 private:
  std::filesystem::path folder_;
  pid_t process_;
};

}  // namespace isochron

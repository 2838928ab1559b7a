#include "tests/cli/process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace isochron {

namespace {

// One per process, since tests of a program may run side by side.
const std::filesystem::path& folder() {
  static const std::filesystem::path path = [] {
    auto made = std::filesystem::temp_directory_path() /
                ("isochron_cli_test_" + std::to_string(::getpid()));
    std::filesystem::create_directories(made / "work");
    return made;
  }();
  static const struct Remover {
    ~Remover() { std::filesystem::remove_all(path); }
  } remover;
  return path;
}

std::string read_all(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void redirect(const std::filesystem::path& path, int descriptor) {
  const int file =
      ::open(path.c_str(), descriptor == 0 ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || ::dup2(file, descriptor) < 0) ::_exit(126);
}

}  // namespace

// Files instead of pipes: no output is too long for them.
Finished run_program(const std::vector<std::string>& arguments, const std::string& input) {
  std::ofstream(folder() / "in", std::ios::binary) << input;
  std::vector<char*> argv = {const_cast<char*>("isochron")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    redirect(folder() / "in", 0);
    redirect(folder() / "out", 1);
    redirect(folder() / "err", 2);
    if (::chdir((folder() / "work").c_str()) != 0) ::_exit(126);
    ::execv(ISOCHRON_PROGRAM, argv.data());
    ::_exit(127);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child) throw std::runtime_error("cannot wait");
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .out = read_all(folder() / "out"),
          .err = read_all(folder() / "err")};
}

std::string write_test_file(const std::string& name, const std::string& text) {
  const std::filesystem::path path = folder() / "work" / name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

std::string read_test_file(const std::string& name) { return read_all(folder() / "work" / name); }

}  // namespace isochron

#include "tests/engine/train/started_program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace isochron {

namespace {

std::string read_all(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void redirect(const std::filesystem::path& path, int descriptor) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || ::dup2(file, descriptor) < 0) ::_exit(126);
}

}  // namespace

StartedProgram::StartedProgram(const std::vector<std::string>& arguments,
                               std::filesystem::path folder,
                               const std::vector<std::string>& launcher)
    : folder_(std::move(folder)), process_(-1) {
  std::vector<std::string> command = launcher;
  command.emplace_back(ISOCHRON_PROGRAM);
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  process_ = ::fork();
  if (process_ < 0) throw std::runtime_error("cannot fork");
  if (process_ == 0) {
    redirect(folder_ / "out", STDOUT_FILENO);
    redirect(folder_ / "err", STDERR_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
}

StartedProgram::~StartedProgram() {
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

void StartedProgram::signal(int number) const { ::kill(process_, number); }

EndedProgram StartedProgram::wait(double seconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  int status = 0;
  while (::waitpid(process_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) ::kill(process_, SIGKILL);
    ::usleep(5000);
  }
  process_ = -1;
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .out = read_all(folder_ / "out"),
          .err = read_all(folder_ / "err")};
}

}  // namespace isochron

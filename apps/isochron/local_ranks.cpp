#include "apps/isochron/local_ranks.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <set>
#include <stdexcept>

#include "apps/isochron/signals.h"

namespace isochron {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds grace{15};  // for the other ranks to name the one that failed
constexpr int poll_ms = 50;

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(fmt::format("[launch] {}: {}", what, std::strerror(errno)));
}

// A TCP port of this host that nobody uses.
int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const bool is_bound = socket >= 0 && ::bind(socket, generic, size) == 0 &&
                        ::getsockname(socket, generic, &size) == 0;
  if (!is_bound) fail("no port can be opened");
  ::close(socket);
  return ::ntohs(address.sin_port);
}

struct Rank {
  pid_t process = -1;
  int errors = -1;        // the reading end of its standard error; -1: closed
  std::string line = {};  // that has no end yet
  bool is_running = true;
};

void set_variable(const char* name, std::int32_t value) {
  ::setenv(name, std::to_string(value).c_str(), 1);
}

[[noreturn]] void become_rank(std::int32_t rank, std::int32_t count, int port, int errors,
                              const std::vector<std::string>& arguments, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nothing stays behind a launcher that was killed
  if (::getppid() != parent) ::_exit(126);
  ::dup2(errors, STDERR_FILENO);
  set_variable("RANK", rank);
  set_variable("LOCAL_RANK", rank);
  set_variable("WORLD_SIZE", count);
  set_variable("LOCAL_WORLD_SIZE", count);
  set_variable("MASTER_PORT", port);
  ::setenv("MASTER_ADDR", "127.0.0.1", 1);
  std::vector<char*> argv = {const_cast<char*>("isochron")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv("/proc/self/exe", argv.data());
  ::_exit(127);
}

std::vector<Rank> start_ranks(std::int32_t count, const std::vector<std::string>& arguments) {
  const int port = free_port();
  const pid_t parent = ::getpid();
  std::vector<Rank> ranks;
  for (std::int32_t rank = 0; rank < count; ++rank) {
    int ends[2] = {};
    if (::pipe2(ends, O_CLOEXEC) != 0) fail("no pipe can be opened");
    const pid_t process = ::fork();
    if (process < 0) fail("no process can be started");
    if (process == 0) become_rank(rank, count, port, ends[1], arguments, parent);
    ::close(ends[1]);
    ranks.push_back({.process = process, .errors = ends[0]});
  }
  return ranks;
}

// Passes on what the ranks write to standard error.
class ErrorLines {
 public:
  void read_some(std::vector<Rank>& ranks) {
    std::vector<pollfd> polled;
    for (const Rank& rank : ranks) polled.push_back({rank.errors, POLLIN, 0});
    if (::poll(polled.data(), polled.size(), poll_ms) <= 0) return;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (polled[i].revents != 0) read_from(i, ranks[i]);
    }
  }

 private:
  void read_from(std::size_t number, Rank& rank) {
    char bytes[4096];
    const ssize_t count = ::read(rank.errors, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) return;
    if (count > 0) rank.line.append(bytes, static_cast<std::size_t>(count));
    for (std::size_t end = rank.line.find('\n'); end != std::string::npos;
         end = rank.line.find('\n')) {
      print(number, rank.line.substr(0, end));
      rank.line.erase(0, end + 1);
    }
    if (count <= 0) {
      if (!rank.line.empty()) print(number, rank.line);
      ::close(rank.errors);
      rank.errors = -1;
    }
  }

  void print(std::size_t number, const std::string& line) {
    if (said_.insert(line).second) fmt::print(stderr, "[rank {}] {}\n", number, line);
  }

  std::set<std::string> said_;
};

void signal_running(const std::vector<Rank>& ranks, int signal) {
  for (const Rank& rank : ranks) {
    if (rank.is_running) ::kill(rank.process, signal);
  }
}

int exit_code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int run_local_ranks(std::int32_t count, const std::vector<std::string>& arguments) {
  catch_stop_signal();
  std::vector<Rank> ranks = start_ranks(count, arguments);
  ErrorLines errors;
  int exit_code = 0;
  bool is_stop_passed_on = false;
  bool is_killing = false;
  Clock::time_point deadline = Clock::time_point::max();
  const auto is_busy = [](const Rank& rank) { return rank.is_running || rank.errors >= 0; };
  while (std::any_of(ranks.begin(), ranks.end(), is_busy)) {
    errors.read_some(ranks);
    if (is_stop_signalled() && !is_stop_passed_on) {
      signal_running(ranks, SIGTERM);
      is_stop_passed_on = true;
    }
    for (Rank& rank : ranks) {
      int status = 0;
      if (!rank.is_running || ::waitpid(rank.process, &status, WNOHANG) != rank.process) continue;
      rank.is_running = false;
      if (WIFSIGNALED(status) && !is_killing) {
        // It could not say so itself.
        fmt::print(stderr, "isochron: [launch] rank {} was ended by signal {} ({})\n",
                   &rank - ranks.data(), WTERMSIG(status), ::strsignal(WTERMSIG(status)));
      }
      if (exit_code_of(status) != 0 && exit_code == 0) {
        exit_code = exit_code_of(status);
        deadline = Clock::now() + grace;
      }
    }
    if (Clock::now() >= deadline) {
      signal_running(ranks, SIGKILL);
      is_killing = true;
      deadline = Clock::time_point::max();
    }
  }
  return exit_code;
}

}  // namespace isochron

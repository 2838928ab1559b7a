#include "tests/support/process_ranks.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <thread>

extern char** environ;

namespace isochron {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::string_view argument_prefix = "--isochron_rank=";

// What makes this process a rank: which call of the test, and where in it.
struct RankArgument {
  std::int64_t call = 0;
  std::int32_t rank = 0;
  std::int32_t size = 1;
  std::int32_t port = 0;
  fs::path folder;  // of the test: results of this and of earlier calls
};

std::optional<RankArgument> own_argument;
std::string own_program;

fs::path file_of(const fs::path& folder, std::int64_t call, std::int32_t rank, const char* kind) {
  return folder / fmt::format("call_{}_rank_{}.{}", call, rank, kind);
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string current_test() {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  if (test == nullptr) throw std::logic_error("[process_ranks] ranks run inside a test");
  return fmt::format("{}.{}", test->test_suite_name(), test->name());
}

// Calls so far of the test that runs now.
std::int64_t next_call() {
  static std::string test;
  static std::int64_t call = 0;
  if (current_test() != test) {
    test = current_test();
    call = 0;
  }
  return call++;
}

[[noreturn]] void become_rank(const RankArgument& argument,
                              const std::function<std::string(const Place&)>& body) {
  const Place place{.rank = argument.rank,
                    .size = argument.size,
                    .local_rank = argument.rank,
                    .local_size = argument.size,
                    .port = argument.size == 1 ? 0 : argument.port};
  ::signal(SIGPIPE, SIG_IGN);  // as every program with a World does
  int status = 0;
  try {
    write_text(file_of(argument.folder, argument.call, argument.rank, "result"), body(place));
    if (testing::Test::HasFailure()) status = 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    status = 3;
  }
  std::fflush(stdout);
  std::fflush(stderr);
  std::_Exit(status);
}

RankOutcome read_outcome(const fs::path& folder, std::int64_t call, std::int32_t rank) {
  RankOutcome outcome;
  std::ifstream(file_of(folder, call, rank, "exit")) >> outcome.exit >> outcome.seconds;
  outcome.output = read_text(file_of(folder, call, rank, "output"));
  outcome.result = read_text(file_of(folder, call, rank, "result"));
  return outcome;
}

pid_t start_rank(const RankArgument& argument) {
  const std::string output = file_of(argument.folder, argument.call, argument.rank, "output");
  std::vector<std::string> arguments{
      own_program, "--gtest_filter=" + current_test(), "--gtest_also_run_disabled_tests",
      fmt::format("{}{}:{}:{}:{}:{}", argument_prefix, argument.call, argument.rank, argument.size,
                  argument.port, argument.folder.string())};
  std::vector<char*> pointers;
  for (std::string& text : arguments) pointers.push_back(text.data());
  pointers.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  pid_t process = 0;
  const int error =
      posix_spawn(&process, own_program.c_str(), &files, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) throw std::runtime_error("[process_ranks] cannot start " + own_program);
  return process;
}

// Waits for all and writes how each ended. Kills what is left at the limit, and stopped processes
// when nobody else is left.
void await_ranks(const fs::path& folder, std::int64_t call, const std::vector<pid_t>& processes,
                 std::chrono::seconds limit) {
  enum class State { running, stopped, ended };
  std::vector<State> states(processes.size(), State::running);
  const auto start = Clock::now();
  const auto is_any = [&](State state) { return std::ranges::count(states, state) > 0; };
  while (is_any(State::running) || is_any(State::stopped)) {
    for (std::size_t rank = 0; rank < processes.size(); ++rank) {
      int status = 0;
      if (states[rank] == State::ended ||
          waitpid(processes[rank], &status, WNOHANG | WUNTRACED) != processes[rank]) {
        continue;
      }
      states[rank] = WIFSTOPPED(status) ? State::stopped : State::ended;
      if (states[rank] == State::stopped) continue;
      const int exit = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      write_text(file_of(folder, call, static_cast<std::int32_t>(rank), "exit"),
                 fmt::format("{} {}", exit, seconds));
    }
    if (!is_any(State::running) || Clock::now() - start > limit) {
      for (std::size_t rank = 0; rank < processes.size(); ++rank) {
        if (states[rank] != State::ended) kill(processes[rank], SIGKILL);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
}

// Of the running test, in the parent; gone when the process ends.
const fs::path& own_folder() {
  struct Folder {
    Folder() {
      std::string name = (fs::temp_directory_path() / "isochron_ranks_XXXXXX").string();
      if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("[process_ranks] no folder");
      path = name;
    }
    ~Folder() {
      std::error_code ignored;
      fs::remove_all(path, ignored);
    }
    fs::path path;
  };
  static std::string test;
  static std::optional<Folder> folder;
  if (current_test() != test) {
    test = current_test();
    folder.emplace();
  }
  return folder->path;
}

}  // namespace

std::vector<RankOutcome> rank_outcomes(std::int32_t size,
                                       const std::function<std::string(const Place&)>& body,
                                       const RankOptions& options) {
  const std::int64_t call = next_call();
  if (own_argument && own_argument->call == call) become_rank(*own_argument, body);
  const fs::path folder = own_argument ? own_argument->folder : own_folder();
  if (!own_argument) {
    const std::int32_t port = free_port();
    std::vector<pid_t> processes;
    for (std::int32_t rank = 0; rank < size; ++rank) {
      processes.push_back(start_rank({call, rank, size, port, folder}));
    }
    await_ranks(folder, call, processes, options.limit);
  }
  std::vector<RankOutcome> outcomes;
  for (std::int32_t rank = 0; rank < size; ++rank) {
    outcomes.push_back(read_outcome(folder, call, rank));
  }
  return outcomes;
}

std::vector<std::string> expect_ranks(std::int32_t size,
                                      const std::function<std::string(const Place&)>& body,
                                      const RankOptions& options) {
  std::vector<std::string> results;
  std::int32_t rank = 0;
  for (RankOutcome& outcome : rank_outcomes(size, body, options)) {
    EXPECT_EQ(outcome.exit, 0) << "rank " << rank << " of " << size << " after " << outcome.seconds
                               << " s, of " << options.limit.count() << ":\n"
                               << outcome.output;
    results.push_back(std::move(outcome.result));
    ++rank;
  }
  return results;
}

std::int32_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* general = reinterpret_cast<sockaddr*>(&address);
  const bool is_bound = socket >= 0 && bind(socket, general, length) == 0 &&
                        getsockname(socket, general, &length) == 0;
  if (socket >= 0) close(socket);
  if (!is_bound) throw std::runtime_error("[free_port] 127.0.0.1 has no free port");
  return ntohs(address.sin_port);
}

void take_rank_argument(int& argc, char** argv) {
  own_program = fs::read_symlink("/proc/self/exe").string();
  const std::string_view last = argc > 1 ? argv[argc - 1] : "";
  if (!last.starts_with(argument_prefix)) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // nothing outlives a test that is killed
  const std::string text(last.substr(argument_prefix.size()));
  RankArgument argument;
  int read = 0;
  if (std::sscanf(text.c_str(), "%ld:%d:%d:%d:%n", &argument.call, &argument.rank, &argument.size,
                  &argument.port, &read) != 4) {
    throw std::invalid_argument("[process_ranks] " + text + " is not a rank");
  }
  argument.folder = text.substr(static_cast<std::size_t>(read));
  own_argument = argument;
  argv[--argc] = nullptr;
}

}  // namespace isochron

#include "client/cli/daemon.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace chainfleet {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kPoll = absl::Milliseconds(20);
constexpr absl::Duration kKillTimeout = absl::Seconds(10);
constexpr size_t kLogLines = 12;

// Empty if the process is gone, a zombie, or not accessible.
std::string LinkOf(pid_t pid, const char* what) {
  std::error_code error;
  const std::string target = fs::read_symlink(absl::StrCat("/proc/", pid, "/", what), error).string();
  return std::string(absl::StripSuffix(target, " (deleted)"));  // the binary was rebuilt meanwhile
}

}  // namespace

bool WaitUntil(const Clock* clock, absl::Duration timeout, const std::function<bool()>& done) {
  const absl::Duration end = clock->Monotonic() + timeout;
  while (!done()) {
    if (clock->Monotonic() >= end) return false;
    std::this_thread::sleep_for(absl::ToChronoMilliseconds(kPoll));
  }
  return true;
}

Daemon::Daemon(std::string name, std::string program, std::string run_folder)
    : name_(std::move(name)), program_(std::move(program)), run_folder_(std::move(run_folder)) {}

pid_t Daemon::ReadPid() const {
  pid_t pid = 0;
  return std::ifstream(path(".pid")) >> pid ? std::max(pid, 0) : 0;
}

std::optional<pid_t> Daemon::Pid() const {
  const pid_t pid = ReadPid();
  if (pid == 0) return std::nullopt;
  std::error_code error;
  const fs::path folder = fs::weakly_canonical(run_folder_, error);
  const bool ours =
      fs::path(LinkOf(pid, "exe")).filename() == fs::path(program_).filename() && LinkOf(pid, "cwd") == folder;
  return ours ? std::optional(pid) : std::nullopt;
}

bool Daemon::HasEnded() const {
  std::error_code ignored;
  return fs::exists(path(".pid"), ignored) && !Pid();
}

// A process that ends loses the links that Pid reads some time before its status can be read.
std::string Daemon::HowItEnded(absl::Duration patience, const Clock* clock) const {
  const pid_t pid = ReadPid();
  if (pid == 0) return "";
  int status = 0;
  pid_t ended = 0;
  WaitUntil(clock, patience, [&] { return (ended = waitpid(pid, &status, WNOHANG)) != 0; });
  if (ended != pid) return "";
  if (!WIFSIGNALED(status)) return absl::StrCat(" with exit status ", WEXITSTATUS(status));
  return absl::StrCat(" by signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")");
}

absl::Status Daemon::Start(const std::vector<std::string>& arguments) const {
  std::vector<char*> argv = {const_cast<char*>(program_.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  const std::string log = log_path();
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  posix_spawn_file_actions_addchdir_np(&files, run_folder_.c_str());
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, program_.c_str(), &files, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0)
    return absl::FailedPreconditionError(absl::StrCat("cannot start ", program_, ": ", std::strerror(error)));
  std::ofstream file(path(".pid"), std::ios::trunc);
  file << pid << "\n";
  file.close();
  if (file) return absl::OkStatus();
  kill(pid, SIGTERM);  // without a pid file it could not be found again
  return absl::FailedPreconditionError(absl::StrCat("cannot write ", path(".pid")));
}

absl::StatusOr<bool> Daemon::Stop(absl::Duration grace, const Clock* clock) const {
  const std::optional<pid_t> pid = Pid();
  std::error_code ignored;
  if (pid) {
    const auto gone = [&] { return Pid() != pid; };
    kill(*pid, SIGTERM);
    if (!WaitUntil(clock, grace, gone)) {
      kill(*pid, SIGKILL);
      if (!WaitUntil(clock, kKillTimeout, gone)) {
        return absl::DeadlineExceededError(absl::StrCat(name_, " (pid ", *pid, ") did not end, not even by SIGKILL"));
      }
    }
  }
  fs::remove(path(".pid"), ignored);
  return pid.has_value();
}

std::vector<std::string> Daemon::LogTail() const {
  std::ifstream file(log_path());
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(std::move(line));
    if (lines.size() > kLogLines) lines.erase(lines.begin());
  }
  return lines;
}

}  // namespace chainfleet

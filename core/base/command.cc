#include "core/base/command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace chainfleet {
namespace {

constexpr size_t kErrorTailBytes = 1000;

struct Pipe {
  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC) != 0) ends = {-1, -1};
  }
  ~Pipe() {
    Close(0);
    Close(1);
  }
  Pipe(const Pipe&) = delete;
  void Close(size_t end) {
    if (ends[end] >= 0) close(ends[end]);
    ends[end] = -1;
  }
  std::array<int, 2> ends{};
};

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// The program gets its own process group, so that all processes it starts can be killed, and default signal handling,
// because this process blocks some signals.
int Spawn(const std::vector<std::string>& argv, const std::vector<std::string>& environment, Pipe* out, Pipe* error,
          pid_t* pid) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, out->ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, error->ends[1], STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, ours;
  sigemptyset(&none);
  sigemptyset(&ours);
  sigaddset(&ours, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &ours);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  const int failure =
      posix_spawnp(pid, argv[0].c_str(), &files, &attributes, Pointers(argv).data(), Pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  out->Close(1);
  error->Close(1);
  return failure;
}

// Appends the available bytes; closes the pipe at its end.
void ReadSome(Pipe* pipe, std::string* into) {
  std::array<char, 16384> buffer;
  const ssize_t count = read(pipe->ends[0], buffer.data(), buffer.size());
  if (count > 0) {
    into->append(buffer.data(), static_cast<size_t>(count));
  } else if (count == 0 || errno != EINTR) {
    pipe->Close(0);
  }
}

struct Said {
  std::string out, error;
};

// OK once the process has ended and both pipes are closed. `process` is its descriptor.
absl::Status ReadToEnd(const Clock& clock, const CommandLimits& limits, int process, Pipe* out, Pipe* error,
                       Said* said) {
  const absl::Duration end = clock.Monotonic() + limits.time;
  while (!limits.stop.stop_requested() && (process >= 0 || out->ends[0] >= 0 || error->ends[0] >= 0)) {
    const absl::Duration left = end - clock.Monotonic();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(absl::StrCat("did not end within ", absl::FormatDuration(limits.time)));
    }
    std::array<pollfd, 3> ready{pollfd{out->ends[0], POLLIN, 0}, pollfd{error->ends[0], POLLIN, 0},
                                pollfd{process, POLLIN, 0}};
    if (poll(ready.data(), ready.size(), static_cast<int>(absl::ToInt64Milliseconds(left)) + 1) <= 0) continue;
    if (ready[0].revents != 0) ReadSome(out, &said->out);
    if (ready[1].revents != 0) ReadSome(error, &said->error);
    if (ready[2].revents != 0) process = -1;
    if (said->out.size() + said->error.size() > limits.output_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat("said more than ", limits.output_bytes, " bytes"));
    }
  }
  return limits.stop.stop_requested() ? absl::CancelledError("was stopped") : absl::OkStatus();
}

// Makes one line for a log.
std::string Tail(std::string text) {
  text = text.substr(text.size() - std::min(text.size(), kErrorTailBytes));
  std::ranges::replace(text, '\n', ' ');
  const size_t last = text.find_last_not_of(' ');
  return last == std::string::npos ? "" : text.substr(0, last + 1);
}

}  // namespace

absl::StatusOr<std::string> RunCommand(const Clock& clock, const std::vector<std::string>& argv,
                                       const std::vector<std::string>& environment, const CommandLimits& limits) {
  Pipe out, error;
  if (out.ends[0] < 0 || error.ends[0] < 0) return absl::ResourceExhaustedError("no descriptors left for a pipe");
  pid_t pid = 0;
  if (const int failure = Spawn(argv, environment, &out, &error, &pid); failure != 0) {
    const std::string what = absl::StrCat("cannot run ", argv[0], ": ", std::strerror(failure));
    return failure == ENOENT ? absl::NotFoundError(what) : absl::UnavailableError(what);
  }
  Said said;
  // Debian 12's <sys/pidfd.h> does not link from C++.
  const int process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  const absl::Status read = [&] {
    const std::stop_callback on_stop(limits.stop, [pid] { kill(-pid, SIGKILL); });  // gone before `pid` is free
    return ReadToEnd(clock, limits, process, &out, &error, &said);
  }();
  if (process >= 0) close(process);
  if (!read.ok()) kill(-pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (!read.ok()) return Annotate(read, argv[0]);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return said.out;
  const std::string how = WIFEXITED(status) ? absl::StrCat("exit ", WEXITSTATUS(status))
                                            : absl::StrCat("ended by signal ", WTERMSIG(status));
  if (limits.standard_error == nullptr) {
    return absl::UnavailableError(absl::StrCat(argv[0], ": ", how, ": ", Tail(said.error)));
  }
  *limits.standard_error = Tail(said.error);
  return absl::UnavailableError(absl::StrCat(argv[0], ": ", how));
}

absl::StatusOr<std::string> FindProgram(const std::string& program, const std::string& path) {
  std::istringstream folders(path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = absl::StrCat(folder.empty() ? "." : folder, "/", program);
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return absl::NotFoundError(absl::StrCat(program, " is not in PATH (", path, ")"));
}

}  // namespace chainfleet

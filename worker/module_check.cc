#include "worker/module_check.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/environment.h"
#include "core/base/limits.h"
#include "core/base/process_limits.h"
#include "worker/numerics/models/scripted_network.h"

namespace chainfleet {
namespace {

constexpr int kRefused = 3;
constexpr absl::Duration kCheckTime = absl::Minutes(1);
constexpr size_t kMaxReply = 16 << 10;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

absl::Status CannotCheck(const char* what, int error) {
  return absl::ResourceExhaustedError(absl::StrCat("no process can be started that checks the module: ", what, ": ",
                                                   std::system_category().message(error)));
}

absl::Status Refused(const std::string& why) { return InvalidFields({{"model.torchscript", why}}); }

bool WriteAll(int fd, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t wrote = write(fd, bytes.data() + at, bytes.size() - at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    at += static_cast<size_t>(wrote);
  }
  return true;
}

// Reads a whole file; empty if it cannot be read.
std::string ReadAll(int fd) {
  struct stat file;
  if (fstat(fd, &file) != 0) return "";
  std::string bytes(static_cast<size_t>(file.st_size), '\0');
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t got = read(fd, bytes.data() + at, bytes.size() - at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return "";
    at += static_cast<size_t>(got);
  }
  return bytes;
}

// Reads until the other end is closed, at most kMaxReply bytes; nullopt if that takes longer than kCheckTime.
std::optional<std::string> ReadReply(int fd) {
  const SystemClock clock;
  const absl::Duration until = clock.Monotonic() + kCheckTime;
  std::string reply;
  for (;;) {
    pollfd ready = {fd, POLLIN, 0};
    const absl::Duration left = until - clock.Monotonic();
    if (left <= absl::ZeroDuration()) return std::nullopt;
    if (poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1) <= 0) continue;
    char part[4096];
    const ssize_t got = read(fd, part, sizeof part);
    if (got == 0) return reply;
    if (got > 0 && reply.size() < kMaxReply) reply.append(part, static_cast<size_t>(got));
  }
}

// Starts this program with only `input` and `output`: no token, no other descriptor.
absl::StatusOr<pid_t> Spawn(int input, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::string program = "chainfleet-worker", argument = kCheckModule;
  std::string libraries = "LD_LIBRARY_PATH=" + EnvironmentVariable("LD_LIBRARY_PATH");
  std::string threads = "OMP_NUM_THREADS=1";
  char* const arguments[] = {program.data(), argument.data(), nullptr};
  char* const environment[] = {threads.data(), libraries.data(), nullptr};
  pid_t pid = 0;
  const int error = posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, arguments, environment);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return CannotCheck("posix_spawn", error);
  return pid;
}

void Limit(int resource, rlim_t most) {
  const rlimit limit = {most, most};
  setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

// Limits this process permanently. Open files stay open.
void GiveUpRights() {
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ForbidCoreDumps();
  Limit(RLIMIT_CPU, static_cast<rlim_t>(absl::ToInt64Seconds(kCheckTime)));
  Limit(RLIMIT_DATA, 8 * limits::kMaxModelBytes);
  Limit(RLIMIT_FSIZE, 0);
  Limit(RLIMIT_NOFILE, 0);
}

}  // namespace

absl::Status CheckModuleApart(const std::string& bytes) {
  const Descriptor input(memfd_create("module", MFD_CLOEXEC));
  if (input.get() < 0 || !WriteAll(input.get(), bytes)) return CannotCheck("memfd_create", errno);
  lseek(input.get(), 0, SEEK_SET);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return CannotCheck("pipe2", errno);
  const Descriptor from_it(ends[0]);
  absl::StatusOr<pid_t> pid;
  {
    const Descriptor to_us(ends[1]);
    pid = Spawn(input.get(), to_us.get());
  }
  CHAINFLEET_RETURN_IF_ERROR(pid.status());
  const std::optional<std::string> reply = ReadReply(from_it.get());
  if (!reply) kill(*pid, SIGKILL);
  int status = 0;
  while (waitpid(*pid, &status, 0) < 0 && errno == EINTR) continue;
  if (!reply) return Refused(absl::StrCat("the file is not checked within ", absl::FormatDuration(kCheckTime)));
  if (WIFSIGNALED(status)) {
    return Refused(absl::StrCat("the process that checks the file ends by signal ", WTERMSIG(status)));
  }
  const int exit_status = WEXITSTATUS(status);
  if (exit_status == 0) return absl::OkStatus();
  return Refused(exit_status == kRefused
                     ? *reply
                     : absl::StrCat("the process that checks the file ends with exit status ", exit_status));
}

int CheckModuleOfInput() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string bytes = ReadAll(STDIN_FILENO);
  GiveUpRights();
  const absl::Status checked = CheckScript(bytes);
  if (checked.ok()) return 0;
  const std::vector<FieldViolation> violations = FieldViolationsOf(checked);
  WriteAll(STDOUT_FILENO, violations.empty() ? std::string(checked.message()) : violations.front().message);
  return kRefused;
}

}  // namespace chainfleet

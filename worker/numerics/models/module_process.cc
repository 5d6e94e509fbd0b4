#include "worker/numerics/models/module_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <future>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/environment.h"
#include "core/base/utf8.h"
#include "worker/numerics/models/script_loading.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kLoadTime = absl::Minutes(1), kLongestPoll = absl::Minutes(1);
constexpr size_t kMostText = 16 << 10;

absl::Status CannotStart(const char* what, int error) {
  return absl::ResourceExhaustedError(
      absl::StrCat("no process for the module can be started: ", what, ": ", std::system_category().message(error)));
}

absl::Status RefusedModule(const std::string& why) { return InvalidFields({{kScriptPath, why}}); }

// Variables that choose LibTorch's kernels, and so bits, and where its libraries are.
std::vector<std::string> EnvironmentOfModules() {
  std::vector<std::string> environment = {"OMP_NUM_THREADS=1"};
  for (const char* name : {"LD_LIBRARY_PATH", "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_CBWR"}) {
    if (const std::string value = EnvironmentVariable(name); !value.empty()) {
      environment.push_back(absl::StrCat(name, "=", value));
    }
  }
  return environment;
}

absl::StatusOr<pid_t> Spawn(const std::string& program, int socket, int memory) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, socket, kModuleSocket);
  posix_spawn_file_actions_adddup2(&actions, memory, kModuleMemory);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  // A terminal or a service manager may send these to all processes of a worker. The worker then still needs its
  // modules to reach a resume point, and ends them by SIGKILL.
  sigset_t blocked;
  sigemptyset(&blocked);
  for (const int number : {SIGTERM, SIGINT}) sigaddset(&blocked, number);
  posix_spawnattr_setsigmask(&attributes, &blocked);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::string name = "chainfleet-worker", argument = kServeModule;
  char* const arguments[] = {name.data(), argument.data(), nullptr};
  std::vector<std::string> variables = EnvironmentOfModules();
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, program.c_str(), &actions, &attributes, arguments, environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return CannotStart("posix_spawn", error);
  return pid;
}

// Memory that nobody can make shorter, which would kill its readers.
int MakeMemory() {
  const int memory = memfd_create("module", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memory < 0) return memory;
  if (ftruncate(memory, ModuleMemory::kBytes) == 0 &&
      fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
    return memory;
  }
  close(memory);
  return -1;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModuleProcess>> ModuleProcess::Start(const std::string& program) {
  const int fd = MakeMemory();
  if (fd < 0) return CannotStart("memfd_create", errno);
  auto memory = std::make_unique<ModuleMemory>(fd);
  int ends[2] = {-1, -1};
  absl::StatusOr<pid_t> pid;
  if (memory->data() == nullptr) {
    pid = CannotStart("mmap", errno);
  } else if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    pid = CannotStart("socketpair", errno);
  } else {
    pid = Spawn(program, ends[1], fd);
    close(ends[1]);
    if (!pid.ok()) close(ends[0]);
  }
  close(fd);
  CHAINFLEET_RETURN_IF_ERROR(pid.status());
  return std::unique_ptr<ModuleProcess>(new ModuleProcess(*pid, ends[0], std::move(memory)));
}

ModuleProcess::~ModuleProcess() {
  if (alive()) {
    kill(pid_, SIGKILL);
    Reap().IgnoreError();
  }
  close(socket_);
}

// Waits for the end of the process and returns how it was. SIGKILL comes from outside, so the module may run elsewhere.
// Only ConfinedNetwork::Load tells its callers so: a pass throws the message alone, and fails as any other would.
absl::Status ModuleProcess::Reap() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  pid_ = 0;
  const bool killed = WIFSIGNALED(status);
  const std::string how =
      absl::StrCat("the process that runs the module ends ", killed ? "by signal " : "with exit status ",
                   killed ? WTERMSIG(status) : WEXITSTATUS(status));
  if (!killed || WTERMSIG(status) != SIGKILL) return RefusedModule(how);
  return absl::ResourceExhaustedError(how + ", as the kernel ends it when memory is short");
}

absl::Status ModuleProcess::WaitForAnswer(absl::Duration limit) {
  const SystemClock clock;
  const absl::Duration until = clock.Monotonic() + limit;
  char byte = 0;
  if (!alive()) return RefusedModule("the process that runs the module has ended");
  if (send(socket_, &byte, 1, MSG_NOSIGNAL) != 1) return Reap();
  for (;;) {
    const absl::Duration left = until - clock.Monotonic();
    if (left <= absl::ZeroDuration()) {
      kill(pid_, SIGKILL);
      Reap().IgnoreError();
      return RefusedModule(absl::StrCat("the module does not answer within ", absl::FormatDuration(limit)));
    }
    pollfd ready = {socket_, POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(std::min(left, kLongestPoll))) + 1) <= 0) continue;
    const ssize_t got = recv(socket_, &byte, 1, 0);
    if (got == 1) return absl::OkStatus();
    if (got == 0 || errno != EINTR) return Reap();
  }
}

absl::StatusOr<ModuleReader> ModuleProcess::Call(absl::Duration limit) {
  CHAINFLEET_RETURN_IF_ERROR(WaitForAnswer(limit));
  ModuleReader answer(*memory_);
  const auto kind = static_cast<ModuleAnswer>(answer.Number());
  if (kind == ModuleAnswer::kDone) return answer;
  const std::string text = ValidUtf8(answer.Text(kMostText));  // messages to the server are
  TORCH_CHECK(kind == ModuleAnswer::kRefused, text);
  return RefusedModule(text);
}

void ModuleProcesses::Return::operator()(ModuleProcess* process) const {
  std::unique_ptr<ModuleProcess> returned(process);
  std::list<Idle> surplus;  // ends after the lock
  if (!returned->alive() || file.expired()) return;
  MutexLock lock(&processes->mutex_);
  processes->idle_.push_front({std::move(returned), file});
  if (processes->idle_.size() <= processes->most_idle_) return;
  surplus.splice(surplus.begin(), processes->idle_, std::prev(processes->idle_.end()));
}

ModuleProcesses::File ModuleProcesses::OwnName(const File& file) {
  const auto owner = std::make_shared<const File>(file);
  return {owner, file.get()};
}

void ModuleProcesses::EndUnused() {
  std::list<Idle> unused;  // ends after the lock
  MutexLock lock(&mutex_);
  for (auto idle = idle_.begin(); idle != idle_.end();) {
    const auto next = std::next(idle);
    if (idle->file.expired()) unused.splice(unused.begin(), idle_, idle);
    idle = next;
  }
}

std::unique_ptr<ModuleProcess> ModuleProcesses::TakeIdle(const File& file) {
  MutexLock lock(&mutex_);
  for (auto idle = idle_.begin(); idle != idle_.end(); ++idle) {
    if (idle->file.owner_before(file) || file.owner_before(idle->file)) continue;
    std::unique_ptr<ModuleProcess> process = std::move(idle->process);
    idle_.erase(idle);
    return process;
  }
  return nullptr;
}

absl::StatusOr<ModuleProcesses::Lease> ModuleProcesses::Take(const File& file) {
  const Return give_back{shared_from_this(), file};
  if (auto idle = TakeIdle(file); idle != nullptr) return Lease(idle.release(), give_back);
  std::promise<absl::StatusOr<std::unique_ptr<ModuleProcess>>> started;
  starter_->Schedule([&] { started.set_value(ModuleProcess::Start(program_)); });
  CHAINFLEET_ASSIGN_OR_RETURN(auto process, started.get_future().get());
  ModuleWriter message(process->memory());
  message.Add(static_cast<int64_t>(ModuleCall::kLoad));
  message.Add(std::string_view(*file));
  CHAINFLEET_RETURN_IF_ERROR(process->Call(kLoadTime).status());
  return Lease(process.release(), give_back);
}

}  // namespace chainfleet

#include "worker/confinement.h"

#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <memory>
#include <system_error>

#include "core/base/host_memory.h"
#include "core/base/process_limits.h"

namespace chainfleet {
namespace {

void Limit(int resource, rlim_t most) {
  const rlimit limit = {most, most};
  setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

// Other calls fail with EPERM: none opens, connects, starts, traces or signals anything. Memory may become executable,
// because oneDNN writes its kernels while the module runs.
int FilterSystemCalls() {
  constexpr const char* kCalls[] = {"brk",          "clock_getres",   "clock_gettime", "clock_nanosleep",
                                    "exit",         "exit_group",     "futex",         "getcpu",
                                    "getpid",       "getrandom",      "gettid",        "gettimeofday",
                                    "mprotect",     "mremap",         "munmap",        "restart_syscall",
                                    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn",  "sched_getaffinity",
                                    "sched_yield"};
  const struct {
    const char* name;
    scmp_arg_cmp condition;
  } kConditional[] = {
      {"read", {0, SCMP_CMP_EQ, STDIN_FILENO, 0}},
      {"write", {0, SCMP_CMP_EQ, STDIN_FILENO, 0}},
      {"tgkill", {0, SCMP_CMP_EQ, static_cast<scmp_datum_t>(getpid()), 0}},  // abort() signals its own thread
      {"mmap", {3, SCMP_CMP_MASKED_EQ, MAP_SHARED | MAP_GROWSDOWN, 0}},      // which RLIMIT_DATA does not count
      {"madvise", {2, SCMP_CMP_LT, 100, 0}}};                                // the others harm other processes
  const std::unique_ptr<void, void (*)(void*)> filter(seccomp_init(SCMP_ACT_ERRNO(EPERM)), seccomp_release);
  if (filter == nullptr) return -ENOMEM;
  // Threads that LibTorch has started, too.
  if (const int error = seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1); error != 0) return error;
  for (const char* name : kCalls) {
    const int call = seccomp_syscall_resolve_name(name);
    if (const int error = seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, call, 0); error != 0) return error;
  }
  for (const auto& [name, condition] : kConditional) {
    const int call = seccomp_syscall_resolve_name(name);
    const int error = seccomp_rule_add_array(filter.get(), SCMP_ACT_ALLOW, call, 1, &condition);
    if (error != 0) return error;
  }
  return seccomp_load(filter.get());
}

}  // namespace

absl::Status Confine() {
  SetTimeSlice(absl::Milliseconds(100));  // as the worker's thread that computes
  // If memory is short, the kernel ends this process and not the worker.
  std::ofstream("/proc/self/oom_score_adj") << 1000;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ForbidCoreDumps();
  Limit(RLIMIT_DATA, static_cast<rlim_t>(HostMemoryBytes()));
  Limit(RLIMIT_FSIZE, 0);
  Limit(RLIMIT_NOFILE, 0);
  const int error = FilterSystemCalls();
  if (error == 0) return absl::OkStatus();
  return absl::InternalError("the kernel refuses the filter of system calls: " +
                             std::system_category().message(-error));
}

}  // namespace chainfleet

#include "worker/confinement.h"

#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
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
  constexpr const char* kCalls[] = {"brk",           "clock_getres",
                                    "clock_gettime", "clock_nanosleep",
                                    "exit",          "exit_group",
                                    "futex",         "getcpu",
                                    "getpid",        "getrandom",
                                    "gettid",        "gettimeofday",
                                    "madvise",       "mmap",
                                    "mprotect",      "mremap",
                                    "munmap",        "restart_syscall",
                                    "rt_sigaction",  "rt_sigprocmask",
                                    "rt_sigreturn",  "sched_getaffinity",
                                    "sched_yield"};
  const std::unique_ptr<void, void (*)(void*)> filter(seccomp_init(SCMP_ACT_ERRNO(EPERM)), seccomp_release);
  if (filter == nullptr) return -ENOMEM;
  // Threads that LibTorch has started, too.
  if (const int error = seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1); error != 0) return error;
  for (const char* name : kCalls) {
    const int call = seccomp_syscall_resolve_name(name);
    if (const int error = seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, call, 0); error != 0) return error;
  }
  for (const int call : {SCMP_SYS(read), SCMP_SYS(write)}) {
    const int error = seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, call, 1, SCMP_A0(SCMP_CMP_EQ, STDIN_FILENO));
    if (error != 0) return error;
  }
  // abort() sends a signal to its own thread.
  const int error = seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
                                     SCMP_A0(SCMP_CMP_EQ, static_cast<scmp_datum_t>(getpid())));
  return error != 0 ? error : seccomp_load(filter.get());
}

}  // namespace

absl::Status Confine() {
  SetTimeSlice(absl::Milliseconds(100));  // as the worker's thread that computes
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

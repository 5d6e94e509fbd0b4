#include "core/base/process_limits.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace chainfleet {

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = std::min<rlim_t>(limit.rlim_max, 65'536);
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

void ForbidCoreDumps() {
  // 1 and not 0, which the kernel ignores if core_pattern is a pipe. No file fits into 1 byte. If the hard limit is 0
  // already, this fails, and 0 stays.
  constexpr rlimit kNone{.rlim_cur = 1, .rlim_max = 1};
  ::setrlimit(RLIMIT_CORE, &kNone);
}

void SetTimeSlice(absl::Duration slice) {
  // The kernel's struct sched_attr, whose header does not go together with <sched.h>.
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } attributes{};
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return;
  attributes.runtime = static_cast<uint64_t>(absl::ToInt64Nanoseconds(slice));
  ::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace chainfleet

#include "core/base/process_limits.h"

#include <sys/resource.h>

#include <algorithm>

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
  constexpr rlimit kNone{};
  ::setrlimit(RLIMIT_CORE, &kNone);
}

}  // namespace chainfleet

#include "core/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace chainfleet::check_internal {

// Writes to stderr, not through the logger, because the logger itself may be broken.
Failure::~Failure() {
  std::fprintf(stderr, "%s:%d: check failed: %s %s\n", file_, line_, condition_, message_.str().c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace chainfleet::check_internal

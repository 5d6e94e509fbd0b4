// The process of a module as a program of its own, for tests that cannot start chainfleet-worker.
#include "worker/numerics/models/module_service.h"

#if defined(CHAINFLEET_CONFINED)
#include "worker/confinement.h"
#endif

int main() {
#if defined(CHAINFLEET_CONFINED)
  return chainfleet::ServeModule(chainfleet::Confine);
#else
  return chainfleet::ServeModule([] { return absl::OkStatus(); });
#endif
}

// Queries to the Dispatcher: which process of a worker holds which chain and needs which object.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "server/control/dispatcher.h"

namespace chainfleet {

// Thread-safe; cheap to copy. The Dispatcher's arguments outlive it.
class Sessions {
 public:
  explicit Sessions(const Dispatcher& dispatcher) : impl_(dispatcher.impl_) {}

  // Called before bytes are accepted. FAILED_PRECONDITION / LEASE_FENCED unless `lease_epoch` is current and, if
  // `session` is given, that session has the lease.
  absl::Status CheckLease(const ChainId& chain, int64_t lease_epoch,
                          const std::optional<WorkerIdentity>& session = std::nullopt) const;
  // True if the session is the newest process of its worker and called Synchronize within a lease term.
  bool IsPresent(const WorkerIdentity& session) const;
  // True if a chain leased to the session needs the object as its data set, module or resume point.
  bool NeedsObject(const WorkerIdentity& session, const std::string& object) const;

 private:
  std::shared_ptr<Dispatcher::Impl> impl_;
};

}  // namespace chainfleet

// The worker's view of the coordinator: gRPC in production, in-process and lossy in simulation.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "core/base/status.h"
#include "core/domain/prediction.h"
#include "core/domain/worker_protocol.h"

namespace chainfleet {

template <typename T>
using Done = std::function<void(absl::StatusOr<T>)>;

// Thread-safe. Every call has its own deadline and calls `done` exactly once, from any thread, never inside the call.
// UNAVAILABLE and DEADLINE_EXCEEDED may be retried, because every call is idempotent; other errors must not be.
class CoordinatorPort {
 public:
  virtual ~CoordinatorPort() = default;

  // The server may hold the call for up to a sixth of the lease term. `deadline` bounds the whole call.
  virtual void Synchronize(const SynchronizeRequest& request, absl::Duration deadline, Done<SynchronizeReply> done) = 0;

  virtual void CommitProgress(const ProgressCommit& commit, Done<CommitReply> done) = 0;

  // Stores `bytes` under `ref.name`; the server checks size and digest on arrival. OK if the same object exists
  // already. FAILED_PRECONDITION / LEASE_FENCED unless the lease is current.
  virtual void PutBlob(const ChainId& chain, int64_t lease_epoch, const BlobRef& ref,
                       std::shared_ptr<const std::string> bytes, Done<bool> done) = 0;

  // NOT_FOUND. DATA_LOSS: the bytes do not match `ref`.
  virtual void GetBlob(const BlobRef& ref, Done<std::shared_ptr<const std::string>> done) = 0;
};

}  // namespace chainfleet

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

// Thread-safe. Every call has a deadline of its own and calls `done` exactly once, from any thread, never inside the
// call. Retry: UNAVAILABLE and DEADLINE_EXCEEDED may be repeated (every call is idempotent); all else may not.
class CoordinatorPort {
 public:
  virtual ~CoordinatorPort() = default;

  // May be held by the server up to a sixth of the lease term. `deadline` bounds the whole call.
  virtual void Synchronize(const SynchronizeRequest& request, absl::Duration deadline, Done<SynchronizeReply> done) = 0;

  virtual void CommitProgress(const ProgressCommit& commit, Done<CommitReply> done) = 0;

  // Stores `bytes` under `ref.name`; the server checks size and digest on arrival. OK if the same object is there
  // already. The lease must be current: FAILED_PRECONDITION / LEASE_FENCED.
  virtual void PutBlob(const ChainId& chain, int64_t lease_epoch, const BlobRef& ref,
                       std::shared_ptr<const std::string> bytes, Done<bool> done) = 0;

  // NOT_FOUND, DATA_LOSS if the bytes do not match `ref`.
  virtual void GetBlob(const BlobRef& ref, Done<std::shared_ptr<const std::string>> done) = 0;
};

}  // namespace chainfleet

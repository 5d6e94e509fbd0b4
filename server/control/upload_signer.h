// Leave for a worker to put an object of its lease straight into the store of objects.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/mutex.h"
#include "core/domain/signed_upload.h"
#include "server/control/chain_objects.h"
#include "server/control/state_writer.h"

namespace chainfleet {

// Thread-safe. All outlive the executor's tasks.
class UploadSigner {
 public:
  // A request that puts `ref`, good for `valid_for`.
  using Sign = std::function<absl::StatusOr<SignedUpload>(const BlobRef& ref, absl::Duration valid_for)>;

  UploadSigner(Sign sign, ChainObjects objects, StateStore* state, StateWriter* writer, const Clock* clock,
               Executor* executor)
      : sign_(std::move(sign)), objects_(objects), state_(state), writer_(writer), clock_(clock), executor_(executor) {}

  // As ChainObjects::Admit, and what the store's signature wants. Does not block. The object may arrive after the lease
  // has passed, when nobody looks for it any more: once it can arrive no longer, such a chain is looked through again.
  // That is forgotten with the process; the object then goes with the chain's next lease, its end or its job.
  absl::StatusOr<SignedUpload> SignUpload(const ChainId& chain, int64_t lease_epoch, const BlobRef& ref,
                                          const std::optional<WorkerIdentity>& session = std::nullopt);

 private:
  struct Watch {
    int64_t lease_epoch = 0;
    absl::Duration until;  // when the last of its objects has arrived
  };
  void WatchOver(const ChainId& chain, int64_t lease_epoch, absl::Duration longest);
  void Look(const ChainId& chain);

  const Sign sign_;
  const ChainObjects objects_;
  StateStore* const state_;
  StateWriter* const writer_;
  const Clock* const clock_;
  Executor* const executor_;
  Mutex mutex_;
  std::map<ChainId, Watch> watches_ CHAINFLEET_GUARDED_BY(mutex_);  // each has one task on the executor
};

}  // namespace chainfleet

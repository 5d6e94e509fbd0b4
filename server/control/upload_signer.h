// Signs requests with which a worker puts an object of its lease directly into the object store.
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

// Thread-safe. The constructor's arguments outlive the executor's tasks.
class UploadSigner {
 public:
  // Signs a request that puts `ref` and is valid for `valid_for`.
  using Sign = std::function<absl::StatusOr<SignedUpload>(const BlobRef& ref, absl::Duration valid_for)>;

  UploadSigner(Sign sign, ChainObjects objects, StateStore* state, StateWriter* writer, const Clock* clock,
               Executor* executor)
      : sign_(std::move(sign)), objects_(objects), state_(state), writer_(writer), clock_(clock), executor_(executor) {}

  // Errors: those of ChainObjects::Admit and of `sign`. Does not block. An object may arrive after its lease has
  // expired and its chain was swept. The signer therefore queues such a chain for another garbage sweep once no object
  // can arrive any more. A restart forgets this; the object is then deleted after the chain's next lease, its end or
  // its job's.
  absl::StatusOr<SignedUpload> SignUpload(const ChainId& chain, int64_t lease_epoch, const BlobRef& ref,
                                          const std::optional<WorkerIdentity>& session = std::nullopt);

 private:
  struct Watch {
    int64_t lease_epoch = 0;
    absl::Duration until;  // latest arrival of the chain's last object
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

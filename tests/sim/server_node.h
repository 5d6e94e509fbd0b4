// A whole coordinator in one simulated process: dispatcher, collector and verifier over its stores, and an entry in
// place of gRPC.
#pragma once

#include <memory>
#include <string>

#include "server/control/chain_objects.h"
#include "server/control/coordinator.h"
#include "server/control/draw_verifier.h"
#include "server/control/garbage_collector.h"
#include "server/control/retention_keeper.h"
#include "tests/sim/simulated_stores.h"
#include "worker/runtime/session/coordinator_port.h"

namespace chainfleet {

// Calls run on its process; a dead or stopped process answers nothing. The object lives until the end of the run, long
// after the process, because tasks and calls in flight refer to it.
class ServerNode final : public CoordinatorPort {
 public:
  // Takes over the database. If the stores cannot be opened, the process is dead.
  ServerNode(Site* site, const std::string& name);

  Process& process() { return process_; }
  Dispatcher& dispatcher() { return coordinator_->dispatcher(); }

  // Runs `call` on its process. Replies of a dead process are dropped.
  template <typename T>
  void Call(std::function<void(Coordinator*, Reply<T>)> call, Reply<T> done) {
    process_.Schedule(
        [this, call = std::move(call), done = Living(std::move(done))] { call(coordinator_.get(), done); });
  }

  void Synchronize(const SynchronizeRequest& request, absl::Duration deadline, Done<SynchronizeReply> done) override;
  void CommitProgress(const ProgressCommit& commit, Done<CommitReply> done) override;
  void PutBlob(const ChainId& chain, int64_t lease_epoch, const BlobRef& ref, std::shared_ptr<const std::string> bytes,
               Done<bool> done) override;
  void GetBlob(const BlobRef& ref, Done<std::shared_ptr<const std::string>> done) override;

 private:
  absl::Status Open();
  void Lose(const absl::Status& status);
  void KeepLead();

  template <typename T>
  Done<T> Living(Done<T> done) {
    return [this, done = std::move(done)](absl::StatusOr<T> reply) {
      if (process_.alive()) done(std::move(reply));
    };
  }
  void NoteRefusal(const absl::Status& status);
  void Acknowledge(const ProgressCommit& commit);

  Site* const site_;
  Process process_;
  std::unique_ptr<FileSystem> files_;
  std::unique_ptr<BlobStore> folder_;
  std::unique_ptr<SimulatedStateStore> state_;
  std::unique_ptr<SimulatedBlobStore> blobs_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<ChainObjects> objects_;
  std::unique_ptr<GarbageCollector> collector_;
  std::unique_ptr<DrawVerifier> verifier_;
  std::unique_ptr<RetentionKeeper> retention_;
};

}  // namespace chainfleet

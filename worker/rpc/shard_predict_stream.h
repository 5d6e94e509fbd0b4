// The worker's end of ServeShards: shards come down, results go up in chunks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "chainfleet/v1/worker.grpc.pb.h"
#include "core/base/executor.h"
#include "core/base/mutex.h"
#include "worker/runtime/backoff.h"
#include "worker/runtime/shard_server.h"

namespace chainfleet {

// Thread-safe. On a connection of its own. A broken stream cancels the shards that came by it and is opened again with
// backoff, until Stop. Executor and ShardServer outlive it.
class ShardPredictStream {
 public:
  ShardPredictStream(const std::string& address, std::string worker, std::string incarnation, RngKey jitter_key,
                     ShardServer* shards, Executor* executor);

  // Stops and waits until the stream is gone.
  ~ShardPredictStream();

  void Start();

 private:
  class Call;

  void Open();
  void OnEnd(bool was_open, const absl::Status& status);

  const std::string worker_, incarnation_;
  ShardServer* const shards_;
  Executor* const executor_;
  std::unique_ptr<v1::WorkerService::Stub> stub_;

  Mutex mutex_;
  CondVar ended_;
  std::shared_ptr<Call> call_ CHAINFLEET_GUARDED_BY(mutex_);
  Backoff backoff_ CHAINFLEET_GUARDED_BY(mutex_);
  bool stopping_ CHAINFLEET_GUARDED_BY(mutex_) = false;
};

}  // namespace chainfleet

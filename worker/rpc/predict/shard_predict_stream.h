// The worker's end of ServeShards: shards come down, results go up in chunks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "chainfleet/v1/worker.grpc.pb.h"
#include "core/base/backoff.h"
#include "core/base/executor.h"
#include "core/base/mutex.h"
#include "worker/rpc/server_lines.h"
#include "worker/rpc/worker_credentials.h"
#include "worker/runtime/shard_server.h"

namespace chainfleet {

// Thread-safe. On a connection of its own. A broken stream cancels the shards that came by it and is opened again with
// backoff, until Stop. Opens once the worker has joined. Executor, ShardServer and credentials outlive it.
class ShardPredictStream {
 public:
  struct Options {
    std::string address;  // server's address; a comma list of several coordinators
    std::string worker, incarnation;
    RngKey jitter_key;
    TlsFiles tls = {};                         // plaintext if there is none
    WorkerCredentials* credentials = nullptr;  // null: none is sent
  };
  ShardPredictStream(Options options, ShardServer* shards, Executor* executor);

  // Stops, if that was not done.
  ~ShardPredictStream();

  void Start();

  // Ends the stream, waits until it is gone and opens no other. To be followed by the end of the executor.
  void Stop();

 private:
  class Call;

  void Open();
  void Forget();
  void OnEnd(bool was_open, const absl::Status& status);

  const Options options_;
  ShardServer* const shards_;
  Executor* const executor_;
  ServerLines lines_;

  Mutex mutex_;
  CondVar ended_;
  std::shared_ptr<Call> call_ CHAINFLEET_GUARDED_BY(mutex_);
  bool open_ CHAINFLEET_GUARDED_BY(mutex_) = false;  // from Open to OnEnd, a little longer than call_
  Backoff backoff_ CHAINFLEET_GUARDED_BY(mutex_);
  bool stopping_ CHAINFLEET_GUARDED_BY(mutex_) = false;
};

}  // namespace chainfleet

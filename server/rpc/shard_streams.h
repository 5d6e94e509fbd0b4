// The ServeShards streams of the workers: the production ShardPort.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "chainfleet/v1/worker.pb.h"
#include "core/base/executor.h"
#include "core/base/fair_budget.h"
#include "core/base/limits.h"
#include "core/base/mutex.h"
#include "core/base/rng_key.h"
#include "server/control/dispatcher.h"
#include "server/predict/serving/shard_port.h"
#include "server/rpc/streamed_request.h"

namespace chainfleet {

// Thread-safe. Replies run on the executor.
class ShardStreams final : public ShardPort {
 public:
  // `max_result_bytes`: results of all shards that have not arrived completely. It is fair to the workers. A shard
  // whose result has no room fails with RESOURCE_EXHAUSTED / QUEUE_FULL. Workers see Fold(ids, shard_id): the gaps
  // between shard ids would tell the worker of a tenant how many shards other tenants have.
  ShardStreams(Executor* executor, RngKey ids, int64_t max_result_bytes = limits::kUnfinishedResultBytes);
  ~ShardStreams() override;

  // Opens a stream. It is registered when its hello arrives and `admit` accepts the session that the hello names; it
  // then replaces an older stream of the same worker. `admit` returns how the worker was let in. The stream ends with
  // the error of `still`, which is asked before each shard that is sent and with each update.
  using Admit = std::function<absl::StatusOr<Admission>(const WorkerIdentity& session)>;
  using Still = std::function<absl::Status()>;
  using Reactor = grpc::ServerBidiReactor<StreamedRequest, v1::ShardOrder>;
  Reactor* Open(const absl::Status& admitted, Admit admit, Still still);

  // True if a shard that the session has not answered yet reads the object.
  bool NeedsObject(const WorkerIdentity& session, const std::string& object);

  // Ends every stream, so that the workers reconnect here or elsewhere.
  void Close();

  std::vector<ServingWorker> Workers() override;
  void Send(const std::string& worker, const ShardRequest& request,
            std::function<void(absl::StatusOr<ShardResult>)> done) override;
  void Cancel(const std::string& worker, uint64_t shard_id) override;

 private:
  class Session;  // one stream: its queue, its shards in flight
  class Stream;   // its reactor

  void Register(const std::string& worker, const std::shared_ptr<Session>& session);
  void Forget(const std::string& worker, const Session* session);
  std::shared_ptr<Session> Find(const std::string& worker);

  Executor* const executor_;
  const RngKey ids_;
  const FairBudget results_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Session>> sessions_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet

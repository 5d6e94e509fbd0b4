#include "server/rpc/shard_streams.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/base/log.h"
#include "core/wire/grpc_status.h"
#include "core/wire/predict_wire.h"
#include "server/control/protocol_version.h"
#include "server/predict/serving/shard_result_check.h"
#include "server/rpc/worker_claims.h"

namespace chainfleet {
namespace {

using ShardDone = std::function<void(absl::StatusOr<ShardResult>)>;

absl::Status StreamEnded(const std::string& worker) {
  return WithReason(absl::UnavailableError(absl::StrCat("worker ", worker, " closed its stream before it answered")),
                    "WORKER_LOST");
}

absl::Status CheckHello(const v1::ShardUpdate::Hello& hello) {
  if (hello.worker().empty()) return InvalidFields({{"hello.worker", "is empty"}});
  CHAINFLEET_RETURN_IF_ERROR(CheckClaims(hello));
  return CheckProtocolVersion(hello.worker(), hello.protocol_version());
}

absl::StatusOr<ShardResult> Parse(const std::string& bytes) {
  v1::ShardResult proto;
  if (!proto.ParseFromString(bytes)) return BadShardResult("does not parse");
  absl::StatusOr<ShardResult> result = FromProto(proto);
  if (!result.ok()) return BadShardResult(absl::StrCat("does not parse: ", result.status().message()));
  return result;
}

std::vector<std::string> ObjectsOf(const ShardRequest& request) {
  std::vector<std::string> objects;
  if (request.plan->module) objects.push_back(request.plan->module->name);
  if (request.rows) {
    for (const DatasetShard& shard : request.rows->dataset.shards) objects.push_back(shard.object.name);
  }
  for (const ChainDraws& chain : request.chains) {
    for (const Segment& segment : chain.segments) objects.push_back(segment.object.name);
  }
  return objects;
}

}  // namespace

// Thread-safe; outlives the reactor while callers hold it.
class ShardStreams::Session {
 public:
  Session(Reactor* reactor, Executor* executor, Still s)
      : still(std::move(s)), executor_(executor), reactor_(reactor) {}
  const Still still;

  // Called before the session is registered.
  void SetWorker(const WorkerIdentity& session, Admission admission) {
    MutexLock lock(&mutex_);
    admission_ = std::move(admission);
    worker_ = session.worker;
    incarnation_ = session.incarnation;
  }
  std::string worker() {
    MutexLock lock(&mutex_);
    return worker_;
  }

  // Marks the stream as ending: a later registration must remove it again. Returns worker().
  std::string BeginEnd() {
    MutexLock lock(&mutex_);
    ending_ = true;
    return worker_;
  }
  bool ending() {
    MutexLock lock(&mutex_);
    return ending_;
  }

  bool NeedsObject(const std::string& incarnation, const std::string& object) {
    MutexLock lock(&mutex_);
    return incarnation == incarnation_ && std::ranges::any_of(shards_, [&](const auto& shard) {
             return std::ranges::find(shard.second.objects, object) != shard.second.objects.end();
           });
  }

  ServingWorker Serving(const std::string& worker) {
    MutexLock lock(&mutex_);
    return {worker, static_cast<int32_t>(shards_.size()), admission_};
  }

  void Send(const ShardRequest& request, ShardDone done) {
    v1::ShardOrder order;
    *order.mutable_shard() = ToProto(request);
    MutexLock lock(&mutex_);
    if (reactor_ == nullptr) return Answer(std::move(done), StreamEnded(worker_));
    if (static_cast<int>(shards_.size()) >= kMostShardsPerWorker) {
      return Answer(std::move(done), WithReason(absl::ResourceExhaustedError(absl::StrCat(
                                                    "worker ", worker_, " has ", shards_.size(), " shards already")),
                                                "QUEUE_FULL"));
    }
    shards_[request.shard_id] = {std::move(done), ObjectsOf(request), ""};
    Queue(std::move(order));
  }

  void Cancel(uint64_t shard_id) {
    MutexLock lock(&mutex_);
    const auto it = shards_.find(shard_id);
    if (it == shards_.end()) return;
    Answer(std::move(it->second.done), absl::CancelledError("the shard was cancelled"));
    shards_.erase(it);
    const auto unsent = std::ranges::find_if(
        waiting_, [&](const v1::ShardOrder& o) { return o.has_shard() && o.shard().shard_id() == shard_id; });
    if (unsent != waiting_.end()) {
      waiting_.erase(unsent);
      return;
    }
    v1::ShardOrder order;
    order.set_cancel(shard_id);
    if (reactor_ != nullptr) Queue(std::move(order));
  }

  void TakeResult(const v1::ShardUpdate::ResultChunk& chunk) {
    MutexLock lock(&mutex_);
    const auto it = shards_.find(chunk.shard_id());
    if (it == shards_.end()) return;  // cancelled meanwhile
    std::string& bytes = it->second.bytes;
    if (static_cast<int64_t>(bytes.size() + chunk.data().size()) > limits::kMaxShardResultBytes) {
      Answer(std::move(it->second.done),
             absl::ResourceExhaustedError(absl::StrCat("worker ", worker_, " sent a result over the bound")));
      shards_.erase(it);
      return;
    }
    bytes += chunk.data();
    if (!chunk.last()) return;
    executor_->Schedule([done = std::move(it->second.done), bytes = std::move(bytes)] { done(Parse(bytes)); });
    shards_.erase(it);
  }

  void TakeFailure(const v1::ShardUpdate::Failure& failure) {
    MutexLock lock(&mutex_);
    const auto it = shards_.find(failure.shard_id());
    if (it == shards_.end()) return;
    absl::Status status(static_cast<absl::StatusCode>(failure.code()), failure.message());
    if (status.ok()) status = absl::InternalError("a worker failed a shard without saying why");
    if (!failure.reason().empty()) status = WithReason(std::move(status), failure.reason());
    Answer(std::move(it->second.done), status);
    shards_.erase(it);
  }

  void Written(bool ok) {
    MutexLock lock(&mutex_);
    writing_ = false;
    if (ok) WriteNext();
  }

  // Finishes the stream once and fails its shards.
  void End(const absl::Status& status) {
    MutexLock lock(&mutex_);
    if (reactor_ == nullptr) return;
    for (auto& [id, shard] : shards_) Answer(std::move(shard.done), StreamEnded(worker_));
    shards_.clear();
    std::exchange(reactor_, nullptr)->Finish(ToGrpc(status));
  }

 private:
  struct Shard {
    ShardDone done;
    std::vector<std::string> objects;  // objects that the shard reads
    std::string bytes;                 // the result received so far
  };

  void Answer(ShardDone done, absl::Status status) {
    executor_->Schedule([done = std::move(done), status = std::move(status)] { done(status); });
  }
  void Queue(v1::ShardOrder order) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    waiting_.push_back(std::move(order));  // bounded: shards in flight, plus one cancel for each shard that was sent
    WriteNext();
  }
  void WriteNext() CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || waiting_.empty() || reactor_ == nullptr) return;
    current_ = std::move(waiting_.front());
    waiting_.pop_front();
    writing_ = true;
    reactor_->StartWrite(&current_);
  }

  Executor* const executor_;
  Mutex mutex_;
  std::string worker_ CHAINFLEET_GUARDED_BY(mutex_);  // empty before its hello
  std::string incarnation_ CHAINFLEET_GUARDED_BY(mutex_);
  Admission admission_ CHAINFLEET_GUARDED_BY(mutex_);
  bool ending_ CHAINFLEET_GUARDED_BY(mutex_) = false;
  Reactor* reactor_ CHAINFLEET_GUARDED_BY(mutex_);  // null once finished
  std::map<uint64_t, Shard> shards_ CHAINFLEET_GUARDED_BY(mutex_);
  std::deque<v1::ShardOrder> waiting_ CHAINFLEET_GUARDED_BY(mutex_);
  v1::ShardOrder current_ CHAINFLEET_GUARDED_BY(mutex_);  // gRPC reads it while `writing_`
  bool writing_ CHAINFLEET_GUARDED_BY(mutex_) = false;
};

class ShardStreams::Stream final : public Reactor {
 public:
  Stream(ShardStreams* streams, const absl::Status& admitted, Admit admit, Still still)
      : streams_(streams),
        admit_(std::move(admit)),
        session_(std::make_shared<Session>(this, streams->executor_, std::move(still))) {
    if (admitted.ok()) {
      StartRead(&request_);
    } else {
      session_->End(admitted);
    }
  }

  void OnReadDone(bool ok) override {
    if (!ok) return End(absl::OkStatus());
    const absl::Status status = request_.status().ok() ? Take() : request_.status();
    if (!status.ok()) return End(status);
    StartRead(&request_);
  }
  void OnWriteDone(bool ok) override { session_->Written(ok); }
  void OnCancel() override { End(absl::CancelledError("the worker went away")); }
  void OnDone() override { delete this; }

 private:
  absl::Status Take() {
    const bool greeted = !session_->worker().empty();
    if (greeted == update_.has_hello())
      return absl::InvalidArgumentError("hello must be the first update of ServeShards, and only the first");
    CHAINFLEET_RETURN_IF_ERROR(session_->still());
    switch (update_.update_case()) {
      case v1::ShardUpdate::kHello: {
        CHAINFLEET_RETURN_IF_ERROR(CheckHello(update_.hello()));
        const WorkerIdentity said{update_.hello().worker(), update_.hello().incarnation()};
        CHAINFLEET_ASSIGN_OR_RETURN(Admission admission, admit_(said));
        session_->SetWorker(said, std::move(admission));
        streams_->Register(update_.hello().worker(), session_);
        return absl::OkStatus();
      }
      case v1::ShardUpdate::kResult:
        session_->TakeResult(update_.result());
        return absl::OkStatus();
      case v1::ShardUpdate::kFailure:
        session_->TakeFailure(update_.failure());
        return absl::OkStatus();
      case v1::ShardUpdate::UPDATE_NOT_SET:
        break;
    }
    return absl::InvalidArgumentError("an update of ServeShards is empty");
  }
  // OnReadDone and OnCancel may call this concurrently: a stream can be cut while its hello is processed.
  void End(const absl::Status& status) {
    streams_->Forget(session_->BeginEnd(), session_.get());
    session_->End(status);
  }

  ShardStreams* const streams_;
  const Admit admit_;
  const std::shared_ptr<Session> session_;
  v1::ShardUpdate update_;
  StreamedRequest request_{&update_};
};

ShardStreams::ShardStreams(Executor* executor) : executor_(executor) {}
ShardStreams::~ShardStreams() = default;

ShardStreams::Reactor* ShardStreams::Open(const absl::Status& admitted, Admit admit, Still still) {
  return new Stream(this, admitted, std::move(admit), std::move(still));
}

bool ShardStreams::NeedsObject(const WorkerIdentity& session, const std::string& object) {
  const std::shared_ptr<Session> found = Find(session.worker);
  return found != nullptr && found->NeedsObject(session.incarnation, object);
}

void ShardStreams::Register(const std::string& worker, const std::shared_ptr<Session>& session) {
  std::shared_ptr<Session> older;
  {
    MutexLock lock(&mutex_);
    older = std::exchange(sessions_[worker], session);
  }
  if (older && older != session) older->End(absl::AbortedError("a newer stream of this worker took its place"));
  if (session->ending()) return Forget(worker, session.get());  // the stream ended before it was registered
  Log(LogLevel::kInfo, "worker serves predictions", {{"worker", worker}});
}

void ShardStreams::Forget(const std::string& worker, const Session* session) {
  MutexLock lock(&mutex_);
  const auto it = sessions_.find(worker);
  if (it != sessions_.end() && it->second.get() == session) sessions_.erase(it);
}

std::shared_ptr<ShardStreams::Session> ShardStreams::Find(const std::string& worker) {
  MutexLock lock(&mutex_);
  const auto it = sessions_.find(worker);
  return it == sessions_.end() ? nullptr : it->second;
}

void ShardStreams::Close() {
  std::map<std::string, std::shared_ptr<Session>> sessions;
  {
    MutexLock lock(&mutex_);
    sessions.swap(sessions_);
  }
  for (auto& [worker, session] : sessions) session->End(absl::UnavailableError("the server is shutting down"));
}

std::vector<ServingWorker> ShardStreams::Workers() {
  MutexLock lock(&mutex_);
  std::vector<ServingWorker> workers;
  for (auto& [worker, session] : sessions_) workers.push_back(session->Serving(worker));
  return workers;
}

void ShardStreams::Send(const std::string& worker, const ShardRequest& request,
                        std::function<void(absl::StatusOr<ShardResult>)> done) {
  if (const std::shared_ptr<Session> session = Find(worker)) {
    const absl::Status still = session->still();
    if (still.ok()) return session->Send(request, std::move(done));
    Forget(worker, session.get());
    session->End(still);
  }
  executor_->Schedule([done = std::move(done), worker] { done(StreamEnded(worker)); });
}

void ShardStreams::Cancel(const std::string& worker, uint64_t shard_id) {
  if (const std::shared_ptr<Session> session = Find(worker)) session->Cancel(shard_id);
}

}  // namespace chainfleet

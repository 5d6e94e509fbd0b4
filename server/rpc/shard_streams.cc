#include "server/rpc/shard_streams.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <deque>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/base/log.h"
#include "core/base/utf8.h"
#include "core/wire/grpc_status.h"
#include "core/wire/parsed_bytes.h"
#include "core/wire/predict_wire.h"
#include "server/control/protocol_version.h"
#include "server/predict/serving/shard_result_check.h"
#include "server/rpc/services.h"
#include "server/rpc/worker_claims.h"

namespace chainfleet {
namespace {

using ShardDone = std::function<void(absl::StatusOr<ShardResult>)>;

// Memory of a result's message. Arrays of numbers count twice their bytes. An empty sum has two bytes on the wire and
// takes hundreds once it is parsed.
constexpr int64_t kMaxParsedResultBytes = 3 * limits::kMaxShardResultBytes;
static_assert(2 * (kMaxParsedResultBytes + limits::kMaxShardResultBytes) <= limits::kUnfinishedResultBytes,
              "the largest result is read when no other is under way");

constexpr size_t kMaxFailureBytes = 1024;  // text of a failure, which the log gets
// Reasons that a worker gives to a failed shard, or passes on from a server that it fetches objects from.
constexpr std::string_view kFailureReasons[] = {"DEVICE_LOST",       "DIGEST_MISMATCH", "DISK_FULL",   "INVALID_FIELD",
                                                "NOT_HELD",          "NOT_LEADER",      "NO_DEVICE",   "NO_DRAW_KEY",
                                                "OBJECT_MISSING",    "QUEUE_FULL",      "STORE_FAULT", "STORE_REFUSED",
                                                "STORE_UNREACHABLE", "VERSION_MISMATCH"};

// Drops any other reason: metrics keep a series for each reason that a call ends with.
absl::Status ReportedFailure(const v1::ShardUpdate::Failure& failure) {
  absl::Status status(static_cast<absl::StatusCode>(failure.code()),
                      std::string(WholeCharacters(failure.message(), kMaxFailureBytes)));
  if (status.ok()) status = absl::InternalError("a worker failed a shard without saying why");
  if (std::ranges::count(kFailureReasons, std::string_view(failure.reason())) == 0) return status;
  return WithReason(std::move(status), failure.reason());
}

absl::Status StreamEnded(const std::string& worker) {
  return WithReason(absl::UnavailableError(absl::StrCat("worker ", worker, " closed its stream before it answered")),
                    "WORKER_LOST");
}

absl::Status CheckHello(const v1::ShardUpdate::Hello& hello) {
  if (hello.worker().empty()) return InvalidFields({{"hello.worker", "is empty"}});
  CHAINFLEET_RETURN_IF_ERROR(CheckClaims(hello));
  return CheckProtocolVersion(hello.worker(), hello.protocol_version());
}

// A set, because a worker with an empty cache reads each object by a call of its own.
std::unordered_set<std::string> ObjectsOf(const ShardRequest& request) {
  std::unordered_set<std::string> objects;
  if (request.plan->module) objects.insert(request.plan->module->name);
  if (request.rows) {
    for (const DatasetShard& shard : request.rows->dataset.shards) objects.insert(shard.object.name);
  }
  for (const ChainDraws& chain : request.chains) {
    for (const Segment& segment : chain.segments) objects.insert(segment.object.name);
  }
  return objects;
}

// True if one of the draws [begin, begin + count) is averaged. Draws count from the first one of the segments.
bool AveragesAny(const v1::ChainDraws& chain, int64_t begin, int64_t count) {
  const int64_t every = std::max<int64_t>(chain.every(), 1);
  const int64_t newest = chain.skip_draws() + chain.num_draws() - 1;
  const int64_t first = std::max<int64_t>(begin, chain.skip_draws()), last = std::min(begin + count - 1, newest);
  // A draw is averaged if its distance from the newest is a multiple of `every`.
  return first <= last && (newest - first) / every * every >= newest - last;
}

// Keeps the order small: removes from the segments' records what no worker reads, also none of release 0.1. A worker
// counts the steps, and reads weights, object and digest of the segments that hold an averaged draw.
void RemoveUnread(v1::ShardRequest* shard) {
  for (v1::ChainDraws& chain : *shard->mutable_chains()) {
    int64_t begin = 0;
    for (v1::Segment& segment : *chain.mutable_segments()) {
      const int num_draws = segment.steps_size();
      if (AveragesAny(chain, begin, num_draws)) {
        segment.clear_first_index();
        segment.clear_kinds();
        segment.clear_parent_digest();
        segment.clear_steps();
      } else {
        segment.Clear();
      }
      segment.mutable_steps()->Resize(num_draws, 0);  // zeros take a byte each
      begin += num_draws;
    }
  }
}

// `id` is the worker's id of the shard. INVALID_ARGUMENT for an order larger than a message: gRPC would end the stream,
// and with it the shards of other calls. ShardQueue passes this error on and asks no other worker, whose order would be
// as large.
absl::StatusOr<v1::ShardOrder> MakeOrder(uint64_t id, const ShardRequest& request) {
  v1::ShardOrder order;
  *order.mutable_shard() = ToProto(request);
  order.mutable_shard()->set_shard_id(id);
  RemoveUnread(order.mutable_shard());
  const auto bytes = static_cast<int64_t>(order.ByteSizeLong());
  if (bytes <= limits::kMaxMessageBytes) return order;
  return absl::InvalidArgumentError(absl::StrCat(
      "the rows and the records of draws for one worker have ", bytes, " bytes, the most is ", limits::kMaxMessageBytes,
      ": choose fewer draws (members, every, max_draws, chains), ask for fewer rows, or start more workers"));
}

// The result of one shard while it arrives. Not thread-safe.
class ArrivingResult {
 public:
  ArrivingResult(const FairBudget& budget, std::string holder) : share_(budget, std::move(holder)) {}

  // RESOURCE_EXHAUSTED: this result, or all results together, take too much memory.
  absl::Status Add(const std::string& data) {
    if (std::ssize(bytes_) + std::ssize(data) > limits::kMaxShardResultBytes) {
      return absl::ResourceExhaustedError("a worker sent a result over the bound");
    }
    CHAINFLEET_RETURN_IF_ERROR(Charge(std::ssize(data)));
    bytes_ += data;
    return absl::OkStatus();
  }
  // RESOURCE_EXHAUSTED: as Add. Called once, after the last Add.
  absl::StatusOr<ShardResult> Parse() {
    google::protobuf::io::ArrayInputStream wire(bytes_.data(), static_cast<int>(bytes_.size()));
    const int64_t parsed = ParsedBytes(*v1::ShardResult::descriptor(), &wire, kMaxParsedResultBytes);
    if (parsed > kMaxParsedResultBytes) return BadShardResult("takes too much memory");
    CHAINFLEET_RETURN_IF_ERROR(Charge(parsed));
    v1::ShardResult proto;
    if (!proto.ParseFromString(bytes_)) return BadShardResult("does not parse");
    absl::StatusOr<ShardResult> result = FromProto(proto);
    if (!result.ok()) return BadShardResult(absl::StrCat("does not parse: ", result.status().message()));
    return result;
  }

 private:
  absl::Status Charge(int64_t bytes) {
    if (share_.Add(bytes)) return absl::OkStatus();
    return BoundReached("shard_result_bytes",
                        "the workers send more results of predictions than the server has memory for: retry with "
                        "backoff, or ask for fewer rows",
                        "QUEUE_FULL");
  }

  std::string bytes_;
  BudgetShare share_;
};

// The orders to one worker: one is being written, the others wait. Bounded: shards in flight, plus one cancel for each
// shard that was sent. Not thread-safe.
class ShardOrders {
  static auto IsOf(uint64_t shard_id) {
    return [shard_id](const v1::ShardOrder& o) { return o.has_shard() && o.shard().shard_id() == shard_id; };
  }

 public:
  void Add(v1::ShardOrder order) { waiting_.push_back(std::move(order)); }
  bool HasUnsent(uint64_t shard_id) const { return std::ranges::any_of(waiting_, IsOf(shard_id)); }
  // False: there is no order of the shard that is unsent.
  bool TakeBack(uint64_t shard_id) { return std::erase_if(waiting_, IsOf(shard_id)) > 0; }
  void Clear() { waiting_.clear(); }
  // Begins to write the next order, unless another is being written.
  void WriteNext(ShardStreams::Reactor* reactor) {
    if (writing_ || waiting_.empty()) return;
    current_ = std::move(waiting_.front());
    waiting_.pop_front();
    writing_ = true;
    reactor->StartWrite(&current_);
  }
  void Written() { writing_ = false; }

 private:
  std::deque<v1::ShardOrder> waiting_;
  v1::ShardOrder current_;  // gRPC reads it while `writing_`
  bool writing_ = false;
};

}  // namespace

// Thread-safe; outlives the reactor while callers hold it.
class ShardStreams::Session {
 public:
  Session(Reactor* reactor, Executor* executor, const FairBudget& results, Still s)
      : still(std::move(s)), executor_(executor), results_(results), reactor_(reactor) {}
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
    return incarnation == incarnation_ &&
           std::ranges::any_of(shards_, [&](const auto& shard) { return shard.second.objects.contains(object); });
  }

  ServingWorker Serving(const std::string& worker) {
    MutexLock lock(&mutex_);
    return {worker, static_cast<int32_t>(shards_.size()), admission_};
  }

  // `id` is the worker's id of the shard, here and in Cancel.
  void Send(uint64_t id, const ShardRequest& request, ShardDone done) {
    absl::StatusOr<v1::ShardOrder> order = MakeOrder(id, request);
    if (!order.ok()) return Answer(std::move(done), order.status());
    std::unordered_set<std::string> objects = ObjectsOf(request);
    MutexLock lock(&mutex_);
    if (reactor_ == nullptr) return Answer(std::move(done), StreamEnded(worker_));
    if (static_cast<int>(shards_.size()) >= kMostShardsPerWorker) {
      return Answer(std::move(done), WithReason(absl::ResourceExhaustedError(absl::StrCat(
                                                    "worker ", worker_, " has ", shards_.size(), " shards already")),
                                                "QUEUE_FULL"));
    }
    shards_[id] = {std::move(done), std::move(objects),
                   std::make_shared<ArrivingResult>(results_, HolderOf(admission_, worker_))};
    Queue(*std::move(order));
  }

  void Cancel(uint64_t id) {
    MutexLock lock(&mutex_);
    Drop(shards_.find(id), absl::CancelledError("the shard was cancelled"));
  }

  // INVALID_ARGUMENT: the worker answers a shard that waits to be sent to it. Its order would stay in the queue, so a
  // worker that reads nothing and guesses ids could make the queue grow.
  absl::Status TakeResult(const v1::ShardUpdate::ResultChunk& chunk) {
    MutexLock lock(&mutex_);
    CHAINFLEET_RETURN_IF_ERROR(CheckSent(chunk.shard_id()));
    const auto it = shards_.find(chunk.shard_id());
    if (it == shards_.end()) return absl::OkStatus();  // cancelled meanwhile
    absl::Status taken = it->second.result->Add(chunk.data());
    if (!taken.ok()) {
      Drop(it, std::move(taken));
    } else if (chunk.last()) {
      executor_->Schedule([done = std::move(it->second.done), result = it->second.result] { done(result->Parse()); });
      shards_.erase(it);
    }
    return absl::OkStatus();
  }

  // INVALID_ARGUMENT: as TakeResult.
  absl::Status TakeFailure(const v1::ShardUpdate::Failure& failure) {
    MutexLock lock(&mutex_);
    CHAINFLEET_RETURN_IF_ERROR(CheckSent(failure.shard_id()));
    const auto it = shards_.find(failure.shard_id());
    if (it == shards_.end()) return absl::OkStatus();
    Answer(std::move(it->second.done), ReportedFailure(failure));
    shards_.erase(it);
    return absl::OkStatus();
  }

  void Written(bool ok) {
    MutexLock lock(&mutex_);
    orders_.Written();
    if (ok && reactor_ != nullptr) orders_.WriteNext(reactor_);
  }

  // Finishes the stream once and fails its shards.
  void End(const absl::Status& status) {
    MutexLock lock(&mutex_);
    if (reactor_ == nullptr) return;
    for (auto& [id, shard] : shards_) Answer(std::move(shard.done), StreamEnded(worker_));
    shards_.clear();
    orders_.Clear();  // a worker that reads nothing keeps its stream
    std::exchange(reactor_, nullptr)->Finish(ToGrpc(status));
  }

 private:
  struct Shard {
    ShardDone done;
    std::unordered_set<std::string> objects;  // objects that the shard reads
    std::shared_ptr<ArrivingResult> result;
  };
  using Shards = std::map<uint64_t, Shard>;

  void Answer(ShardDone done, absl::Status status) {
    executor_->Schedule([done = std::move(done), status = std::move(status)] { done(status); });
  }
  absl::Status CheckSent(uint64_t shard_id) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!orders_.HasUnsent(shard_id)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("worker ", worker_, " answers a shard that it was not sent"));
  }
  // Answers a shard, and takes its order back or tells the worker to stop.
  void Drop(Shards::iterator it, absl::Status why) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (it == shards_.end()) return;
    v1::ShardOrder order;
    order.set_cancel(it->first);
    Answer(std::move(it->second.done), std::move(why));
    shards_.erase(it);
    if (!orders_.TakeBack(order.cancel()) && reactor_ != nullptr) Queue(std::move(order));
  }
  void Queue(v1::ShardOrder order) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    orders_.Add(std::move(order));
    orders_.WriteNext(reactor_);
  }

  Executor* const executor_;
  const FairBudget results_;
  Mutex mutex_;
  std::string worker_ CHAINFLEET_GUARDED_BY(mutex_);  // empty before its hello
  std::string incarnation_ CHAINFLEET_GUARDED_BY(mutex_);
  Admission admission_ CHAINFLEET_GUARDED_BY(mutex_);
  bool ending_ CHAINFLEET_GUARDED_BY(mutex_) = false;
  Reactor* reactor_ CHAINFLEET_GUARDED_BY(mutex_);  // null once finished
  Shards shards_ CHAINFLEET_GUARDED_BY(mutex_);
  ShardOrders orders_ CHAINFLEET_GUARDED_BY(mutex_);
};

class ShardStreams::Stream final : public Reactor {
 public:
  Stream(ShardStreams* streams, const absl::Status& admitted, Admit admit, Still still)
      : streams_(streams),
        admit_(std::move(admit)),
        session_(std::make_shared<Session>(this, streams->executor_, streams->results_, std::move(still))) {
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
        return session_->TakeResult(update_.result());
      case v1::ShardUpdate::kFailure:
        return session_->TakeFailure(update_.failure());
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

ShardStreams::ShardStreams(Executor* executor, RngKey ids, int64_t max_result_bytes)
    : executor_(executor), ids_(ids), results_(max_result_bytes) {}
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
    if (still.ok()) return session->Send(Fold(ids_, request.shard_id).value, request, std::move(done));
    Forget(worker, session.get());
    session->End(still);
  }
  executor_->Schedule([done = std::move(done), worker] { done(StreamEnded(worker)); });
}

void ShardStreams::Cancel(const std::string& worker, uint64_t shard_id) {
  if (const std::shared_ptr<Session> session = Find(worker)) session->Cancel(Fold(ids_, shard_id).value);
}

}  // namespace chainfleet

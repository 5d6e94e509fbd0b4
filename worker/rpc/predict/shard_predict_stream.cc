#include "worker/rpc/predict/shard_predict_stream.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "core/base/limits.h"
#include "core/base/log.h"
#include "core/wire/grpc_status.h"
#include "core/wire/predict_wire.h"
#include "worker/rpc/worker_channel.h"

namespace chainfleet {
namespace {

// 0 of a hello.
uint64_t ShardOf(const v1::ShardUpdate& update) {
  return update.has_failure() ? update.failure().shard_id() : update.result().shard_id();
}

}  // namespace

// One stream. Reads and writes run apart from each other; `mutex_` guards what both and the executor touch. A hold
// keeps gRPC from ending it while a result may still be queued; the end of reading gives it up.
class ShardPredictStream::Call final : public grpc::ClientBidiReactor<v1::ShardUpdate, v1::ShardOrder> {
 public:
  explicit Call(ShardPredictStream* owner) : owner_(owner), line_(owner->lines_.current()) {}

  void Start(std::shared_ptr<Call> self) {
    weak_self_ = self;
    self_ = std::move(self);
    v1::ShardUpdate hello;
    hello.mutable_hello()->set_worker(owner_->options_.worker);
    hello.mutable_hello()->set_incarnation(owner_->options_.incarnation);
    hello.mutable_hello()->set_protocol_version(kProtocolVersion);
    if (owner_->options_.credentials != nullptr) owner_->options_.credentials->Attach(&context_);
    owner_->lines_.stub(line_, 0)->async()->ServeShards(&context_, this);
    AddHold();
    {
      MutexLock lock(&mutex_);
      outgoing_.push_back(std::move(hello));
      WriteNext();
    }
    StartRead(&order_);
    StartCall();
  }

  void Cancel() { context_.TryCancel(); }

  void OnReadDone(bool ok) override {
    if (!ok) {
      {
        MutexLock lock(&mutex_);
        closed_ = true;
      }
      RemoveHold();
      return;
    }
    was_open_ = true;
    TakeOrder();
    StartRead(&order_);
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    writing_ = false;
    if (ok) WriteNext();
  }

  // The context goes before the owner hears of the end, and with it the owner may: the last context of a channel must
  // not end on a thread of gRPC.
  void OnDone(const grpc::Status& status) override {
    ShardPredictStream* const owner = owner_;
    const bool was_open = was_open_;
    const absl::Status end = ResetToUnavailable(FromGrpc(status));
    owner->lines_.Ended(line_, end.code());
    owner->Forget();
    self_.reset();
    owner->OnEnd(was_open, end);
  }

 private:
  void TakeOrder() {
    if (order_.has_cancel()) {
      Drop(order_.cancel());
      return owner_->shards_->Cancel(order_.cancel());
    }
    const uint64_t id = order_.shard().shard_id();
    {
      MutexLock lock(&mutex_);
      unanswered_.insert(id);
    }
    absl::StatusOr<ShardRequest> request = FromProto(std::move(*order_.mutable_shard()));
    if (!request.ok()) return SendFailure(id, request.status());
    owner_->shards_->Submit(*std::move(request), [weak = weak_self_, id](const absl::StatusOr<ShardResult>& result) {
      const std::shared_ptr<Call> call = weak.lock();
      if (call == nullptr || absl::IsCancelled(result.status())) return;
      if (result.ok()) {
        call->SendResult(*result);
      } else {
        call->SendFailure(id, result.status());
      }
    });
  }

  void SendResult(const ShardResult& result) {
    const std::string bytes = ToProto(result).SerializeAsString();
    std::vector<v1::ShardUpdate> chunks;
    size_t sent = 0;
    do {
      const size_t size = std::min(bytes.size() - sent, static_cast<size_t>(limits::kChunkBytes));
      v1::ShardUpdate& update = chunks.emplace_back();
      update.mutable_result()->set_shard_id(result.shard_id);
      update.mutable_result()->set_data(bytes.data() + sent, size);
      sent += size;
      update.mutable_result()->set_last(sent == bytes.size());
    } while (sent < bytes.size());
    Answer(result.shard_id, std::move(chunks));
  }

  void SendFailure(uint64_t id, const absl::Status& status) {
    std::vector<v1::ShardUpdate> updates(1);
    v1::ShardUpdate& update = updates.front();
    update.mutable_failure()->set_shard_id(id);
    update.mutable_failure()->set_code(static_cast<int32_t>(status.code()));
    update.mutable_failure()->set_message(std::string(status.message()));
    update.mutable_failure()->set_reason(ReasonOf(status));
    Answer(id, std::move(updates));
  }

  // The queue holds answers that the server waits for, and it bounds how many shards those are of.
  void Answer(uint64_t id, std::vector<v1::ShardUpdate> updates) {
    MutexLock lock(&mutex_);
    if (closed_ || unanswered_.erase(id) == 0) return;
    std::ranges::move(updates, std::back_inserter(outgoing_));
    if (!writing_) WriteNext();
  }

  // Drops the answer of shard `id`, whether the answer is queued, still to come or sent. On a slow connection it would
  // delay the answers that the server waits for.
  void Drop(uint64_t id) {
    MutexLock lock(&mutex_);
    unanswered_.erase(id);
    std::erase_if(outgoing_, [id](const auto& update) { return ShardOf(update) == id; });
  }

  void WriteNext() CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (closed_ || outgoing_.empty()) return;
    writing_ = true;
    current_ = std::move(outgoing_.front());
    outgoing_.pop_front();
    StartWrite(&current_);
  }

  ShardPredictStream* const owner_;
  const size_t line_;
  grpc::ClientContext context_;
  v1::ShardOrder order_;
  bool was_open_ = false;
  std::shared_ptr<Call> self_;  // until OnDone
  std::weak_ptr<Call> weak_self_;
  Mutex mutex_;
  std::set<uint64_t> unanswered_ CHAINFLEET_GUARDED_BY(mutex_);  // shards that were not cancelled
  std::deque<v1::ShardUpdate> outgoing_ CHAINFLEET_GUARDED_BY(mutex_);
  v1::ShardUpdate current_ CHAINFLEET_GUARDED_BY(mutex_);  // gRPC reads it while `writing_`
  bool writing_ CHAINFLEET_GUARDED_BY(mutex_) = false;
  bool closed_ CHAINFLEET_GUARDED_BY(mutex_) = false;
};

ShardPredictStream::ShardPredictStream(Options options, ShardServer* shards, Executor* executor)
    : options_(std::move(options)),
      shards_(shards),
      executor_(executor),
      lines_(options_.address, options_.tls, {"shards"}),
      backoff_(options_.jitter_key) {}

ShardPredictStream::~ShardPredictStream() { Stop(); }

void ShardPredictStream::Stop() {
  MutexLock lock(&mutex_);
  stopping_ = true;
  if (call_ != nullptr) call_->Cancel();
  while (open_) ended_.Wait(&mutex_);
}

void ShardPredictStream::Start() { Open(); }

void ShardPredictStream::Open() {
  const bool joined = options_.credentials == nullptr || options_.credentials->joined();
  std::shared_ptr<Call> call = joined ? std::make_shared<Call>(this) : nullptr;
  {
    MutexLock lock(&mutex_);
    if (stopping_) return;
    if (!joined) return executor_->ScheduleAfter(backoff_.Next(), [this] { Open(); });
    call_ = call;
    open_ = true;
  }
  Call* const started = call.get();
  started->Start(std::move(call));
}

void ShardPredictStream::Forget() {
  MutexLock lock(&mutex_);
  call_.reset();
}

void ShardPredictStream::OnEnd(bool was_open, const absl::Status& status) {
  shards_->CancelAll();
  Log(was_open ? LogLevel::kInfo : LogLevel::kDebug, "prediction stream ended, reopening",
      {{"worker", options_.worker}, {"error", status.ToString()}});
  MutexLock lock(&mutex_);
  open_ = false;
  if (was_open) backoff_.Reset();
  if (!stopping_) executor_->ScheduleAfter(backoff_.Next(), [this] { Open(); });
  ended_.SignalAll();
}

}  // namespace chainfleet

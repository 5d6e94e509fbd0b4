#include "server/rpc/inference_stream.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/wire/grpc_status.h"
#include "server/rpc/call_limits.h"
#include "server/rpc/peer.h"
#include "server/rpc/reply_size.h"
#include "server/rpc/streamed_request.h"

namespace chainfleet {
namespace {

using Request = inference::ModelInferRequest;
using Response = inference::ModelStreamInferResponse;

absl::Status NoRoomForAnswer() {
  return BoundReached("bytes_in_flight",
                      "the requests and answers in flight leave no room for this answer: retry with backoff, and read "
                      "the answers",
                      "QUEUE_FULL");
}

// A stream lasts as long as its client likes. Half of them is what a tenant may have.
absl::Status TenantHasTooMany(const std::string& tenant) {
  const std::string message = absl::StrCat(
      "tenant ", tenant, " has the ", limits::kInferenceStreams / 2,
      " streams of inference that one tenant may have open: use one stream for more requests, or ModelInfer");
  return WithRetryAfter(BoundReached("tenant_inference_streams", message, "TENANT_LIMIT"), absl::Seconds(1));
}

}  // namespace

struct StreamCaller {
  std::string peer, tenant;
  TokenCheck still;  // may be null
};

// One stream. It may outlive its reactor, whose answers are computed elsewhere.
class InferenceSession : public std::enable_shared_from_this<InferenceSession> {
 public:
  using Reactor = InferenceStreams::Reactor;
  InferenceSession(Reactor* reactor, BytesInFlight* bytes, StreamCaller c, InferenceStreams::Infer infer)
      : caller(std::move(c)), bytes_(bytes), infer_(std::move(infer)), reactor_(reactor) {}
  const StreamCaller caller;

  void ReadNext() {
    const MutexLock lock(&mutex_);
    ReadIfRoom();
  }
  // False if the caller may no longer make the call: the stream ends.
  bool CheckCaller() {
    const absl::Status allowed = caller.still ? caller.still() : absl::OkStatus();
    if (!allowed.ok()) End(allowed);
    return allowed.ok();
  }

  void TakeRead(bool ok) {
    std::shared_ptr<StreamedAnswer> answer;
    Request request;
    absl::Status read;
    {
      const MutexLock lock(&mutex_);
      is_reading_ = false;
      if (!ok || end_ || reactor_ == nullptr) {  // nobody would take the answer, so nothing would free its room
        room_ = nullptr;
        return EndAfterAnswers(absl::OkStatus());
      }
      read = streamed_.status();
      request.Swap(&request_);
      answer.reset(new StreamedAnswer(shared_from_this(), request.id()));
      answer->room_ = std::move(room_);
      answers_.push_back(answer);
    }
    read.ok() ? infer_(std::move(request), answer) : answer->Fail(read);
    ReadNext();
  }

  // The stream ends with `status` after the answers to the requests that were read.
  void End(const absl::Status& status) {
    const MutexLock lock(&mutex_);
    EndAfterAnswers(status);
  }

  void Abandon(const absl::Status& status) {
    std::deque<std::shared_ptr<StreamedAnswer>> answers;
    {
      const MutexLock lock(&mutex_);
      if (reactor_ == nullptr) return;
      answers.swap(answers_);
      std::exchange(reactor_, nullptr)->Finish(ToGrpc(end_ && !end_->ok() ? *end_ : status));
    }
    for (const auto& answer : answers) {
      if (const auto cancel = Take(answer.get())) cancel();
    }
  }

  // True from before the client learns of the end, so that a stream opened then finds room.
  bool has_ended() {
    const MutexLock lock(&mutex_);
    return reactor_ == nullptr;
  }

  void Written(bool ok) {
    if (!ok) Abandon(absl::CancelledError("the client went away"));
    const MutexLock lock(&mutex_);
    is_writing_ = false;
    writing_ = nullptr;
    if (reactor_ == nullptr) return;
    answers_.pop_front();
    WriteIfReady();
    ReadIfRoom();
  }

  // `response` is the answer, or has its error.
  void Answer(StreamedAnswer* answer, Response response, std::shared_ptr<const void> held) {
    {
      const MutexLock lock(&mutex_);
      if (answer->is_ready_) return;
      answer->room_ = nullptr;  // the request is gone
    }
    std::shared_ptr<const void> room = bytes_->Hold(caller.peer, 2 * static_cast<int64_t>(response.ByteSizeLong()));
    if (room == nullptr) {
      response.Clear();
      response.set_error_message(std::string(NoRoomForAnswer().message()));
      response.mutable_infer_response()->set_id(answer->id_);
      held = nullptr;
    }
    const MutexLock lock(&mutex_);
    answer->is_ready_ = true;
    answer->cancel_ = nullptr;
    answer->response_ = std::move(response);
    answer->room_ = std::move(room);
    answer->held_ = std::move(held);
    WriteIfReady();
  }

  void OnCancelled(StreamedAnswer* answer, std::function<void()> cancel) {
    {
      const MutexLock lock(&mutex_);
      if (reactor_ != nullptr) {
        if (!answer->is_ready_) answer->cancel_ = std::move(cancel);
        return;
      }
    }
    cancel();
  }

 private:
  std::function<void()> Take(StreamedAnswer* answer) {
    const MutexLock lock(&mutex_);
    return std::exchange(answer->cancel_, nullptr);
  }
  void ReadIfRoom() CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (reactor_ == nullptr || is_reading_ || end_ || answers_.size() >= limits::kStreamRequests) return;
    is_reading_ = true;
    reactor_->StartRead(&streamed_);
  }
  void WriteIfReady() CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (reactor_ == nullptr || is_writing_) return;
    if (!answers_.empty() && answers_.front()->is_ready_) {
      is_writing_ = true;
      writing_ = answers_.front();
      reactor_->StartWrite(&writing_->response_);
    } else if (answers_.empty() && end_) {
      std::exchange(reactor_, nullptr)->Finish(ToGrpc(*end_));
    }
  }
  void EndAfterAnswers(const absl::Status& status) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!end_) end_ = status;
    WriteIfReady();
  }

  BytesInFlight* const bytes_;
  const InferenceStreams::Infer infer_;
  Mutex mutex_;
  Reactor* reactor_ CHAINFLEET_GUARDED_BY(mutex_);                                     // null once finished
  std::deque<std::shared_ptr<StreamedAnswer>> answers_ CHAINFLEET_GUARDED_BY(mutex_);  // until each is written
  std::shared_ptr<StreamedAnswer> writing_ CHAINFLEET_GUARDED_BY(mutex_);  // gRPC reads it while `is_writing_`
  bool is_reading_ CHAINFLEET_GUARDED_BY(mutex_) = false, is_writing_ CHAINFLEET_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> end_ CHAINFLEET_GUARDED_BY(mutex_);  // no further request is read
  // gRPC writes these while `is_reading_`.
  Request request_;
  std::shared_ptr<const void> room_;
  StreamedRequest streamed_{&request_, [this](int64_t bytes) -> absl::Status {
                              CHAINFLEET_ASSIGN_OR_RETURN(room_, bytes_->HoldRequest(caller.peer, bytes));
                              return absl::OkStatus();
                            }};
};

namespace {

class StreamCall final : public InferenceStreams::Reactor {
 public:
  StreamCall(const ClientDeadline& deadline, BytesInFlight* bytes, StreamCaller caller, InferenceStreams::Infer infer)
      : deadline_(deadline),
        session_(std::make_shared<InferenceSession>(this, bytes, std::move(caller), std::move(infer))) {}
  void TakeWatch(std::shared_ptr<const void> watch) { watch_ = std::move(watch); }
  const std::shared_ptr<InferenceSession>& session() const { return session_; }
  void OnReadDone(bool ok) override {
    session_->CheckCaller();
    session_->TakeRead(ok);
  }
  void OnWriteDone(bool ok) override { session_->Written(ok); }
  void OnCancel() override {
    session_->Abandon(deadline_.HasPassed() ? absl::DeadlineExceededError("the client's deadline of the stream passed")
                                            : absl::CancelledError("the client went away"));
  }
  void OnDone() override { delete this; }

 private:
  const ClientDeadline deadline_;
  const std::shared_ptr<InferenceSession> session_;
  std::shared_ptr<const void> watch_;  // may be null
};

}  // namespace

void StreamedAnswer::Fail(const absl::Status& status) {
  inference::ModelStreamInferResponse response;
  response.set_error_message(std::string(status.message()));
  response.mutable_infer_response()->set_id(id_);  // Triton's way to say which request failed
  session_->Answer(this, std::move(response), nullptr);
}

void StreamedAnswer::Succeed(inference::ModelInferResponse response, std::shared_ptr<const void> held) {
  inference::ModelStreamInferResponse streamed;
  *streamed.mutable_infer_response() = std::move(response);
  (*streamed.mutable_infer_response()->mutable_parameters())["triton_final_response"].set_bool_param(true);
  if (const absl::Status fits = CheckReplySize(streamed); !fits.ok()) return Fail(fits);
  session_->Answer(this, std::move(streamed), std::move(held));
}

void StreamedAnswer::OnCancelled(std::function<void()> cancel) { session_->OnCancelled(this, std::move(cancel)); }

InferenceStreams::Reactor* InferenceStreams::Open(const grpc::CallbackServerContext& context,
                                                  const ClientDeadline& deadline,
                                                  const absl::StatusOr<std::string>& tenant, const TokenCheck& still,
                                                  Infer infer) {
  auto* const call =
      new StreamCall(deadline, bytes_, {ClientPeer(context), tenant.value_or(""), still}, std::move(infer));
  const std::shared_ptr<Session> session = call->session();
  if (still) call->TakeWatch(WatchCaller(executor_, &context, [session] { return session->CheckCaller(); }));
  const absl::Status admitted = tenant.ok() ? Add(session) : tenant.status();
  admitted.ok() ? session->ReadNext() : session->End(admitted);
  return call;
}

absl::Status InferenceStreams::Add(const std::shared_ptr<Session>& session) {
  size_t of_tenant = 0;
  const MutexLock lock(&mutex_);
  std::erase_if(sessions_, [&](const auto& open) {
    const std::shared_ptr<InferenceSession> known = open.lock();
    if (known == nullptr || known->has_ended()) return true;
    of_tenant += known->caller.tenant == session->caller.tenant ? 1 : 0;
    return false;
  });
  if (sessions_.size() >= limits::kInferenceStreams) {
    return BoundReached("inference_streams",
                        absl::StrCat("the server has ", limits::kInferenceStreams,
                                     " streams of inference already: use one stream for more requests, or ModelInfer"),
                        "QUEUE_FULL");
  }
  const std::string& tenant = session->caller.tenant;
  if (!tenant.empty() && of_tenant >= limits::kInferenceStreams / 2) return TenantHasTooMany(tenant);
  sessions_.push_back(session);
  return absl::OkStatus();
}

void InferenceStreams::End() {
  const MutexLock lock(&mutex_);
  for (const auto& open : sessions_) {
    if (const auto session = open.lock()) {
      session->End(absl::UnavailableError("the server is shutting down: open another stream"));
    }
  }
}

}  // namespace chainfleet

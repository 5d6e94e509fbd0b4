// A unary call of the callback API that another thread answers later. It finishes exactly once: by its answer, or by
// the client's cancel or deadline, whichever comes first.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <utility>

#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/wire/grpc_status.h"
#include "server/rpc/call_deadline.h"
#include "server/rpc/reply_size.h"

namespace chainfleet {

// Shared by the reactor and the code that answers. Thread-safe.
template <typename Response>
class PendingAnswer {
 public:
  PendingAnswer(grpc::ServerUnaryReactor* reactor, Response* response) : reactor_(reactor), response_(response) {}

  void Fail(const absl::Status& status) {
    Finish(status, [](Response*) {});
  }
  // `held` is released when the call is over: the response lives until the client has read it.
  void Succeed(Response response, std::shared_ptr<const void> held = nullptr) {
    if (const absl::Status fits = CheckReplySize(response); !fits.ok()) return Fail(fits);
    Finish(
        absl::OkStatus(), [&](Response* out) { *out = std::move(response); }, std::move(held));
  }
  // Succeeds with `render(*value)` or `*value`, or fails with the status of `value`.
  template <typename T, typename Render>
  void Answer(const absl::StatusOr<T>& value, Render render) {
    if (value.ok()) {
      Succeed(render(*value));
    } else {
      Fail(value.status());
    }
  }
  void Answer(absl::StatusOr<Response> value) { value.ok() ? Succeed(*std::move(value)) : Fail(value.status()); }

  // False once the call is answered or its client has disconnected.
  bool waits() const {
    MutexLock lock(&mutex_);
    return reactor_ != nullptr;
  }

  // Runs `cancel` if the client disconnects before the answer; at once if it has disconnected already.
  void OnCancelled(std::function<void()> cancel) {
    {
      MutexLock lock(&mutex_);
      if (!cancelled_) {
        cancel_ = std::move(cancel);
        return;
      }
    }
    cancel();
  }
  // Called when the response is gone.
  void Over() {
    MutexLock lock(&mutex_);
    held_.reset();
  }
  // `status` says why the call can no longer be answered.
  void Cancel(const absl::Status& status) {
    std::function<void()> cancel;
    {
      MutexLock lock(&mutex_);
      cancelled_ = true;
      cancel = std::exchange(cancel_, nullptr);
    }
    Fail(status);
    if (cancel) cancel();
  }

 private:
  template <typename Fill>
  void Finish(const absl::Status& status, Fill fill, std::shared_ptr<const void> held = nullptr) {
    grpc::ServerUnaryReactor* reactor;
    {
      MutexLock lock(&mutex_);
      reactor = std::exchange(reactor_, nullptr);
      if (reactor == nullptr) return;
      fill(response_);  // the response lives as long as the reactor is not finished
      held_ = std::move(held);
    }
    reactor->Finish(ToGrpc(status));
  }

  mutable Mutex mutex_;
  grpc::ServerUnaryReactor* reactor_ CHAINFLEET_GUARDED_BY(mutex_);
  Response* const response_;
  std::shared_ptr<const void> held_ CHAINFLEET_GUARDED_BY(mutex_);
  bool cancelled_ CHAINFLEET_GUARDED_BY(mutex_) = false;
  std::function<void()> cancel_ CHAINFLEET_GUARDED_BY(mutex_);
};

template <typename Response>
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  UnaryCall(const ClientDeadline& deadline, Response* response)
      : deadline_(deadline), answer_(std::make_shared<PendingAnswer<Response>>(this, response)) {}
  const std::shared_ptr<PendingAnswer<Response>>& answer() const { return answer_; }
  // gRPC also cancels a call whose deadline has passed. Tell the two apart, so that late answers are visible.
  void OnCancel() override {
    answer_->Cancel(deadline_.HasPassed() ? absl::DeadlineExceededError("no answer within the client's deadline")
                                          : absl::CancelledError("the client went away"));
  }
  void OnDone() override {
    answer_->Over();
    delete this;
  }

 private:
  const ClientDeadline deadline_;
  const std::shared_ptr<PendingAnswer<Response>> answer_;
};

// Moves a request or a part of it. gRPC made the message for this call only and does not read it again.
template <typename Message>
Message Taken(const Message* request) {
  return std::move(*const_cast<Message*>(request));
}

// Serves a call. `start(answer)` must answer exactly once, now or later. It does not run if the client is known to have
// left.
template <typename Response, typename Start>
grpc::ServerUnaryReactor* ServeUnary(const ClientDeadline& deadline, Response* response, Start start) {
  auto* call = new UnaryCall<Response>(deadline, response);
  const std::shared_ptr<PendingAnswer<Response>> answer =
      call->answer();  // the call may be gone before `start` returns
  if (deadline.began_cancelled()) {
    call->OnCancel();
  } else {
    start(answer);
  }
  return call;
}
// As above if `allowed` is OK; else the call fails with it.
template <typename Response, typename Start>
grpc::ServerUnaryReactor* ServeUnary(const ClientDeadline& deadline, Response* response, const absl::Status& allowed,
                                     Start start) {
  return ServeUnary(deadline, response,
                    [&](const auto& answer) { allowed.ok() ? start(answer) : answer->Fail(allowed); });
}

}  // namespace chainfleet

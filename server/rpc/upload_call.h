// A client stream that is read to its end and then answered once by another thread: the base of all uploads.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <new>
#include <utility>

#include "core/base/executor.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/wire/grpc_status.h"
#include "server/rpc/streamed_request.h"
#include "server/rpc/token_check.h"

namespace chainfleet {

// Derived classes take messages in Take and start the work in TakeEnd. A read that is not issued is the flow control.
template <typename Message>
class UploadCall : public grpc::ServerReadReactor<StreamedRequest> {
 public:
  // Work that outlives the call may hold it. Thread-safe.
  class Finisher {
   public:
    explicit Finisher(UploadCall* call) : call_(call) {}
    // Called once. `fill` runs before the call ends, and only if the client still waits.
    void Finish(const absl::Status& status, const std::function<void()>& fill = nullptr) {
      MutexLock lock(&mutex_);
      UploadCall* call = std::exchange(call_, nullptr);
      if (call == nullptr) return;
      if (status.ok() && fill) fill();
      call->grpc::ServerReadReactor<StreamedRequest>::Finish(ToGrpc(status));
    }

    // Runs work of the call. If memory runs out, the call fails and the process survives.
    void Run(const std::function<void()>& work) {
      try {
        work();
      } catch (const std::bad_alloc&) {
        Finish(absl::ResourceExhaustedError("the server has too little memory for this upload: send less at once"));
      }
    }

    // False once the call has ended, also if its client disconnected. Work for it is then pointless.
    bool waits() {
      MutexLock lock(&mutex_);
      return call_ != nullptr;
    }

    // Ends the call if its caller may no longer make it. False once the call has ended.
    bool Recheck() {
      if (const absl::Status allowed = still ? still() : absl::OkStatus(); !allowed.ok()) Finish(allowed);
      return waits();
    }

    TokenCheck still;  // set by Begin; may be null

   private:
    Mutex mutex_;
    UploadCall* call_ CHAINFLEET_GUARDED_BY(mutex_);
  };

  void OnReadDone(bool ok) final {
    if (!finisher_->Recheck()) return;
    if (!ok) return TakeEnd();
    const absl::Status status = request_.status().ok() ? Take(message_) : request_.status();
    if (!status.ok()) return finisher_->Finish(status);
    StartRead(&request_);
  }
  void OnCancel() final { finisher_->Finish(absl::CancelledError("the client went away")); }
  void OnDone() final { delete this; }

 protected:
  // Starts reading, or refuses at once. Asks `still` when each message and the end have come, and until the call ends
  // each kTokenCheckInterval on `executor`, which outlives the call.
  void Begin(const absl::Status& admitted, Executor* executor = nullptr, TokenCheck still = nullptr) {
    if (!admitted.ok()) return finisher_->Finish(admitted);
    finisher_->still = std::move(still);
    if (finisher_->still) RecheckLater(executor, std::weak_ptr(finisher_));
    StartRead(&request_);
  }
  const std::shared_ptr<Finisher>& finisher() const { return finisher_; }

  virtual absl::Status Take(const Message& message) = 0;
  virtual void TakeEnd() = 0;

 private:
  const std::shared_ptr<Finisher> finisher_ = std::make_shared<Finisher>(this);
  Message message_;
  StreamedRequest request_{&message_};
};

}  // namespace chainfleet

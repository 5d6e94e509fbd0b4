// Long calls ask again and again whether their caller may still make them.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "core/base/executor.h"
#include "core/base/mutex.h"
#include "core/base/status.h"

namespace chainfleet {

// Returns OK while the caller of a call may go on with it, else the error that ends the call. Null: nobody is asked.
// Thread-safe. May run after the call has ended. Authenticator::TokenCheckOf makes it.
using TokenCheck = std::function<absl::Status()>;

// A stream without messages ends so long after its token was revoked.
inline constexpr absl::Duration kTokenCheckInterval = absl::Seconds(1);

// Calls stream->Recheck() each interval, until it returns false or the stream is gone.
template <typename Stream>
void RecheckLater(Executor* executor, const std::weak_ptr<Stream>& stream) {
  executor->ScheduleAfter(kTokenCheckInterval, [executor, stream] {
    const std::shared_ptr<Stream> open = stream.lock();
    if (open != nullptr && open->Recheck()) RecheckLater(executor, stream);
  });
}

// Repeats the check of a stream's caller until the call is done. A check that returns false has ended the stream. The
// call is cancelled an interval later, because a client that does not read would keep it open. Thread-safe.
class CallerWatch {
 public:
  CallerWatch(const grpc::CallbackServerContext* context, std::function<bool()> check)
      : check_(std::move(check)), context_(context) {}

  // False once the call is done.
  bool Recheck() {
    const bool allowed = check_();
    const MutexLock lock(&mutex_);
    if (context_ == nullptr) return false;
    if (is_refused_) context_->TryCancel();
    is_refused_ |= !allowed;
    return true;
  }
  // The context ends now.
  void Done() {
    const MutexLock lock(&mutex_);
    context_ = nullptr;
  }

 private:
  const std::function<bool()> check_;
  Mutex mutex_;
  const grpc::CallbackServerContext* context_ CHAINFLEET_GUARDED_BY(mutex_);
  bool is_refused_ CHAINFLEET_GUARDED_BY(mutex_) = false;
};

// Repeats `check` until the result is destroyed. The reactor of the call owns the result, because the context lives
// until OnDone deletes the reactor. `executor` outlives the call.
inline std::shared_ptr<const void> WatchCaller(Executor* executor, const grpc::CallbackServerContext* context,
                                               std::function<bool()> check) {
  const auto watch = std::make_shared<CallerWatch>(context, std::move(check));
  RecheckLater(executor, std::weak_ptr(watch));
  return {nullptr, [watch](const void*) { watch->Done(); }};
}

}  // namespace chainfleet

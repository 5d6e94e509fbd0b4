// A server stream of the callback API that is fed from other threads: messages queue up, at most one is being written,
// and the stream is finished exactly once.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/wire/grpc_status.h"
#include "server/rpc/reply_size.h"
#include "server/rpc/token_check.h"

namespace chainfleet {

// The producer's half of the stream; it may outlive the call. Thread-safe.
template <typename Message>
class StreamFeed {
 public:
  StreamFeed(grpc::ServerWriteReactor<Message>* reactor, TokenCheck still)
      : reactor_(reactor), still_(std::move(still)) {}

  // Queues `message`. With `replace`, it replaces a message that still waits, so that a slow reader sees the newest
  // state and the queue holds at most one. False once the call ends; a message that is too large ends the call, and so
  // does a caller who may no longer make it.
  bool Send(Message message, bool replace = false) {
    if (!CheckCaller()) return false;
    if (const absl::Status fits = CheckReplySize(message); !fits.ok()) {
      End(fits);
      return false;
    }
    MutexLock lock(&mutex_);
    if (over_ || end_) return false;
    if (replace && !waiting_.empty()) waiting_.pop_back();
    waiting_.push_back(std::move(message));
    WriteNext();
    return true;
  }
  // Finishes the stream after the queued messages.
  void End(const absl::Status& status) {
    MutexLock lock(&mutex_);
    if (over_ || end_) return;
    end_ = status;
    WriteNext();
  }
  // False if the caller may no longer make the call, which then ends without the messages that wait.
  bool CheckCaller() {
    const absl::Status allowed = still_ ? still_() : absl::OkStatus();
    if (allowed.ok()) return true;
    std::function<void()> cancel;
    {
      MutexLock lock(&mutex_);
      if (over_) return false;
      waiting_.clear();
      end_ = allowed;
      cancel = std::exchange(cancel_, nullptr);
      WriteNext();
    }
    if (cancel) cancel();
    return false;
  }
  // Runs `cancel` if the client disconnects or may no longer make the call; at once if the call ends already.
  void OnCancelled(std::function<void()> cancel) {
    {
      MutexLock lock(&mutex_);
      if (!over_ && !end_) {
        cancel_ = std::move(cancel);
        return;
      }
    }
    cancel();
  }

  void Written(bool ok) {
    std::function<void()> cancel;
    {
      MutexLock lock(&mutex_);
      writing_ = false;
      if (ok) {
        WriteNext();
      } else {
        cancel = Abandon();
      }
    }
    if (cancel) cancel();
  }
  void Cancel() {
    std::function<void()> cancel;
    {
      MutexLock lock(&mutex_);
      cancel = Abandon();
    }
    if (cancel) cancel();
  }

 private:
  void WriteNext() CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || over_) return;
    if (!waiting_.empty()) {
      current_ = std::move(waiting_.front());
      waiting_.pop_front();
      writing_ = true;
      reactor_->StartWrite(&current_);
    } else if (end_) {
      over_ = true;
      reactor_->Finish(ToGrpc(*end_));
    }
  }
  std::function<void()> Abandon() CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (over_) return nullptr;
    over_ = true;
    reactor_->Finish(ToGrpc(end_ && !end_->ok() ? *end_ : absl::CancelledError("the client went away")));
    return std::exchange(cancel_, nullptr);
  }

  Mutex mutex_;
  grpc::ServerWriteReactor<Message>* const reactor_;  // alive until over_
  const TokenCheck still_;
  std::deque<Message> waiting_ CHAINFLEET_GUARDED_BY(mutex_);
  Message current_ CHAINFLEET_GUARDED_BY(mutex_);  // gRPC reads it while `writing_`
  bool writing_ CHAINFLEET_GUARDED_BY(mutex_) = false;
  bool over_ CHAINFLEET_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> end_ CHAINFLEET_GUARDED_BY(mutex_);
  std::function<void()> cancel_ CHAINFLEET_GUARDED_BY(mutex_);
};

template <typename Message>
class MessageStream final : public grpc::ServerWriteReactor<Message> {
 public:
  explicit MessageStream(TokenCheck still = nullptr)
      : feed_(std::make_shared<StreamFeed<Message>>(this, std::move(still))) {}
  void TakeWatch(std::shared_ptr<const void> watch) { watch_ = std::move(watch); }
  const std::shared_ptr<StreamFeed<Message>>& feed() const { return feed_; }
  void OnWriteDone(bool ok) override { feed_->Written(ok); }
  void OnCancel() override { feed_->Cancel(); }
  void OnDone() override { delete this; }

 private:
  const std::shared_ptr<StreamFeed<Message>> feed_;
  std::shared_ptr<const void> watch_;  // may be null
};

// Asks `still` before each message and each kTokenCheckInterval. `executor` outlives the stream. The context is that of
// the call.
template <typename Message, typename Start>
grpc::ServerWriteReactor<Message>* ServeStream(Executor* executor, const grpc::CallbackServerContext* context,
                                               const TokenCheck& still, Start start) {
  auto* stream = new MessageStream<Message>(still);
  const std::shared_ptr<StreamFeed<Message>> feed = stream->feed();
  if (still) stream->TakeWatch(WatchCaller(executor, context, [feed] { return feed->CheckCaller(); }));
  start(feed);
  return stream;
}
template <typename Message>
grpc::ServerWriteReactor<Message>* RefuseStream(const absl::Status& status) {
  auto* stream = new MessageStream<Message>();
  stream->feed()->End(status);
  return stream;
}

}  // namespace chainfleet

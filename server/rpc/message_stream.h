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

namespace chainfleet {

// The producer's half of the stream; it may outlive the call. Thread-safe.
template <typename Message>
class StreamFeed {
 public:
  explicit StreamFeed(grpc::ServerWriteReactor<Message>* reactor) : reactor_(reactor) {}

  // Queues `message`. With `replace`, it replaces a message that still waits, so that a slow reader sees the newest
  // state and the queue holds at most one. False once the call is over; a message that is too large ends the call.
  bool Send(Message message, bool replace = false) {
    if (const absl::Status fits = CheckReplySize(message); !fits.ok()) {
      End(fits);
      return false;
    }
    MutexLock lock(&mutex_);
    if (over_) return false;
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
  void OnCancelled(std::function<void()> cancel) {
    {
      MutexLock lock(&mutex_);
      if (!over_) {
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
    reactor_->Finish(ToGrpc(absl::CancelledError("the client went away")));
    return std::exchange(cancel_, nullptr);
  }

  Mutex mutex_;
  grpc::ServerWriteReactor<Message>* const reactor_;  // alive until over_
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
  MessageStream() : feed_(std::make_shared<StreamFeed<Message>>(this)) {}
  const std::shared_ptr<StreamFeed<Message>>& feed() const { return feed_; }
  void OnWriteDone(bool ok) override { feed_->Written(ok); }
  void OnCancel() override { feed_->Cancel(); }
  void OnDone() override { delete this; }

 private:
  const std::shared_ptr<StreamFeed<Message>> feed_;
};

template <typename Message, typename Start>
grpc::ServerWriteReactor<Message>* ServeStream(Start start) {
  auto* stream = new MessageStream<Message>();
  const std::shared_ptr<StreamFeed<Message>> feed = stream->feed();
  start(feed);
  return stream;
}

}  // namespace chainfleet

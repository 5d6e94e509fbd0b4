// A reply whose parts come one after another.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "core/base/mutex.h"

namespace chainfleet {

// Between a call that writes and the connection that sends. Thread-safe.
class WebStream {
 public:
  // `cancel` runs at most once, if the connection ends before the stream.
  explicit WebStream(std::function<void()> cancel) : cancel_(std::move(cancel)) {}

  // Writes a part. `next(goes_on)` runs once: with true when the connection has taken the part, so a slow client holds
  // back the call; with false when the connection has ended. REQUIRES: `next` of the part before has run.
  void Write(std::string part, std::function<void(bool goes_on)> next);
  // The end, after a last part.
  void End(const std::string& part);
  // Ends the connection after what was written, so that the client sees that the reply is not complete.
  void Cut();
  // Runs once after End, when the connection waits for nothing more.
  void OnEnd(std::function<void()> ended);

  // For the connection that sends, until Close.
  void Open(std::function<void()> suspend, std::function<void()> resume);
  static constexpr ssize_t kEnd = -1, kCut = -2;
  // The number of bytes; 0 if the connection was suspended until there are more.
  ssize_t Read(char* to, size_t most);
  void Close();

 private:
  void Resume() CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  std::string bytes_ CHAINFLEET_GUARDED_BY(mutex_);
  size_t taken_ CHAINFLEET_GUARDED_BY(mutex_) = 0;  // the first of them, which the connection has
  bool has_ended_ CHAINFLEET_GUARDED_BY(mutex_) = false, is_cut_ CHAINFLEET_GUARDED_BY(mutex_) = false;
  bool is_closed_ CHAINFLEET_GUARDED_BY(mutex_) = false, is_suspended_ CHAINFLEET_GUARDED_BY(mutex_) = false;
  std::function<void()> cancel_ CHAINFLEET_GUARDED_BY(mutex_), ended_ CHAINFLEET_GUARDED_BY(mutex_);
  std::function<void()> suspend_ CHAINFLEET_GUARDED_BY(mutex_), resume_ CHAINFLEET_GUARDED_BY(mutex_);
  std::function<void(bool)> next_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet

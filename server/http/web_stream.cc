#include "server/http/web_stream.h"

#include <algorithm>
#include <cstring>

namespace chainfleet {

void WebStream::Write(std::string part, std::function<void(bool goes_on)> next) {
  {
    MutexLock lock(&mutex_);
    if (!is_closed_) {
      bytes_ += part;
      next_ = std::move(next);
      return Resume();
    }
  }
  next(false);
}

void WebStream::End(const std::string& part) {
  std::function<void()> ended;
  {
    MutexLock lock(&mutex_);
    bytes_ += part;
    has_ended_ = true;
    cancel_ = nullptr;
    Resume();
    ended.swap(ended_);
  }
  if (ended) ended();
}

void WebStream::Cut() {
  {
    MutexLock lock(&mutex_);
    is_cut_ = true;
  }
  End("");
}

void WebStream::OnEnd(std::function<void()> ended) {
  {
    MutexLock lock(&mutex_);
    if (!has_ended_) {
      ended_ = std::move(ended);
      return;
    }
  }
  ended();
}

void WebStream::Open(std::function<void()> suspend, std::function<void()> resume) {
  MutexLock lock(&mutex_);
  suspend_ = std::move(suspend);
  resume_ = std::move(resume);
}

ssize_t WebStream::Read(char* to, size_t most) {
  std::function<void(bool)> next;
  size_t size = 0;
  {
    MutexLock lock(&mutex_);
    if (taken_ == bytes_.size()) {
      if (has_ended_) return is_cut_ ? kCut : kEnd;
      is_suspended_ = true;
      suspend_();
      return 0;
    }
    size = std::min(most, bytes_.size() - taken_);
    std::memcpy(to, bytes_.data() + taken_, size);
    taken_ += size;
    if (taken_ == bytes_.size()) {
      bytes_.clear();
      taken_ = 0;
      next.swap(next_);
    }
  }
  if (next) next(true);
  return static_cast<ssize_t>(size);
}

void WebStream::Close() {
  std::function<void()> cancel;
  std::function<void(bool)> next;
  {
    MutexLock lock(&mutex_);
    is_closed_ = true;
    is_suspended_ = false;
    cancel.swap(cancel_);
    next.swap(next_);
  }
  if (cancel) cancel();
  if (next) next(false);
}

void WebStream::Resume() {
  if (std::exchange(is_suspended_, false)) resume_();
}

}  // namespace chainfleet

// The only mutex of the tree: absl::Mutex, plus the ThreadSanitizer annotations that Debian's uninstrumented Abseil
// lacks. Without these, TSan reports races in correct programs. tests/tidy bans the raw absl::Mutex.
//
//   MutexLock lock(&mutex_);
//   while (queue_.empty()) not_empty_.Wait(&mutex_);
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#define CHAINFLEET_TSAN(call) call
#else
#define CHAINFLEET_TSAN(call) \
  do {                        \
  } while (false)
#endif

// Annotations that clang's -Wthread-safety checks and gcc ignores. GUARDED_BY: the member is read and written only
// under `x`. REQUIRES: callers of the function hold these mutexes.
#define CHAINFLEET_GUARDED_BY(x) ABSL_GUARDED_BY(x)
#define CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(...) ABSL_EXCLUSIVE_LOCKS_REQUIRED(__VA_ARGS__)

namespace chainfleet {

// Not recursive: a second lock in one thread deadlocks. No thread may hold or wait for a mutex that is destroyed.
class ABSL_LOCKABLE Mutex {
 public:
  Mutex() { CHAINFLEET_TSAN(__tsan_mutex_create(this, __tsan_mutex_not_static)); }
  ~Mutex() { CHAINFLEET_TSAN(__tsan_mutex_destroy(this, __tsan_mutex_not_static)); }
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    CHAINFLEET_TSAN(__tsan_mutex_pre_lock(this, 0));
    mutex_.Lock();
    CHAINFLEET_TSAN(__tsan_mutex_post_lock(this, 0, 0));
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    CHAINFLEET_TSAN(__tsan_mutex_pre_unlock(this, 0));
    mutex_.Unlock();
    CHAINFLEET_TSAN(__tsan_mutex_post_unlock(this, 0));
  }
  // For a function or lambda that runs under the lock where clang cannot see it. REQUIRES: this thread holds the mutex.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() { mutex_.AssertHeld(); }

 private:
  friend class CondVar;
  absl::Mutex mutex_;
};

// Holds `mutex`, which is not owned, for its scope.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) { mutex_->Lock(); }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

// A wait may return without a signal: always wait in a loop over the condition. Thread-safe; all concurrent waiters
// must pass the same mutex.
class CondVar {
 public:
  // Releases `mutex`, sleeps, and locks `mutex` again before it returns.
  void Wait(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    CHAINFLEET_TSAN(__tsan_mutex_pre_unlock(mutex, 0));
    CHAINFLEET_TSAN(__tsan_mutex_post_unlock(mutex, 0));
    condition_.Wait(&mutex->mutex_);
    CHAINFLEET_TSAN(__tsan_mutex_pre_lock(mutex, 0));
    CHAINFLEET_TSAN(__tsan_mutex_post_lock(mutex, 0, 0));
  }
  // Waits at most `timeout` of real time. Returns true on a timeout; check the condition in both cases.
  bool WaitWithTimeout(Mutex* mutex, absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    CHAINFLEET_TSAN(__tsan_mutex_pre_unlock(mutex, 0));
    CHAINFLEET_TSAN(__tsan_mutex_post_unlock(mutex, 0));
    const bool timed_out = condition_.WaitWithTimeout(&mutex->mutex_, timeout);
    CHAINFLEET_TSAN(__tsan_mutex_pre_lock(mutex, 0));
    CHAINFLEET_TSAN(__tsan_mutex_post_lock(mutex, 0, 0));
    return timed_out;
  }
  // Wake one waiter, or all waiters; the caller may hold the mutex or not.
  void Signal() { condition_.Signal(); }
  void SignalAll() { condition_.SignalAll(); }

 private:
  absl::CondVar condition_;
};

}  // namespace chainfleet

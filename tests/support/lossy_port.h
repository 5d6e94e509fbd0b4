// A CoordinatorPort that loses, repeats and delays calls on the way to another one, from a seed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "core/base/executor.h"
#include "core/base/mutex.h"
#include "worker/runtime/coordinator_port.h"

namespace chainfleet {

struct PortFaults {
  double drop_request = 0;                          // probability that the server never sees the call
  double drop_reply = 0;                            // ... that it acts on it and the caller never hears
  double duplicate = 0;                             // ... that it sees the call twice
  absl::Duration max_delay = absl::ZeroDuration();  // of each way, uniform
};

// Lost calls end as DEADLINE_EXCEEDED after their deadline. Thread-safe; deterministic on a seeded executor.
class LossyPort final : public CoordinatorPort {
 public:
  LossyPort(CoordinatorPort* target, Executor* executor, uint64_t seed)
      : target_(target), executor_(executor), random_(seed) {}

  void SetFaults(const PortFaults& faults) {
    MutexLock lock(&mutex_);
    faults_ = faults;
  }

  // Nothing passes, in either direction, until it is joined again.
  void Partition(bool cut) {
    MutexLock lock(&mutex_);
    cut_ = cut;
  }

  void Synchronize(const SynchronizeRequest& request, absl::Duration deadline, Done<SynchronizeReply> done) override {
    Pass<SynchronizeReply>(deadline, std::move(done), [this, request, deadline](Done<SynchronizeReply> reply) {
      target_->Synchronize(request, deadline, std::move(reply));
    });
  }
  void CommitProgress(const ProgressCommit& commit, const std::string& worker, const std::string& incarnation,
                      Done<CommitReply> done) override {
    Pass<CommitReply>(kCallDeadline, std::move(done), [this, commit, worker, incarnation](Done<CommitReply> reply) {
      target_->CommitProgress(commit, worker, incarnation, std::move(reply));
    });
  }
  void PutBlob(const ChainId& chain, int64_t lease_epoch, const BlobRef& ref, std::shared_ptr<const std::string> bytes,
               Done<bool> done) override {
    Pass<bool>(kCallDeadline, std::move(done), [this, chain, lease_epoch, ref, bytes](Done<bool> reply) {
      target_->PutBlob(chain, lease_epoch, ref, bytes, std::move(reply));
    });
  }
  void GetBlob(const BlobRef& ref, Done<std::shared_ptr<const std::string>> done) override {
    Pass<std::shared_ptr<const std::string>>(
        kCallDeadline, std::move(done),
        [this, ref](Done<std::shared_ptr<const std::string>> reply) { target_->GetBlob(ref, std::move(reply)); });
  }

 private:
  static constexpr absl::Duration kCallDeadline = absl::Seconds(10);

  bool Happens(double probability) {
    MutexLock lock(&mutex_);
    return std::uniform_real_distribution<double>()(random_) < probability;
  }
  absl::Duration Delay() {
    MutexLock lock(&mutex_);
    return faults_.max_delay * std::uniform_real_distribution<double>()(random_);
  }
  bool LosesRequest() { return Cut() || Happens(faults().drop_request); }
  bool LosesReply() { return Cut() || Happens(faults().drop_reply); }
  bool Cut() const {
    MutexLock lock(&mutex_);
    return cut_;
  }
  PortFaults faults() const {
    MutexLock lock(&mutex_);
    return faults_;
  }

  template <typename T>
  void Pass(absl::Duration deadline, Done<T> done, std::function<void(Done<T>)> call) {
    const auto lose = [this, deadline, done] {
      executor_->ScheduleAfter(deadline, [done] { done(absl::DeadlineExceededError("lost on the way")); });
    };
    if (LosesRequest()) return lose();
    if (Happens(faults().duplicate)) {
      executor_->ScheduleAfter(Delay(), [call] { call([](const absl::StatusOr<T>&) {}); });
    }
    executor_->ScheduleAfter(Delay(), [this, call, done, lose] {
      call([this, done, lose](absl::StatusOr<T> reply) {
        if (LosesReply()) return lose();
        executor_->ScheduleAfter(Delay(), [done, reply = std::move(reply)] { done(reply); });
      });
    });
  }

  CoordinatorPort* const target_;
  Executor* const executor_;
  mutable Mutex mutex_;
  std::mt19937_64 random_ CHAINFLEET_GUARDED_BY(mutex_);
  PortFaults faults_ CHAINFLEET_GUARDED_BY(mutex_);
  bool cut_ CHAINFLEET_GUARDED_BY(mutex_) = false;
};

}  // namespace chainfleet

// A CoordinatorPort that loses, repeats and delays calls to another port, from a seed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "core/base/executor.h"
#include "worker/runtime/session/coordinator_port.h"

namespace chainfleet {

struct PortFaults {
  double drop_request = 0;                          // probability that the server never sees the call
  double drop_reply = 0;                            // ... that the server acts on the call and the caller gets no reply
  double duplicate = 0;                             // ... that the server sees the call twice
  absl::Duration max_delay = absl::ZeroDuration();  // in each direction, uniform: calls overtake each other
  absl::Duration max_lateness = absl::ZeroDuration();  // for a duplicate, in addition
};

// Calls without a reply end as DEADLINE_EXCEEDED after their deadline. For one loop; deterministic on a seeded
// executor. Calls in transit belong to `network` and outlive a caller whose tasks are dropped; `caller` runs the
// deadlines and the replies.
class LossyPort final : public CoordinatorPort {
 public:
  LossyPort(CoordinatorPort* target, Executor* network, Executor* caller, uint64_t seed)
      : target_(target), network_(network), caller_(caller), random_(seed) {}

  void SetFaults(const PortFaults& faults) { faults_ = faults; }

  // Cuts the network in both directions, or joins it again.
  void Partition(bool cut) { cut_ = cut; }

  void Synchronize(const SynchronizeRequest& request, absl::Duration deadline, Done<SynchronizeReply> done) override {
    Pass<SynchronizeReply>(deadline, std::move(done), [this, request, deadline](Done<SynchronizeReply> reply) {
      target_->Synchronize(request, deadline, std::move(reply));
    });
  }
  void CommitProgress(const ProgressCommit& commit, Done<CommitReply> done) override {
    Pass<CommitReply>(kCallDeadline, std::move(done),
                      [this, commit](Done<CommitReply> reply) { target_->CommitProgress(commit, std::move(reply)); });
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

  bool Happens(double probability) { return std::uniform_real_distribution<double>()(random_) < probability; }
  absl::Duration UpTo(absl::Duration limit) { return limit * std::uniform_real_distribution<double>()(random_); }

  template <typename T>
  void Pass(absl::Duration deadline, Done<T> done, std::function<void(Done<T>)> call) {
    const auto waiting = std::make_shared<Done<T>>(std::move(done));
    const auto answer = [waiting](absl::StatusOr<T> reply) {
      if (const Done<T> first = std::exchange(*waiting, nullptr)) first(std::move(reply));
    };
    caller_->ScheduleAfter(deadline, [answer] { answer(absl::DeadlineExceededError("lost on the way")); });
    if (Happens(faults_.duplicate)) {
      network_->ScheduleAfter(UpTo(faults_.max_delay) + UpTo(faults_.max_lateness), [this, call] {
        if (!cut_) call([](const absl::StatusOr<T>&) {});
      });
    }
    if (Happens(faults_.drop_request)) return;
    network_->ScheduleAfter(UpTo(faults_.max_delay), [this, call, answer] {
      if (cut_) return;
      call([this, answer](absl::StatusOr<T> reply) {
        if (cut_ || Happens(faults_.drop_reply)) return;
        network_->ScheduleAfter(UpTo(faults_.max_delay), [this, answer, reply = std::move(reply)] {
          if (!cut_) caller_->Schedule([answer, reply] { answer(reply); });
        });
      });
    });
  }

  CoordinatorPort* const target_;
  Executor* const network_;
  Executor* const caller_;
  std::mt19937_64 random_;
  PortFaults faults_;
  bool cut_ = false;
};

}  // namespace chainfleet

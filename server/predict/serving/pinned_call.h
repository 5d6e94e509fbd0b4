// The common part of Predict and Evaluate calls: a deadline, the draws that are pinned first, one fan-out at a time,
// one answer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "core/base/executor.h"
#include "core/base/status.h"
#include "server/predict/serving/draw_catalog.h"
#include "server/predict/serving/fan_out.h"
#include "server/predict/serving/shard_queue.h"

namespace chainfleet {

// Not thread-safe except Begin and the function that it returns: everything else runs on the strand. Pending callbacks
// own the call, so create it with std::make_shared. Executor, catalog and queue outlive the call.
template <typename Result>
class PinnedCall : public std::enable_shared_from_this<PinnedCall<Result>> {
 public:
  virtual ~PinnedCall() = default;

  // Looks up the draws, then runs OnPinned; DEADLINE_EXCEEDED at most `timeout` from now, which may be infinite. The
  // returned function ends the call with CANCELLED and drops its shards; any thread may call it, at any time.
  std::function<void()> Begin(absl::Duration timeout) {
    if (timeout < absl::InfiniteDuration()) {
      strand_.ScheduleAfter(timeout, [weak = this->weak_from_this()] {
        if (const auto self = weak.lock()) self->Stop(absl::DeadlineExceededError("the deadline passed"));
      });
    }
    catalog_->Pin(query_, [self = this->shared_from_this()](absl::StatusOr<PinnedDraws> draws) {
      self->strand_.Schedule([self, draws = std::move(draws)]() mutable { self->Take(std::move(draws)); });
    });
    return [weak = this->weak_from_this()] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      self->strand_.Schedule([self] { self->Stop(absl::CancelledError("the call was cancelled")); });
    };
  }

 protected:
  using Done = std::function<void(absl::StatusOr<Result>)>;

  // `stopped_while`: the context of the error when the call is stopped between two fan-outs.
  PinnedCall(Executor* executor, DrawCatalog* catalog, ShardQueue* queue, DrawQuery query, std::string stopped_while,
             Done done)
      : strand_(executor),
        catalog_(catalog),
        queue_(queue),
        query_(std::move(query)),
        stopped_while_(std::move(stopped_while)),
        done_(std::move(done)) {}

  // Runs when draws() are known. An error ends the call.
  virtual absl::Status OnPinned() = 0;

  // Replaces the previous fan-out, so never call it within an event of that fan-out. plan.draws may be a part of
  // draws(); null means all.
  void FanOutRows(FanOut::Plan plan, FanOut::Events events) {
    if (plan.draws == nullptr) plan.draws = draws_;
    fan_out_.emplace(this->weak_from_this(), &strand_, queue_, catalog_, std::move(plan), std::move(events));
    fan_out_->Advance();
  }

  // Runs when the call is stopped and its fan-out, if any, has ended.
  virtual void OnStopped(const absl::Status& status) { Finish(Annotate(status, stopped_while_)); }

  // Sends the answer; no effect after the first call.
  void Finish(absl::StatusOr<Result> result) {
    if (const auto done = std::exchange(done_, nullptr)) done(std::move(result));
  }
  bool finished() const { return done_ == nullptr; }

  Strand& strand() { return strand_; }
  DrawCatalog& catalog() { return *catalog_; }
  ShardQueue& queue() { return *queue_; }
  const PinnedDraws& draws() const { return *draws_; }

 private:
  void Take(absl::StatusOr<PinnedDraws> draws) {
    if (finished()) return;
    if (!draws.ok()) return Finish(draws.status());
    draws_ = std::make_shared<const PinnedDraws>(*std::move(draws));
    if (absl::Status status = OnPinned(); !status.ok()) Finish(std::move(status));
  }

  void Stop(const absl::Status& status) {
    if (fan_out_) fan_out_->Stop(status);
    OnStopped(status);
  }

  Strand strand_;
  DrawCatalog* const catalog_;
  ShardQueue* const queue_;
  const DrawQuery query_;
  const std::string stopped_while_;
  Done done_;
  std::shared_ptr<const PinnedDraws> draws_;
  std::optional<FanOut> fan_out_;
};

}  // namespace chainfleet

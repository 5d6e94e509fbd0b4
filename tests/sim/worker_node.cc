#include "tests/sim/worker_node.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/support/tight_batch.h"

namespace chainfleet {

WorkerNode::WorkerNode(Site* site, CoordinatorPort* coordinator, const std::string& name, int number,
                       const SimulatedDevice& device)
    : site_(site),
      process_(absl::StrCat(name, "-", number), &site->time, &site->loop, &site->dice),
      line_(coordinator, &site->loop, &process_, site->dice.Next()),
      worker_(
          &line_, &process_, &process_,
          [limit = device.max_chains](auto plan, const auto& inputs) -> absl::StatusOr<std::unique_ptr<ChainBatch>> {
            CHAINFLEET_ASSIGN_OR_RETURN(auto batch, ChainBatch::Create(std::move(plan), inputs.dataset, "cpu"));
            return std::make_unique<TightBatch>(std::move(batch), limit);
          },
          {name, process_.name(), device.slots, device.upload_bytes}),
      device_(device) {
  worker_.held.SetListeners([this] { Wake(); }, [this] { worker_.session.Wake(); });
  worker_.uploader.SetRoomListener([this] { Wake(); });
  worker_.device.SetListener([this] { Wake(); });
  site_->Note(absl::StrCat(process_.name(), " starts"));
  worker_.session.Start();
  ScheduleTurn(absl::ZeroDuration());
}

void WorkerNode::ScheduleTurn(absl::Duration delay) {
  process_.ScheduleAfter(delay, [this, turn = ++turn_] {
    if (turn != turn_) return;
    if (const absl::Duration hangs = hangs_until_ - process_.Monotonic(); hangs > absl::ZeroDuration()) {
      return ScheduleTurn(hangs);
    }
    idle_ = false;
    if (worker_.device.RunOnce()) return ScheduleTurn(site_->dice.Between(device_.step / 2, device_.step * 2));
    idle_ = true;
    ScheduleTurn(worker_.device.IdleWait());
  });
}

void WorkerNode::Wake() {
  if (std::exchange(idle_, false)) ScheduleTurn(absl::ZeroDuration());
}

void WorkerNode::Hang(absl::Duration length) { hangs_until_ = process_.Monotonic() + length; }

void WorkerNode::Drain() {
  draining_ = true;
  drain_deadline_ = process_.Monotonic() + limits::kDrainDeadline;
  process_.Schedule([this] {
    worker_.session.Drain();
    EndWhenDrained();
  });
}

void WorkerNode::EndWhenDrained() {
  if (worker_.session.drained() || process_.Monotonic() >= drain_deadline_) {
    site_->Note(absl::StrCat(process_.name(), worker_.session.drained() ? " has drained" : " ends undrained"));
    return process_.Kill();
  }
  process_.ScheduleAfter(absl::Milliseconds(200), [this] { EndWhenDrained(); });
}

}  // namespace chainfleet

#include "server/scale/scale_policy.h"

#include <algorithm>
#include <ranges>

namespace chainfleet {
namespace {

using State = ScaledWorker::State;

int64_t WorkersFor(int64_t chains, int32_t per_worker) {
  return (std::max<int64_t>(chains, 0) + per_worker - 1) / per_worker;
}

// Workers that will stay, and the slots of those among them that have not joined yet.
struct Present {
  int64_t workers = 0, slots_to_come = 0;
};
Present CountPresent(const ScaleSettings& settings, const ScaleFacts& facts) {
  Present present;
  for (const ScaledWorker& worker : facts.workers) {
    if (worker.state == State::kEnding) continue;
    ++present.workers;
    if (!worker.joined) present.slots_to_come += settings.chains_per_worker;
  }
  return present;
}

int64_t Desired(const ScaleSettings& settings, const ScaleFacts& facts, const Present& present) {
  int64_t wanted = WorkersFor(facts.waiting + facts.held - facts.other_slots, settings.chains_per_worker);
  // Count the slots that workers really have: a worker may have fewer than it was started with.
  const int64_t free_slots = facts.stuck_for < kStuckAfter ? facts.free_slots : 0;
  const int64_t unserved = facts.waiting - free_slots - present.slots_to_come;
  if (unserved > 0) {
    wanted = std::max(wanted, present.workers + WorkersFor(unserved, settings.chains_per_worker));
  }
  return std::clamp<int64_t>(wanted, settings.min_workers, settings.max_workers);
}

}  // namespace

ScaleDecision DecideScale(const ScaleSettings& settings, const ScaleFacts& facts) {
  const Present present = CountPresent(settings, facts);
  const int64_t desired = Desired(settings, facts, present);
  ScaleDecision decision{.desired = static_cast<int32_t>(desired)};
  if (present.workers < desired) {
    const int64_t wanted =
        facts.waiting > 0 && facts.waiting_for >= kAskAfter ? desired : int64_t{settings.min_workers};
    const int64_t room = settings.max_workers - static_cast<int64_t>(facts.workers.size());
    decision.ask = static_cast<int32_t>(std::max<int64_t>(std::min(wanted - present.workers, room), 0));
    return decision;
  }
  int64_t surplus = present.workers - desired;
  if (facts.waiting > 0) return decision;
  // Withdraw from the end of the queue: those jobs would wait longest.
  for (const ScaledWorker& worker : facts.workers | std::views::reverse) {
    if (surplus == 0 || facts.calm_for < settings.idle_after) break;
    if (worker.state != State::kPending) continue;
    decision.withdraw.push_back(worker.job);
    --surplus;
  }
  std::vector<ScaledWorker> idle;
  std::ranges::copy_if(facts.workers, std::back_inserter(idle), [&](const ScaledWorker& worker) {
    return worker.state == State::kRunning && worker.idle_for >= settings.idle_after;
  });
  std::ranges::stable_sort(idle, std::ranges::greater(), &ScaledWorker::idle_for);
  for (const ScaledWorker& worker : idle) {
    if (surplus-- == 0) break;
    decision.released.push_back(worker.job);
  }
  return decision;
}

}  // namespace chainfleet

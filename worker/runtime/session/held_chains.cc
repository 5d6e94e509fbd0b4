#include "worker/runtime/session/held_chains.h"

#include <algorithm>
#include <utility>

#include "core/base/log.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kCancelledStepFloor = absl::Seconds(1);
constexpr int kCancelledStepFactor = 2;

absl::Duration CancelledAfter(absl::Duration usual_step) {
  return std::max(kCancelledStepFloor, kCancelledStepFactor * usual_step);
}

}  // namespace

void HeldChains::SetListeners(std::function<void()> on_device_work, std::function<void()> on_change) {
  on_device_work_ = std::move(on_device_work);
  on_change_ = std::move(on_change);
}

HeldChains::Record* HeldChains::Find(const LeaseRef& lease) {
  const auto it = records_.find(lease.chain);
  return it != records_.end() && it->second.chain.grant.lease_epoch == lease.epoch ? &it->second : nullptr;
}

bool HeldChains::Erase(const LeaseRef& lease) {
  if (Find(lease) == nullptr) return false;
  records_.erase(lease.chain);
  ended_[lease.chain] = {lease.epoch, reports_};
  return true;
}

void HeldChains::EraseReleased(const LeaseRef& lease, ReleasedChain::Why why, const std::string& reason) {
  if (Erase(lease)) released_.push_back({{lease.chain, lease.epoch, why, reason}, reports_});
}

HeldChains::Added HeldChains::Add(LeasedChain chain, LeaseDeadline deadline) {
  {
    const LeaseRef lease = chain.lease();
    MutexLock lock(&mutex_);
    const auto ended = ended_.find(lease.chain);
    if (ended != ended_.end() && ended->second.epoch >= lease.epoch) return Added::kStale;
    const auto held = records_.find(lease.chain);
    if (held != records_.end()) {
      const int64_t held_epoch = held->second.chain.grant.lease_epoch;
      if (held_epoch == lease.epoch) return Added::kRepeat;
      if (held_epoch > lease.epoch) return Added::kStale;
    }
    Record record;
    record.step = chain.grant.progress.step;
    record.chain = std::move(chain);
    record.deadline = deadline;
    record.visited_at = clock_->Monotonic();
    records_.insert_or_assign(lease.chain, std::move(record));
  }
  on_device_work_();
  return Added::kNew;
}

void HeldChains::Renew(const LeaseRef& lease, LeaseDeadline deadline) {
  MutexLock lock(&mutex_);
  if (Record* record = Find(lease)) record->deadline.Extend(deadline);
}

void HeldChains::OrderHandBack(const LeaseRef& lease) {
  {
    MutexLock lock(&mutex_);
    if (Record* record = Find(lease)) record->hand_back = true;
  }
  on_device_work_();
}

void HeldChains::OrderHandBackAll() {
  {
    MutexLock lock(&mutex_);
    for (auto& [chain, record] : records_) record.hand_back = true;
  }
  on_device_work_();
}

HeldChains::Report HeldChains::MakeReport() {
  MutexLock lock(&mutex_);
  Report report;
  report.number = ++reports_;
  for (const auto& [chain, record] : records_) {
    report.chains.push_back({chain, record.chain.grant.lease_epoch, record.step, record.stats});
  }
  for (const Told& told : released_) report.released.push_back(told.release);
  return report;
}

void HeldChains::Acknowledge(uint64_t number) {
  MutexLock lock(&mutex_);
  std::erase_if(released_, [number](const Told& told) { return told.report < number; });
  std::erase_if(ended_, [number](const auto& entry) { return entry.second.report < number; });
}

absl::Duration HeldChains::HungAfter(const Record& record) const {
  return std::max<absl::Duration>(hung_step_floor_, limits::kHungStepFactor * record.usual_step);
}

std::vector<LeaseRef> HeldChains::ReleaseHung() {
  std::vector<LeaseRef> hung;
  const absl::Duration now = clock_->Monotonic();
  MutexLock lock(&mutex_);
  const bool unwanted = !lost_.empty() || (loop_due_ && now >= *loop_due_);
  hung_ = hung_ || unwanted;
  for (const auto& [chain, record] : records_) {
    if (record.phase != Phase::kEnding && (unwanted || now - record.visited_at > HungAfter(record))) {
      hung.push_back(record.chain.lease());
    }
  }
  for (const LeaseRef& lease : hung) {
    EraseReleased(lease, ReleasedChain::Why::kHung,
                  lost_.empty() ? "no step within the bound; the device does not answer" : lost_);
  }
  hung_ = hung_ || !hung.empty();
  return hung;
}

void HeldChains::LoseDevice(const std::string& why) {
  {
    MutexLock lock(&mutex_);
    if (!lost_.empty()) return;
    lost_ = why;
  }
  Log(LogLevel::kError, "device lost: every chain handed back", {{"error", why}});
  on_change_();
}

std::optional<absl::Duration> HeldChains::loop_due() const {
  MutexLock lock(&mutex_);
  return loop_due_;
}

bool HeldChains::device_responds() const {
  MutexLock lock(&mutex_);
  return !hung_ && lost_.empty();
}

bool HeldChains::stuck() const {
  MutexLock lock(&mutex_);
  return hung_ && records_.empty() && released_.empty();
}

bool HeldChains::quiet() const {
  MutexLock lock(&mutex_);
  return records_.empty() && released_.empty();
}

int HeldChains::num_chains() const {
  MutexLock lock(&mutex_);
  return static_cast<int>(records_.size());
}

std::vector<LeasedChain> HeldChains::TakeNew() {
  std::vector<LeasedChain> taken;
  MutexLock lock(&mutex_);
  if (!lost_.empty()) return taken;
  hung_ = false;
  loop_due_.reset();
  for (auto& [chain, record] : records_) {
    if (record.phase != Phase::kNew) continue;
    record.phase = Phase::kRunning;
    record.visited_at = clock_->Monotonic();
    taken.push_back(record.chain);
  }
  return taken;
}

std::vector<Standing> HeldChains::Visit(const std::vector<LeaseRef>& leases, absl::Duration usual_step) {
  std::vector<Standing> standings;
  const absl::Duration now = clock_->Monotonic();
  MutexLock lock(&mutex_);
  for (const LeaseRef& lease : leases) {
    Record* record = Find(lease);
    if (record == nullptr) {
      standings.push_back({});
      continue;
    }
    record->visited_at = now;
    record->usual_step = usual_step;
    standings.push_back({true, record->deadline.IsGood(now), record->hand_back});
  }
  return standings;
}

void HeldChains::Stepped(const LeaseRef& lease, int64_t step, const ChainStats& stats) {
  MutexLock lock(&mutex_);
  if (Record* record = Find(lease)) {
    record->step = step;
    record->stats = stats;
  }
}

void HeldChains::MarkEnding(const LeaseRef& lease) {
  MutexLock lock(&mutex_);
  if (Record* record = Find(lease)) record->phase = Phase::kEnding;
}

bool HeldChains::Holds(const LeaseRef& lease) const {
  MutexLock lock(&mutex_);
  const auto it = records_.find(lease.chain);
  return it != records_.end() && it->second.chain.grant.lease_epoch == lease.epoch;
}

void HeldChains::End(const LeaseRef& lease) {
  {
    MutexLock lock(&mutex_);
    if (!Erase(lease)) return;
  }
  on_change_();
}

void HeldChains::Release(const LeaseRef& lease, ReleasedChain::Why why, const std::string& reason) {
  {
    MutexLock lock(&mutex_);
    EraseReleased(lease, why, reason);
  }
  on_device_work_();
  on_change_();
}

bool HeldChains::Drop(const LeaseRef& lease) {
  {
    MutexLock lock(&mutex_);
    const auto record = records_.find(lease.chain);
    if (record != records_.end() && record->second.phase == Phase::kRunning && !loop_due_ &&
        record->second.chain.grant.plan->module) {
      loop_due_ = clock_->Monotonic() + CancelledAfter(record->second.usual_step);
    }
    if (!Erase(lease)) return false;
  }
  on_device_work_();
  on_change_();
  return true;
}

std::vector<LeaseRef> HeldChains::DropAll() {
  std::vector<LeaseRef> dropped;
  {
    MutexLock lock(&mutex_);
    for (const auto& [chain, record] : records_) dropped.push_back(record.chain.lease());
    records_.clear();
    ended_.clear();
    released_.clear();
  }
  on_device_work_();
  return dropped;
}

}  // namespace chainfleet

#include "worker/runtime/device_loop.h"

#include <algorithm>
#include <utility>

namespace chainfleet {
namespace {

// A damaged, missing or unreadable object is a fault of the store and may be restored. A module that must not run is a
// fault of the job.
ReleasedChain::Why WhyNotLoaded(const absl::Status& status) {
  if (absl::IsInvalidArgument(status)) return ReleasedChain::Why::kInvalid;
  const bool store = absl::IsDataLoss(status) || absl::IsNotFound(status) || absl::IsInternal(status) ||
                     absl::IsUnknown(status) || absl::IsPermissionDenied(status);
  return store ? ReleasedChain::Why::kStore : ReleasedChain::Why::kFailed;
}

}  // namespace

DeviceLoop::DeviceLoop(Options options, ChainBatchFactory factory, HeldChains* held, DrawUploader* uploader,
                       ChainLoader* loader, ShardServer* shards, RuntimeObserver* observer, const Clock* clock)
    : options_(options),
      factory_(std::move(factory)),
      held_(held),
      uploader_(uploader),
      loader_(loader),
      shards_(shards),
      observer_(observer),
      clock_(clock) {}

bool DeviceLoop::RunOnce() {
  const absl::Duration usual_step = UsualStep();
  bool worked = TakeChains(usual_step);
  for (const auto& [job, runner] : runners_) worked |= runner->Settle(usual_step);
  std::erase_if(runners_, [](const auto& entry) { return entry.second->empty(); });
  const bool served = ServeShard();
  const bool stepped = StepBatch();
  // No chain could use the device, so nothing is owed to chains.
  if (!stepped) PayDebts(absl::InfiniteDuration());
  return worked || served || stepped || shards_->ready();
}

absl::Duration DeviceLoop::IdleWait() const {
  return runners_.empty() && loading_.empty() ? absl::Seconds(1) : absl::Milliseconds(50);
}

absl::Duration DeviceLoop::UsualStep() const {
  absl::Duration median;
  for (const auto& [job, runner] : runners_) median = std::max(median, runner->median_step());
  return median;
}

bool DeviceLoop::TakeChains(absl::Duration usual_step) {
  bool worked = false;
  for (const LeasedChain& chain : held_->TakeNew()) {
    loading_.insert_or_assign(chain.lease(), chain);
    Load(chain);
    worked = true;
  }
  std::vector<LeaseRef> leases;
  for (const auto& [lease, chain] : loading_) leases.push_back(lease);
  const std::vector<Standing> standings = held_->Visit(leases, usual_step);
  for (size_t i = 0; i < leases.size(); ++i) {
    if (standings[i].held && !standings[i].hand_back) continue;
    loading_.erase(leases[i]);
    held_->Release(leases[i], ReleasedChain::Why::kStopped, "handed back before its first step");
    worked = true;
  }
  std::deque<Arrival> arrivals;
  {
    MutexLock lock(&mutex_);
    arrivals.swap(arrivals_);
  }
  for (const Arrival& arrival : arrivals) {
    const auto it = loading_.find(arrival.lease);
    if (it == loading_.end()) continue;
    worked = true;
    const absl::Status& status = arrival.loaded.status();
    if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
      Load(it->second);
      continue;
    }
    if (status.ok()) {
      Admit(*arrival.loaded);
    } else {
      held_->Release(arrival.lease, WhyNotLoaded(status), std::string(status.message()));
    }
    loading_.erase(it);
  }
  return worked;
}

void DeviceLoop::Load(const LeasedChain& chain) {
  loader_->Load(chain, [this, lease = chain.lease()](absl::StatusOr<LoadedChain> loaded) {
    {
      MutexLock lock(&mutex_);
      arrivals_.push_back({lease, std::move(loaded)});
    }
    on_loaded_();
  });
}

void DeviceLoop::Admit(const LoadedChain& loaded) {
  const Grant& grant = loaded.chain.grant;
  auto& runner = runners_[grant.chain.job];
  if (runner == nullptr) {
    runner =
        std::make_unique<ChainBatchRunner>(grant.plan, loaded.inputs, factory_, held_, uploader_, observer_, clock_);
  }
  runner->Join(loaded);
}

bool DeviceLoop::ServeShard() {
  const absl::Duration began = clock_->Monotonic();
  const auto served =
      shards_->ServeOne([this](ShardServer::Kind kind) { return DebtFor(kind) <= absl::ZeroDuration(); });
  if (!served) return false;
  if (!shards_->device_fault().ok()) held_->LoseDevice(std::string(shards_->device_fault().message()));
  const double share = std::clamp(options_.serve_share, 0.01, 1.0);
  DebtFor(*served) += (clock_->Monotonic() - began) * ((1 - share) / share);
  return true;
}

void DeviceLoop::PayDebts(absl::Duration time) {
  for (absl::Duration& debt : debts_) debt = std::max(debt - time, absl::ZeroDuration());
}

bool DeviceLoop::StepBatch() {
  // Jobs take turns, in cyclic order of their ids.
  auto it = runners_.upper_bound(last_stepped_);
  for (size_t i = 0; i < runners_.size(); ++i, ++it) {
    if (it == runners_.end()) it = runners_.begin();
    const absl::Duration began = clock_->Monotonic();
    if (!it->second->StepNext()) continue;
    PayDebts(clock_->Monotonic() - began);
    last_stepped_ = it->first;
    return true;
  }
  return false;
}

}  // namespace chainfleet

#include "server/control/lease_table.h"

#include <algorithm>

#include "core/base/check.h"

namespace chainfleet {
namespace {

using enum LeaseState;

bool Allows(LeaseState from, LeaseState to) {
  switch (from) {
    case kGranting:
      return to == kOffered || to == kRestored;
    case kRegranting:
    case kRestored:
      return to == kHeld;
    case kOffered:
      return to == kDelivered || to == kHeld;
    case kDelivered:
      return to == kHeld;
    case kHeld:
      return to == kStopping;
    case kStopping:
      return false;
  }
  return false;
}

}  // namespace

void LeaseTable::Move(Lease* lease, LeaseState to) {
  CHAINFLEET_CHECK(Allows(lease->state, to))
      << ToString(lease->chain) << " from " << static_cast<int>(lease->state) << " to " << static_cast<int>(to);
  lease->state = to;
  if (to == kHeld) lease->grant.reset();
}

Lease* LeaseTable::Put(Lease lease) {
  if (const Lease* older = Find(lease.chain)) {
    lease.in_company = older->in_company && older->epoch == lease.epoch;
    Remove(lease.chain);
  }
  for (Lease* other : OfWorker(lease.worker)) {
    if (other->incarnation == lease.incarnation) lease.in_company = other->in_company = true;
  }
  Held& held = of_worker_[lease.worker];
  held.chains.insert(lease.chain);
  held.bytes += lease.bytes;
  by_end_.emplace(lease.ends, lease.chain);
  const ChainId chain = lease.chain;
  return &leases_.emplace(chain, std::move(lease)).first->second;
}

const Lease* LeaseTable::Find(const ChainId& chain) const {
  const auto found = leases_.find(chain);
  return found == leases_.end() ? nullptr : &found->second;
}

void LeaseTable::MoveEnd(Lease* lease, absl::Duration ends) {
  by_end_.erase({lease->ends, lease->chain});
  lease->ends = ends;
  by_end_.emplace(ends, lease->chain);
}

void LeaseTable::Extend(Lease* lease, absl::Duration ends) {
  if (ends > lease->ends && !lease->ending) MoveEnd(lease, ends);
}

void LeaseTable::EndAt(Lease* lease, absl::Duration time, LeaseEnd ending) {
  lease->ending = std::move(ending);
  MoveEnd(lease, time);
}

void LeaseTable::SetBytes(Lease* lease, int64_t bytes) {
  of_worker_.at(lease->worker).bytes += bytes - lease->bytes;
  lease->bytes = bytes;
}

void LeaseTable::Remove(const ChainId& chain) {
  const auto found = leases_.find(chain);
  if (found == leases_.end()) return;
  by_end_.erase({found->second.ends, chain});
  const auto held = of_worker_.find(found->second.worker);
  held->second.chains.erase(chain);
  held->second.bytes -= found->second.bytes;
  if (held->second.chains.empty()) of_worker_.erase(held);
  preempted_.erase(chain);
  leases_.erase(found);
}

std::vector<Lease*> LeaseTable::OfWorker(const std::string& worker) {
  std::vector<Lease*> leases;
  if (const auto held = of_worker_.find(worker); held != of_worker_.end()) {
    for (const ChainId& chain : held->second.chains) leases.push_back(&leases_.at(chain));
  }
  return leases;
}

int64_t LeaseTable::BytesOfWorker(const std::string& worker) const {
  const auto held = of_worker_.find(worker);
  return held == of_worker_.end() ? 0 : held->second.bytes;
}

int32_t LeaseTable::NumOfWorker(const std::string& worker, const std::optional<std::string>& tenant) const {
  const auto held = of_worker_.find(worker);
  if (held == of_worker_.end()) return 0;
  const std::set<ChainId>& chains = held->second.chains;
  if (!tenant) return static_cast<int32_t>(chains.size());
  const auto counts = [&](const ChainId& chain) { return leases_.at(chain).tenant == *tenant; };
  return static_cast<int32_t>(std::ranges::count_if(chains, counts));
}

std::vector<Lease*> LeaseTable::TakeEnded(absl::Duration now) {
  std::vector<Lease*> ended;
  while (!by_end_.empty() && by_end_.begin()->first <= now) {
    ended.push_back(&leases_.at(by_end_.extract(by_end_.begin()).value().second));
  }
  return ended;
}

void LeaseTable::LookAgain(const ChainId& chain) {
  if (const Lease* lease = Find(chain)) by_end_.emplace(lease->ends, chain);
}

std::optional<absl::Duration> LeaseTable::NextEnd() const {
  return by_end_.empty() ? std::nullopt : std::optional(by_end_.begin()->first);
}

}  // namespace chainfleet

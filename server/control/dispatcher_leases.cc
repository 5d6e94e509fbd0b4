#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/control/dispatcher_impl.h"
#include "server/control/scheduling_policy.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kRetryFullStore = absl::Seconds(1);
constexpr absl::Duration kForgetWorkerAfter = absl::Minutes(10);

}  // namespace

void Dispatcher::Impl::EndLeases() {
  for (Lease* lease : leases.EndedBy(now)) {
    ChainEntry* chain = jobs.Find(lease->chain);
    if (chain == nullptr) {
      leases.Remove(lease->chain);
    } else if (!chain->in_flight) {
      const LeaseEnd expired{false, false, absl::StrCat("worker ", lease->worker, " did not renew its lease")};
      EndLease(chain, lease->epoch, lease->ending.value_or(expired));
    }
  }
}

void Dispatcher::Impl::EndLease(ChainEntry* chain, int64_t epoch, LeaseEnd ending) {
  const ChainId id = chain->row.id;
  ChangeChain(chain, change::EndLease{id, epoch, ending.ordered, ending.given_back, ending.reason},
              [id, ending, attempts = chain->row.attempts](Impl& impl, const ApplyResult& result) {
                ChainEntry* ended = impl.jobs.Find(id);
                // A worker that died once says nothing against the chain; one that dies again may die of it.
                if (ended != nullptr && ended->row.attempts > attempts && (ending.given_back || attempts > 0)) {
                  impl.DelayNextAttempt(ended);
                }
                Lease* lease = impl.leases.Find(id);
                if (lease == nullptr || result.status.ok()) return;
                if (absl::IsResourceExhausted(result.status)) {
                  impl.leases.EndAt(lease, impl.now + kRetryFullStore, ending);
                } else {
                  impl.leases.Remove(id);
                }
              });
}

void Dispatcher::Impl::DelayNextAttempt(ChainEntry* chain) {
  const absl::Duration delay = limits::kAttemptDelay * (int64_t{1} << std::min(chain->row.attempts - 1, 16));
  chain->not_before = now + std::min(delay, limits::kMaxAttemptDelay);
}

void Dispatcher::Impl::RunPolicy() {
  policy_due = false;
  next_attempt.reset();
  next_policy = now + limits::kPolicyInterval;
  if (jobs.queue().empty()) return;
  if (now < fleet_settles) {
    policy_due = true;
    next_policy = fleet_settles;
    return;
  }
  fleet.ForgetSilent(now - kForgetWorkerAfter);
  std::vector<FreeSlots> free;
  int32_t total_free = 0;
  for (const auto& [id, worker] : fleet.workers()) {
    const int32_t slots = worker.chain_slots - leases.NumOfWorker(id);
    if (worker.draining || slots <= 0 || worker.last_sync + options.lease_ttl < now) continue;
    free.push_back({id, slots});
    total_free += slots;
  }
  total_free = std::min<int32_t>(total_free, limits::kStateWriterBatch);
  std::vector<QueuedJob> queue;
  int32_t queued = 0;
  for (const auto& [sequence, job] : jobs.queue()) {
    if (queued >= total_free) break;
    QueuedJob& entry = queue.emplace_back(QueuedJob{job->row.id, {}, {}});
    for (const int32_t index : job->pending) {
      const ChainEntry& chain = job->chains[static_cast<size_t>(index)];
      if (chain.not_before > now) {
        next_attempt = std::min(next_attempt.value_or(chain.not_before), chain.not_before);
      } else if (!chain.in_flight) {
        entry.chains.push_back({index, chain.shunned_worker});
      }
    }
    for (const ChainEntry& chain : job->chains) {
      if (const Lease* lease = leases.Find(chain.row.id)) ++entry.held[lease->worker];
    }
    queued += static_cast<int32_t>(entry.chains.size());
  }
  const std::vector<Assignment> assignments = AssignByAge(queue, free, limits::kStateWriterBatch);
  policy_due = assignments.size() == static_cast<size_t>(limits::kStateWriterBatch);
  for (const Assignment& a : assignments) {
    ChainEntry* chain = jobs.Find(a.chain);
    GrantLease(chain, chain->row.lease_epoch + 1, *fleet.Find(a.worker), false);
  }
}

void Dispatcher::Impl::GrantLease(ChainEntry* chain, int64_t epoch, const WorkerEntry& worker, bool listed) {
  const ChainId id = chain->row.id;
  Lease lease{id, epoch, worker.id, worker.incarnation, LeaseEndsAfter(now)};
  lease.listed = listed;
  leases.Put(std::move(lease));
  ChangeChain(chain, change::GrantLease{id, epoch, worker.id, worker.incarnation},
              [id](Impl& impl, const ApplyResult& result) { impl.OnGranted(id, result); });
}

void Dispatcher::Impl::OnGrantRefused(Lease* lease, const absl::Status& why) {
  const bool full = absl::IsResourceExhausted(why);
  policy_due = true;
  if (full) next_policy = now + kRetryFullStore;
  if (jobs.Find(lease->chain)->row.state != ChainState::kLeased) return leases.Remove(lease->chain);
  // A repeat: the lease stands, but its grant is not to be seen any more.
  lease->confirmed = true;
  if (!full) leases.EndAt(lease, now, {true, false, "its job was stopped before the grant was seen"});
}

void Dispatcher::Impl::OnGranted(const ChainId& id, const ApplyResult& result) {
  Lease* lease = leases.Find(id);
  const JobEntry* job = jobs.Find(id.job);
  if (lease == nullptr || job == nullptr) return;
  stirred.insert(lease->worker);
  if (!result.status.ok()) return OnGrantRefused(lease, result.status);
  lease->confirmed = true;
  if (!lease->listed) {
    const ChainRow& row = result.chains.front();
    const ChainProgress progress{row.step, row.num_draws, row.last_digest, result.resume_point};
    lease->grant = std::make_shared<const Grant>(Grant{id, row.lease_epoch, job->row.plan, progress});
  }
  leases.Extend(lease, LeaseEndsAfter(now));
  const WorkerEntry* worker = fleet.Find(lease->worker);
  if (!lease->ending && (worker == nullptr || worker->incarnation != lease->incarnation)) {
    leases.EndAt(lease, now, {true, false, "its worker restarted before it saw the grant"});
  }
}

}  // namespace chainfleet

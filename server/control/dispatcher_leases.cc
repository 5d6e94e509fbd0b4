#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "server/control/dispatcher_impl.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kRetryFullStore = absl::Seconds(1);

change::EndLease::Crash CrashOf(const LeaseEnd& ending, const Lease* lease) {
  using Crash = change::EndLease::Crash;
  if (!ending.crash() || lease == nullptr) return Crash::kNone;
  return lease->in_company ? Crash::kInCompany : Crash::kAlone;
}

LogLevel LevelOf(LeaseOutcome outcome) {
  return outcome == LeaseOutcome::kOrdered ? LogLevel::kInfo : LogLevel::kWarning;
}

LeaseEnd WaitsForTheStore(const absl::Status& why) {
  return {.outcome = LeaseOutcome::kGivenBack,
          .reason = absl::StrCat("the chain waits for the store: ", why.message()),
          .store_fault = true};
}

}  // namespace

// The only place that applies a decision.
void Dispatcher::Core::RunPolicy() {
  SchedulingPlan plan = Decide(*this, now, options.lease_ttl);
  next_attempt = plan.next_attempt;
  policy_due = plan.again.has_value();
  next_policy = plan.again.value_or(now + limits::kPolicyInterval);
  turns = std::move(plan.turns);
  stirred.insert(plan.cleared.begin(), plan.cleared.end());
  for (const auto& [id, why] : plan.retirements) {
    ChangeChain(jobs.Find(id), change::RetireChain{id, why}, [](Core& core, const ApplyResult& result) {
      core.policy_due = core.policy_due || !result.status.ok();
    });
  }
  for (const Assignment& grant : plan.grants) {
    ChainEntry* chain = jobs.Find(grant.chain);
    GrantLease(chain, chain->row.lease_epoch + 1, *fleet.Find(grant.worker), false);
  }
  for (const ChainId& id : plan.yields) {
    if (!leases.preempted().contains(id)) stirred.insert(leases.Find(id)->worker);
  }
  leases.SetPreempted(std::move(plan.yields));
}

void Dispatcher::Core::EndLeases() {
  for (Lease* lease : leases.TakeEnded(now)) {
    ChainEntry* chain = jobs.Find(lease->chain);
    if (chain == nullptr) {
      RemoveLease(lease->chain);
    } else if (!chain->in_flight) {
      const LeaseEnd expired = LostWith(*lease, absl::StrCat("worker ", lease->worker, " did not renew its lease"));
      EndLease(chain, lease->epoch, lease->ending.value_or(expired));
    }
  }
}

// A process that never saw the grant did not crash because of the chain.
LeaseEnd Dispatcher::Core::LostWith(const Lease& lease, std::string reason) {
  return {.outcome = lease.unseen() ? LeaseOutcome::kOrdered : LeaseOutcome::kLost, .reason = std::move(reason)};
}

void Dispatcher::Core::EndLease(ChainEntry* chain, int64_t epoch, LeaseEnd ending) {
  const ChainId id = chain->row.id;
  const auto crash = CrashOf(ending, leases.Find(id));
  const bool alone = crash == change::EndLease::Crash::kAlone && chain->row.suspect();
  const std::string reason = absl::StrCat(ending.reason, alone ? ", with this chain alone on it" : "");
  const bool free = ending.outcome == LeaseOutcome::kOrdered || ending.store_fault;
  const bool hopeless = ending.outcome == LeaseOutcome::kHopeless;
  ChangeChain(chain, change::EndLease{id, epoch, free, ending.given_back, reason, crash, hopeless},
              [id, ending, before = chain->row](Core& core, const ApplyResult& result) {
                if (result.status.ok()) core.OnAttemptEnded(id, before, ending);
                Lease* lease = core.leases.Find(id);
                if (lease == nullptr || result.status.ok()) return;
                if (absl::IsResourceExhausted(result.status)) {
                  core.leases.EndAt(lease, core.now + kRetryFullStore, ending);
                } else {
                  core.RemoveLease(id);
                }
              });
}

void Dispatcher::Core::OnAttemptEnded(const ChainId& id, const ChainRow& before, const LeaseEnd& ending) {
  observer->OnLeaseEnd(ending.outcome);
  Note(LevelOf(ending.outcome), "lease ended", before,
       {{"cause", ToString(ending.outcome)}, {"reason", ending.reason}});
  ChainEntry* ended = jobs.Find(id);
  if (ended == nullptr) return;
  if (ending.store_fault) ended->not_before = now + kStoreFaultDelay;
  // One death of a worker says nothing about the chain; the chain may be the cause of a second one.
  if (ended->row.attempts > before.attempts && (ending.given_back || before.attempts > 0)) DelayNextAttempt(ended);
  if (ended->row.suspect() && !before.suspect() && ended->row.state == ChainState::kPending) {
    Note(LogLevel::kWarning, "workers were lost with this chain: it runs alone until it commits", before);
  }
}

void Dispatcher::Core::DelayNextAttempt(ChainEntry* chain) {
  const absl::Duration delay = limits::kAttemptDelay * (int64_t{1} << std::min(chain->row.attempts - 1, 16));
  chain->not_before = now + std::min(delay, limits::kMaxAttemptDelay);
}

void Dispatcher::Core::GrantLease(ChainEntry* chain, int64_t epoch, const WorkerEntry& worker, bool listed) {
  const ChainId id = chain->row.id;
  Lease lease{id, epoch, worker.id, worker.incarnation, LeaseEndsAfter(now)};
  if (listed) lease.state = LeaseState::kRegranting;
  const JobEntry& job = *jobs.Find(id.job);
  lease.bytes = job.chain_bytes();
  lease.tenant = job.row.tenant;
  lease.devices = worker.devices_per_slot();
  PutLease(std::move(lease));
  const bool is_new = epoch > chain->row.lease_epoch;
  const auto trust = std::make_shared<absl::Status>();
  const auto look = [trust, tenant = job.row.tenant, check = options.check_resume_point](const ApplyResult& result) {
    if (check && result.status.ok()) *trust = check(tenant, result);
  };
  const auto then = [id, is_new, trust, since = chain->waits_since](Core& core, const ApplyResult& result) {
    if (is_new && result.status.ok()) core.OnNewLease(result.chains.front(), core.now - since);
    core.OnGranted(id, result, *trust);
  };
  ChangeChain(chain, change::GrantLease{id, epoch, worker.id, worker.incarnation}, then, look);
}

void Dispatcher::Core::OnNewLease(const ChainRow& row, absl::Duration waited) {
  observer->OnGrant(waited);
  Note(LogLevel::kInfo, "lease granted", row, {{"step", row.step}, {"waited_s", absl::ToDoubleSeconds(waited)}});
}

void Dispatcher::Core::PutLease(Lease lease) {
  if (const Lease* older = leases.Find(lease.chain)) shares.Hold(older->tenant, -older->devices, now);
  shares.Hold(lease.tenant, lease.devices, now);
  leases.Put(std::move(lease));
}

void Dispatcher::Core::RemoveLease(const ChainId& chain) {
  if (const Lease* lease = leases.Find(chain)) shares.Hold(lease->tenant, -lease->devices, now);
  leases.Remove(chain);
}

void Dispatcher::Core::OnGrantRefused(Lease* lease, const absl::Status& why) {
  const bool full = absl::IsResourceExhausted(why);
  policy_due = true;
  if (full) next_policy = now + kRetryFullStore;
  if (jobs.Find(lease->chain)->row.state != ChainState::kLeased) return RemoveLease(lease->chain);
  // A repeated grant: the lease is in the store, but its grant must not be sent again.
  LeaseTable::Move(lease, lease->state == LeaseState::kGranting ? LeaseState::kRestored : LeaseState::kHeld);
  if (!full) leases.EndAt(lease, now, Ordered("its job was stopped before the grant was seen"));
}

void Dispatcher::Core::OnGranted(const ChainId& id, const ApplyResult& result, const absl::Status& trust) {
  Lease* lease = leases.Find(id);
  const JobEntry* job = jobs.Find(id.job);
  if (lease == nullptr || job == nullptr) return;
  stirred.insert(lease->worker);
  if (!result.status.ok()) return OnGrantRefused(lease, result.status);
  const bool regrant = lease->state == LeaseState::kRegranting;
  LeaseTable::Move(lease, regrant ? LeaseState::kHeld : LeaseState::kOffered);
  if (!regrant) {
    const ChainRow& row = result.chains.front();
    absl::Status intact = CheckResumePoint(row.step, result.resume_point, row.resume_sha256);
    if (intact.ok()) intact = trust;
    if (!intact.ok()) return leases.EndAt(lease, now, WaitsForTheStore(intact));
    ChainProgress progress{row.step, row.num_draws, row.last_digest, result.resume_point};
    if (progress.resume_point) progress.resume_point->proof.reset();  // a worker has no authority to check it by
    lease->grant = std::make_shared<const Grant>(Grant{id, row.lease_epoch, job->row.plan, std::move(progress)});
  }
  leases.Extend(lease, LeaseEndsAfter(now));
  const WorkerEntry* worker = fleet.Find(lease->worker);
  if (!lease->ending && (worker == nullptr || worker->incarnation != lease->incarnation)) {
    leases.EndAt(lease, now, Ordered("its worker restarted before it saw the grant"));
  }
}

}  // namespace chainfleet

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/limits.h"
#include "core/domain/no_such.h"
#include "core/domain/wire_bytes.h"
#include "server/control/commit_check.h"
#include "server/control/dispatcher_impl.h"
#include "server/control/page_token.h"
#include "server/control/protocol_version.h"

namespace chainfleet {
namespace {

constexpr size_t kMaxWaitingCommits = 64;  // commits of one chain

absl::Status CheckForm(const ProgressCommit& commit) {
  const auto bad = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("commit of chain ", ToString(commit.chain), ": ", what));
  };
  if (commit.segment) CHAINFLEET_RETURN_IF_ERROR(CheckSegment(*commit.segment));
  if (static_cast<int64_t>(commit.resume_point.inline_bytes.size()) > limits::kInlineResumePointBytes) {
    return bad("the resume point is too big to travel inline, put it as an object");
  }
  if (commit.ends_as == ChainState::kLeased || commit.ends_as == ChainState::kCancelled) {
    return bad(absl::StrCat("a worker cannot end a chain as ", ToString(*commit.ends_as)));
  }
  return absl::OkStatus();
}

// Returns true if the commit's lease is current, so that the store would only check its position in the chain.
bool HasItsLease(const ProgressCommit& commit, const ChainRow& row) {
  return HeldBy(row, commit.lease_epoch, commit.author.worker, commit.incarnation) && !IsFinal(row.state);
}

CommitFigures FiguresOf(const ProgressCommit& commit) {
  CommitFigures figures;
  if (commit.segment) {
    figures.draws = static_cast<int64_t>(commit.segment->steps.size());
    figures.bytes = commit.segment->object.size_bytes;
  }
  const ResumePoint& point = commit.resume_point;
  figures.bytes += point.object ? point.object->size_bytes : static_cast<int64_t>(point.inline_bytes.size());
  return figures;
}

// Returns the bytes of the grant's message; a reply holds the plan of a job once.
int64_t SizeOf(const Grant& grant, bool plan_is_told) {
  const auto& point = grant.progress.resume_point;
  return limits::kKiB + (point ? static_cast<int64_t>(point->inline_bytes.size()) : 0) +
         (plan_is_told ? 0 : WireBytes(*grant.plan));
}

std::string ToString(ReleasedChain::Why why) {
  switch (why) {
    case ReleasedChain::Why::kRefused:
      return "refused the chain";
    case ReleasedChain::Why::kFailed:
      return "failed";
    case ReleasedChain::Why::kHung:
      return "hung";
    case ReleasedChain::Why::kStopped:
      return "stopped";
    case ReleasedChain::Why::kInvalid:
      return "rejected the job";
    case ReleasedChain::Why::kStore:
      return "waits for the store";
  }
  return "gave the chain back";
}

// A hung device stops every chain of its process, as a crash does.
LeaseOutcome OutcomeOf(ReleasedChain::Why why, bool told) {
  switch (why) {
    case ReleasedChain::Why::kStopped:
      return told ? LeaseOutcome::kOrdered : LeaseOutcome::kGivenBack;
    case ReleasedChain::Why::kHung:
      return LeaseOutcome::kHung;
    case ReleasedChain::Why::kInvalid:
      return LeaseOutcome::kHopeless;
    default:
      return LeaseOutcome::kGivenBack;
  }
}

// Records that the worker lists the chain.
void Hold(Lease* lease) {
  if (lease->state < LeaseState::kHeld) LeaseTable::Move(lease, LeaseState::kHeld);
}

}  // namespace

void Dispatcher::Synchronize(const SynchronizeRequest& request, Reply<SynchronizeReply> done) {
  Entered core(impl_.get());
  absl::Status status = CheckProtocolVersion(request.worker, request.protocol_version);
  if (status.ok() && (request.worker.empty() || request.incarnation.empty())) {
    status = absl::InvalidArgumentError("a worker needs an id and an incarnation");
  }
  if (!status.ok()) return core->Say<SynchronizeReply>(done, status);
  const absl::StatusOr<WorkerEntry*> seen = core->fleet.See(request, core->now, core->options.lease_ttl);
  if (!seen.ok()) return core->Say<SynchronizeReply>(done, seen.status());
  const WorkerEntry& worker = **seen;
  if (const auto older = core->TakeHeld(worker.id)) {
    core->Say<SynchronizeReply>(older->done,
                                WithReason(absl::AbortedError("a newer call of this worker came"), "STALE_SEQ"));
  }
  for (Lease* lease : core->leases.OfWorker(worker.id)) {
    if (lease->incarnation != worker.incarnation && !lease->ending) {
      core->leases.EndAt(lease, core->now, Core::LostWith(*lease, absl::StrCat("worker ", worker.id, " restarted")));
    }
  }
  core->BoundDrain(worker);
  HeldCall call{std::move(done), request.chains, core->now, request.draining};
  call.foreign = !request.store_incarnation.empty() && request.store_incarnation != core->store->incarnation();
  if (!call.foreign) {
    for (const ReleasedChain& released : request.released) core->Release(released, worker);
    for (const HeldChain& chain : request.chains) call.pressing |= core->Renew(chain, worker);
    std::set<std::string> told;
    for (const HeldChain& chain : request.chains) told.insert(chain.chain.job);
    for (const std::string& id : told) {
      JobEntry* const job = core->jobs.Find(id);
      if (job != nullptr && worker.admission.Admits(job->row.tenant)) core->Bump(job);
    }
  }
  core->EndLeases();
  core->RestoreUnseenGrants(worker);
  core->held_by_age.emplace(call.since, worker.id);
  core->held.emplace(worker.id, std::move(call));
  core->stirred.insert(worker.id);
  core->policy_due = core->policy_due || core->jobs.anything_waits();
}

bool Dispatcher::Core::MustStop(const ChainId& chain, const WorkerEntry& worker) {
  const JobEntry& job = *jobs.Find(chain.job);
  return worker.draining || job.row.intent != JobIntent::kRun || turns.Displaces(worker.id, chain) ||
         job.HasEnough(chain.index) || leases.preempted().contains(chain);
}

Dispatcher::Core::Verdict Dispatcher::Core::Judge(const HeldChain& held_chain, const WorkerEntry& worker) {
  const ChainEntry* chain = jobs.Find(held_chain.chain);
  if (chain == nullptr || chain->row.lease_epoch != held_chain.lease_epoch) return Verdict::kFenced;
  if (!worker.admission.Admits(jobs.Find(held_chain.chain.job)->row.tenant)) return Verdict::kFenced;
  const ChainRow& row = chain->row;
  if (row.state == ChainState::kCancelled) return Verdict::kDrop;
  // The worker gave the chain back and has not read the reply yet, or the chain was retired after its lease had ended.
  if (row.worker.empty()) return IsFinal(row.state) ? Verdict::kDrop : Verdict::kNothing;
  if (row.worker != worker.id || row.incarnation != worker.incarnation) return Verdict::kFenced;
  // The worker ended the chain and has not read the reply yet.
  if (IsFinal(row.state)) return Verdict::kNothing;
  const bool stop = MustStop(row.id, worker);
  const Lease* lease = leases.Find(row.id);
  if (row.state == ChainState::kLeased) {
    if (lease == nullptr || !lease->committed() || lease->ending) return Verdict::kNothing;
    return stop ? Verdict::kKeepAndHandBack : Verdict::kKeep;
  }
  if (chain->in_flight) return Verdict::kNothing;
  // A suspect runs alone on a worker, so this worker must first commit its steps and hand the chain back.
  return stop || row.suspect() ? Verdict::kHandBack : Verdict::kLeaseAgain;
}

bool Dispatcher::Core::Renew(const HeldChain& held_chain, const WorkerEntry& worker) {
  const Verdict verdict = Judge(held_chain, worker);
  if (verdict == Verdict::kFenced || verdict == Verdict::kNothing || verdict == Verdict::kDrop) return false;
  ChainEntry* chain = jobs.Find(held_chain.chain);
  chain->stats = held_chain.stats;
  chain->reported_step = std::max(chain->row.step, held_chain.step);
  JobEntry& job = *jobs.Find(held_chain.chain.job);
  const int64_t measured = std::min(held_chain.stats.device_bytes, limits::kMaxChainBytes);
  if (measured > 0) job.measured_bytes = measured;
  if (verdict == Verdict::kLeaseAgain) GrantLease(chain, chain->row.lease_epoch, worker, true);
  if (verdict == Verdict::kLeaseAgain || verdict == Verdict::kHandBack) return true;
  Lease* lease = leases.Find(held_chain.chain);
  // Calls were lost, or this server does not know the time of the worker's last answer.
  const bool pressing = lease->ends + options.sync_interval < LeaseEndsAfter(now) || !lease->seen();
  Hold(lease);
  if (measured > 0) leases.SetBytes(lease, std::max(job.estimated_bytes, measured));
  if (lease->devices == 0) shares.Hold(lease->tenant, lease->devices = worker.devices_per_slot(), now);
  leases.Extend(lease, LeaseEndsAfter(now));
  return pressing;
}

void Dispatcher::Core::Release(const ReleasedChain& released, const WorkerEntry& worker) {
  ChainEntry* chain = jobs.Find(released.chain);
  if (chain == nullptr || chain->row.lease_epoch != released.lease_epoch || IsFinal(chain->row.state)) return;
  if (chain->row.worker != worker.id || chain->row.incarnation != worker.incarnation) return;
  Lease* lease = leases.Find(released.chain);
  const bool told = MustStop(released.chain, worker) || (lease != nullptr && lease->stopping());
  const LeaseEnd ending{.outcome = OutcomeOf(released.why, told),
                        .reason = absl::StrCat("worker ", worker.id, " ", ToString(released.why),
                                               released.reason.empty() ? "" : ": ", released.reason),
                        .given_back = true,
                        .store_fault = released.why == ReleasedChain::Why::kStore};
  if (ending.outcome != LeaseOutcome::kOrdered && !ending.store_fault) chain->avoided_worker = worker.id;
  if (lease != nullptr) {
    leases.EndAt(lease, now, ending);
  } else if (!chain->in_flight) {
    EndLease(chain, released.lease_epoch, ending);
  }
}

// After a restart of the server only the store has the resume point of an unseen grant. Granting the same epoch again
// reads the resume point.
void Dispatcher::Core::RestoreUnseenGrants(const WorkerEntry& worker) {
  for (const Lease* lease : leases.OfWorker(worker.id)) {
    ChainEntry* chain = jobs.Find(lease->chain);
    if (chain == nullptr || chain->in_flight || lease->incarnation != worker.incarnation) continue;
    if (lease->state != LeaseState::kRestored || lease->ending) continue;
    GrantLease(chain, lease->epoch, worker, false);
  }
}

std::optional<HeldCall> Dispatcher::Core::TakeHeld(const std::string& worker) {
  const auto found = held.find(worker);
  if (found == held.end()) return std::nullopt;
  HeldCall call = std::move(found->second);
  held.erase(found);
  held_by_age.erase({call.since, worker});
  return call;
}

void Dispatcher::Core::AnswerIfDue(const std::string& id) {
  const auto found = held.find(id);
  if (found == held.end()) return;
  const WorkerEntry* worker = fleet.Find(id);
  CHAINFLEET_CHECK(worker != nullptr) << id;
  const HeldCall& call = found->second;
  if (now < call.since + LongestHold() && MayHold(call, *worker)) return;
  Say<SynchronizeReply>(call.done, MakeReply(*worker, call));
  TakeHeld(id);
}

bool Dispatcher::Core::MayHold(const HeldCall& call, const WorkerEntry& worker) {
  bool has_grant = false;
  for (const Lease* lease : leases.OfWorker(worker.id)) {
    if (lease->incarnation != worker.incarnation) continue;
    if (!lease->committed()) return true;  // all grants of one decision leave in one reply
    has_grant = has_grant || (lease->grant != nullptr && !lease->ending);
  }
  if (has_grant || call.pressing || (worker.told_to_drain && !call.draining)) return false;
  return call.chains.empty() || (HasRoom(worker) && !HasOrders(call, worker));
}

bool Dispatcher::Core::HasRoom(const WorkerEntry& worker) const {
  return worker.IsUsable(now, options.lease_ttl) && leases.NumOfWorker(worker.id) < worker.chain_slots &&
         !turns.Keeps(worker.id);
}

bool Dispatcher::Core::HasOrders(const HeldCall& call, const WorkerEntry& worker) {
  return call.foreign || std::ranges::any_of(call.chains, [&](const HeldChain& chain) {
           const Verdict verdict = Judge(chain, worker);
           return verdict != Verdict::kKeep && verdict != Verdict::kNothing;
         });
}

void Dispatcher::Core::OrderBack(Lease* lease) {
  if (lease->stopping()) return;
  Hold(lease);
  LeaseTable::Move(lease, LeaseState::kStopping);
  if (!leases.preempted().contains(lease->chain)) return;
  observer->OnPreempt(lease->chain);
  Note(LogLevel::kInfo, "lease preempted", jobs.Find(lease->chain)->row,
       {{"reason", "a chain of a higher tier waits for its place"}});
}

bool Dispatcher::Core::AddGrants(const WorkerEntry& worker, SynchronizeReply* reply) {
  PageRoom room;
  std::set<const JobPlan*> plans;
  for (Lease* lease : leases.OfWorker(worker.id)) {
    if (lease->grant == nullptr || lease->ending) continue;
    if (MustStop(lease->chain, worker)) {
      leases.EndAt(lease, now, Ordered("its job or worker was stopped before the grant was seen", /*given_back=*/true));
      continue;
    }
    if (!room.Take(SizeOf(*lease->grant, plans.contains(lease->grant->plan.get())))) return false;
    plans.insert(lease->grant->plan.get());
    reply->grants.push_back(*lease->grant);
    // The worker counts its term from this request, which may be younger than the grant. Repeats add nothing.
    if (lease->state == LeaseState::kDelivered) continue;
    LeaseTable::Move(lease, LeaseState::kDelivered);
    leases.Extend(lease, LeaseEndsAfter(now));
  }
  return true;
}

SynchronizeReply Dispatcher::Core::MakeReply(const WorkerEntry& worker, const HeldCall& call) {
  SynchronizeReply reply;
  reply.generation = store->generation();
  reply.store_incarnation = store->incarnation();
  reply.lease_ttl = options.lease_ttl;
  for (const HeldChain& chain : call.chains) {
    const auto stop = [&](StopOrder::How how) { reply.stop.push_back({chain.chain, chain.lease_epoch, how}); };
    switch (call.foreign ? Verdict::kFenced : Judge(chain, worker)) {
      case Verdict::kNothing:
      case Verdict::kLeaseAgain:
        break;
      case Verdict::kKeep:
        reply.keep.push_back(chain.chain);
        break;
      case Verdict::kKeepAndHandBack:
        OrderBack(leases.Find(chain.chain));
        reply.keep.push_back(chain.chain);
        stop(StopOrder::How::kHandBack);
        break;
      case Verdict::kHandBack:
        stop(StopOrder::How::kHandBack);
        break;
      case Verdict::kDrop:
        stop(StopOrder::How::kDrop);
        break;
      case Verdict::kFenced:
        stop(StopOrder::How::kFenced);
        break;
    }
  }
  const bool all_granted = AddGrants(worker, &reply);
  // A worker without news whose call may be held calls again at once; after news it waits, as news may be repeated.
  const bool nothing_new = reply.grants.empty() && reply.stop.empty() && reply.keep.size() == call.chains.size();
  reply.drain = worker.told_to_drain;
  const bool drains = !reply.drain || call.draining;  // a worker older than this order never drains
  const bool listens = nothing_new && drains && (call.chains.empty() || HasRoom(worker));
  reply.next_sync_in = listens || !all_granted ? absl::ZeroDuration() : options.sync_interval;
  return reply;
}

void Dispatcher::CommitProgress(const ProgressCommit& commit, Reply<CommitReply> done, const Admission& caller) {
  const absl::Status form = CheckForm(commit);
  const absl::Status content = form.ok() ? CheckContent(commit, impl_->store->incarnation()) : form;  // may hash
  Entered core(impl_.get());
  if (!form.ok()) return core->Say<CommitReply>(done, form);
  core->Commit(commit, content, caller, std::move(done));
}

void Dispatcher::Core::Tell(CommitFigures figures, absl::Duration began, const ApplyResult& result) {
  figures.took = now - began;
  figures.replayed = result.replayed;
  if (!result.status.ok()) figures.refused = ReasonOf(result.status);
  if (!result.status.ok() && figures.refused.empty()) figures.refused = "OTHER";
  observer->OnCommit(figures);
}

void Dispatcher::Core::Commit(ProgressCommit commit, const absl::Status& content, const Admission& caller,
                              Reply<CommitReply> done) {
  const ChainId id = commit.chain;
  const std::string& store_of = commit.store_incarnation;
  if (!store_of.empty() && store_of != store->incarnation()) {
    return Say<CommitReply>(done, WithReason(absl::FailedPreconditionError(absl::StrCat(
                                                 "chain ", chainfleet::ToString(id),
                                                 " was granted before the store was put back or replaced, drop it")),
                                             "LEASE_FENCED"));
  }
  ChainEntry* chain = jobs.Find(id);
  // A worker of one tenant must not learn which chains others have, nor write to the events of their jobs.
  if (chain == nullptr || !caller.Admits(jobs.Find(id.job)->row.tenant)) {
    return Say<CommitReply>(done, WithReason(absl::FailedPreconditionError(absl::StrCat(
                                                 "chain ", chainfleet::ToString(id), " does not exist, drop it")),
                                             "LEASE_FENCED"));
  }
  if (chain->in_flight) {
    // The holder of the lease finds places that others' commits, which can only be replays or forged, may not take.
    auto& queue = waiting[id];
    if (queue.size() >= (HasItsLease(commit, chain->row) ? kMaxWaitingCommits : kMaxWaitingCommits / 2)) {
      return Say<CommitReply>(done,
                              BoundReached("waiting_commits", "too many commits of one chain wait", "OVERLOADED"));
    }
    queue.push_back(
        [this, commit = std::move(commit), content, caller, done] { Commit(commit, content, caller, done); });
    return;
  }
  // No change is in flight, so the row equals the store's. A commit without its lease writes nothing: the store returns
  // the reason, or that the commit is a replay.
  ChainRow by{.id = id, .lease_epoch = commit.lease_epoch, .worker = commit.author.worker};
  if (!content.ok() && HasItsLease(commit, chain->row)) {
    NoteCommit(by, content);
    return Say<CommitReply>(done, content);
  }
  const ChainStats stats = commit.stats;
  CommitFigures figures = FiguresOf(commit);
  ChangeChain(chain, std::move(commit),
              [id, by, stats, figures, began = now, done](Core& core, const ApplyResult& result) {
                core.Tell(figures, began, result);
                core.NoteCommit(by, result.status);
                if (!result.status.ok()) return core.Say<CommitReply>(done, result.status);
                if (ChainEntry* entry = core.jobs.Find(id); entry != nullptr && !result.replayed) entry->stats = stats;
                core.Say<CommitReply>(done, CommitReply{result.replayed});
              });
}

std::vector<WorkerView> Dispatcher::Core::Workers(const std::optional<std::string>& tenant) const {
  std::vector<WorkerView> views;
  for (const auto& [id, worker] : fleet.workers()) {
    if (tenant && !worker.admission.Admits(*tenant)) continue;
    views.push_back({id, worker.host, worker.device, worker.chain_slots, leases.NumOfWorker(id, tenant),
                     now - worker.last_sync, worker.draining, worker.metrics_address});
  }
  return views;
}

std::vector<WorkerView> Dispatcher::ListWorkers(const std::optional<std::string>& tenant) {
  Entered core(impl_.get());
  return core->Workers(tenant);
}

void Dispatcher::Core::BoundDrain(const WorkerEntry& worker) {
  const absl::Duration ends = worker.drain_ends.value_or(absl::InfiniteDuration());
  // A deadline in the past would re-arm the timer on every Synchronize of a worker that has not drained.
  if (ends <= now) return EndDrain(worker.id);
  if (ends < absl::InfiniteDuration()) drains_due.emplace(ends, worker.id);
}

// The worker may continue its chains in memory. Their commits are rejected from the next grant on, as after any expiry.
void Dispatcher::Core::EndDrain(const std::string& id) {
  const WorkerEntry* worker = fleet.Find(id);
  if (worker == nullptr || !worker->drain_ends || *worker->drain_ends > now) return;
  for (Lease* lease : leases.OfWorker(id)) {
    if (lease->ending) continue;
    leases.EndAt(lease, now, Ordered(absl::StrCat("worker ", id, " drains and did not hand the chain back in time")));
  }
}

absl::StatusOr<WorkerView> Dispatcher::DrainWorker(const std::string& worker, absl::Duration limit,
                                                   const std::optional<std::string>& tenant) {
  Entered core(impl_.get());
  if (limit < absl::ZeroDuration()) {
    return absl::InvalidArgumentError("deadline_seconds: has to be 0 or more, for a time from now on");
  }
  const WorkerEntry* const entry = core->fleet.Find(worker);
  const bool is_of_others = tenant && entry != nullptr && entry->admission.tenant != *tenant;
  if (is_of_others || !core->fleet.Drain(worker, core->now + limit)) return NoSuch("worker", worker);
  core->BoundDrain(*core->fleet.Find(worker));
  core->EndLeases();
  core->stirred.insert(worker);
  for (WorkerView& view : core->Workers()) {
    if (view.id == worker) return std::move(view);
  }
  return absl::InternalError("a worker that drains is not listed");
}

// Reads every waiting chain; a chain whose waits_since was never set has not waited.
absl::Duration Dispatcher::Core::OldestWait() const {
  absl::Duration oldest;
  const auto look_at = [&](const JobEntry& job, const std::set<int32_t>& indices) {
    for (const int32_t index : indices) {
      oldest = std::max(oldest, now - job.chains[static_cast<size_t>(index)].waits_since);
    }
  };
  for (const auto& [priority, tenants] : jobs.queue()) {
    for (const auto& [tenant, by_age] : tenants) {
      for (const auto& [sequence, job] : by_age) look_at(*job, job->pending);
    }
  }
  for (const auto& [place, job] : jobs.suspect_queue()) look_at(*job, job->suspects);
  return oldest;
}

FleetDemand Dispatcher::Demand() {
  Entered core(impl_.get());
  FleetDemand demand{.workers = core->Workers()};
  std::erase_if(demand.workers, [&core](const WorkerView& w) { return w.since_sync > core->options.lease_ttl; });
  for (const auto& [priority, tenants] : core->jobs.queue()) {
    for (const auto& [tenant, by_age] : tenants) {
      for (const auto& [sequence, job] : by_age) demand.waiting += static_cast<int64_t>(job->pending.size());
    }
  }
  for (const auto& [sequence, job] : core->jobs.suspect_queue()) {
    demand.waiting += static_cast<int64_t>(job->suspects.size());
  }
  if (core->waiting_since) demand.waiting_for = core->now - *core->waiting_since;
  demand.oldest_wait = core->OldestWait();
  return demand;
}

}  // namespace chainfleet

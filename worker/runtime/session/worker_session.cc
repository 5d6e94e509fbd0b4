#include "worker/runtime/session/worker_session.h"

#include <algorithm>
#include <utility>

#include "core/base/log.h"

namespace chainfleet {
namespace {

// If a call has no answer after this time, the server holds it, and news is sent in a second call.
constexpr absl::Duration kHeldAfter = absl::Milliseconds(50);
constexpr int kMaxCallsInFlight = 2;

// A broken or hostile next_sync_in must neither flood the server nor starve the leases.
absl::Duration Bounded(absl::Duration interval) {
  return std::clamp(interval, absl::Milliseconds(20), absl::Duration(limits::kLeaseTtl));
}

// True if no retry can succeed: the worker ends.
bool IsRefusal(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  return reason == "VERSION_MISMATCH" || reason == "TOKEN_USED_UP" || absl::IsUnauthenticated(status) ||
         absl::IsPermissionDenied(status) || absl::IsUnimplemented(status) || absl::IsInvalidArgument(status);
}

}  // namespace

WorkerSession::WorkerSession(Options options, CoordinatorPort* port, HeldChains* held, DrawUploader* uploader,
                             Executor* executor, const Clock* clock)
    : options_(std::move(options)),
      port_(port),
      held_(held),
      uploader_(uploader),
      executor_(executor),
      clock_(clock),
      backoff_(options_.jitter_key) {}

void WorkerSession::Start() { Wake(); }

void WorkerSession::Wake() {
  {
    MutexLock lock(&mutex_);
    const bool known = std::exchange(again_, true);
    if (status_.ok() && backoff_.failures() == 0) {
      if (in_flight_ == 0) {
        ScheduleAfter(absl::ZeroDuration());
      } else if (!known && in_flight_ < kMaxCallsInFlight) {
        ScheduleAfter(kHeldAfter);
      }
    }
  }
  on_change_();
}

void WorkerSession::ScheduleAfter(absl::Duration delay) {
  const uint64_t timer = ++timer_;
  executor_->ScheduleAfter(delay, [this, timer] {
    {
      MutexLock lock(&mutex_);
      if (timer != timer_) return;
      ++in_flight_;
      again_ = false;
    }
    RunOnce();
  });
}

void WorkerSession::Drain() {
  {
    MutexLock lock(&mutex_);
    draining_ = true;
  }
  held_->OrderHandBackAll();
  Wake();
}

bool WorkerSession::drained() const {
  {
    MutexLock lock(&mutex_);
    const bool server_knows = first_draining_call_ && newest_reply_ >= *first_draining_call_;
    if (!draining_ || (connected_ && !server_knows)) return false;
  }
  return held_->quiet();
}

absl::Status WorkerSession::status() const {
  MutexLock lock(&mutex_);
  return status_;
}

bool WorkerSession::connected() const {
  MutexLock lock(&mutex_);
  return connected_;
}

void WorkerSession::RunOnce() {
  for (const LeaseRef& lease : held_->ReleaseHung()) {
    Log(LogLevel::kError, "chain hangs in its step: chain handed back",
        {{"job", lease.chain.job},
         {"chain", lease.chain.index},
         {"lease_epoch", lease.epoch},
         {"worker", options_.worker}});
    uploader_->Drop(lease);
  }
  const HeldChains::Report report = held_->MakeReport();
  SynchronizeRequest request;
  request.worker = options_.worker;
  request.incarnation = options_.incarnation;
  request.seq = report.number;
  request.host = options_.host;
  request.metrics_address = options_.metrics_address;
  request.devices = options_.devices;
  if (!held_->device_responds()) {
    for (DeviceReport& device : request.devices) device.chain_slots = 0;
  }
  request.chains = report.chains;
  request.released = report.released;
  absl::Duration deadline;
  {
    MutexLock lock(&mutex_);
    request.store_incarnation = store_incarnation_;
    request.draining = drains();
    if (request.draining && !first_draining_call_) first_draining_call_ = report.number;
    // While leases are held, a lost call must leave time for two more.
    deadline = lease_ttl_ / 3 * (report.chains.empty() ? 2 : 1);
    newest_call_ = std::max(newest_call_, report.number);
  }
  if (request.draining) held_->OrderHandBackAll();  // again: a grant may have been sent before Drain arrived
  const absl::Duration sent_at = clock_->Monotonic();
  port_->Synchronize(request, deadline, [this, report, sent_at](const absl::StatusOr<SynchronizeReply>& reply) {
    OnReply(report, sent_at, reply);
  });
}

void WorkerSession::OnReply(const HeldChains::Report& report, absl::Duration sent_at,
                            const absl::StatusOr<SynchronizeReply>& reply) {
  if (!reply.ok()) return OnFailure(report.number, reply.status());
  if (!TakeIdentity(*reply)) {
    return OnFailure(report.number, absl::UnavailableError("the reply comes from a coordinator that no longer leads"));
  }
  {
    MutexLock lock(&mutex_);
    if (report.number < newest_reply_) {
      EndCall(report.number);
      return;
    }
    newest_reply_ = report.number;
  }
  held_->Acknowledge(report.number);
  if (reply->drain) TakeDrainOrder();
  ApplyLeases(report, sent_at, *reply);
  const bool took_grants = ApplyGrants(sent_at, *reply);
  bool reconnected = false;
  {
    MutexLock lock(&mutex_);
    reconnected = !std::exchange(connected_, true);
    backoff_.Reset();
    lease_ttl_ = reply->lease_ttl;
    // New grants are reported at once, which confirms their receipt.
    if (EndCall(report.number)) {
      ScheduleAfter(again_ || took_grants ? absl::ZeroDuration() : Bounded(reply->next_sync_in));
    }
  }
  if (reconnected) Log(LogLevel::kInfo, "connected to the server", {{"worker", options_.worker}});
  on_change_();
}

bool WorkerSession::EndCall(uint64_t call) {
  --in_flight_;
  if (call == newest_call_) return true;
  if (again_) ScheduleAfter(kHeldAfter);
  return false;
}

void WorkerSession::OnFailure(uint64_t call, const absl::Status& status) {
  bool first = false;
  const bool refused = IsRefusal(status);
  {
    MutexLock lock(&mutex_);
    if (!EndCall(call) && !refused) return;
    first = std::exchange(connected_, false);
    if (refused) {
      status_ = status;
    } else {
      // A server that is back gives every lease a full term: the worker with the longest backoff must renew within it.
      const double share = absl::FDivDuration(lease_ttl_ / 6, limits::kRetryMax);
      ScheduleAfter(backoff_.Next() * std::min(share, 1.0));
    }
  }
  if (first && !refused && !absl::IsCancelled(status)) {  // cancelled by our own shutdown
    Log(LogLevel::kWarning, "server unreachable, retrying",
        {{"worker", options_.worker}, {"error", status.ToString()}});
  }
  if (refused) DropAll();
  on_change_();
}

bool WorkerSession::TakeIdentity(const SynchronizeReply& reply) {
  bool other_store = false;
  {
    MutexLock lock(&mutex_);
    other_store = !store_incarnation_.empty() && store_incarnation_ != reply.store_incarnation;
    const auto [seen, is_new] = generations_.try_emplace(reply.store_incarnation, reply.generation);
    if (!is_new && reply.generation < seen->second + (other_store ? 1 : 0)) return false;
    seen->second = reply.generation;
    store_incarnation_ = reply.store_incarnation;
  }
  if (other_store) {
    Log(LogLevel::kWarning, "store restored or replaced: all chains dropped", {{"worker", options_.worker}});
    DropAll();
  }
  return true;
}

// A coordinator that takes over does not know the order. The next call, at once, tells it that this worker drains.
void WorkerSession::TakeDrainOrder() {
  {
    MutexLock lock(&mutex_);
    if (std::exchange(told_to_drain_, true)) return;
    again_ = true;
  }
  Log(LogLevel::kInfo, "drained by an operator: chains are handed back, and none are taken until this worker restarts",
      {{"worker", options_.worker}});
  held_->OrderHandBackAll();
}

void WorkerSession::ApplyLeases(const HeldChains::Report& report, absl::Duration sent_at,
                                const SynchronizeReply& reply) {
  // `keep` names chains only; it means the epochs that this call listed.
  std::map<ChainId, int64_t> listed;
  for (const HeldChain& chain : report.chains) listed[chain.chain] = chain.lease_epoch;
  bool dropped = false;
  for (const ChainId& chain : reply.keep) {
    const auto it = listed.find(chain);
    if (it != listed.end()) held_->Renew({chain, it->second}, LeaseDeadline(sent_at, reply.lease_ttl));
  }
  for (const StopOrder& stop : reply.stop) {
    const LeaseRef lease{stop.chain, stop.lease_epoch};
    if (!held_->Holds(lease)) continue;
    if (stop.how == StopOrder::How::kHandBack) {
      held_->OrderHandBack(lease);
      continue;
    }
    Log(LogLevel::kInfo, stop.how == StopOrder::How::kFenced ? "chain fenced" : "chain stopped",
        {{"job", lease.chain.job},
         {"chain", lease.chain.index},
         {"lease_epoch", lease.epoch},
         {"worker", options_.worker}});
    uploader_->Drop(lease);
    dropped |= held_->Drop(lease);
  }
  // The server may hold the call in flight for longer, so schedule a call of its own to check the device loop. Only
  // once: the due time stays set after it has passed, and every reply would otherwise send the next call at once.
  const std::optional<absl::Duration> due = held_->loop_due();
  if (dropped && due) {
    executor_->ScheduleAfter(*due - clock_->Monotonic(), [this] { Wake(); });
  }
}

bool WorkerSession::ApplyGrants(absl::Duration sent_at, const SynchronizeReply& reply) {
  bool draining = false, took_one = false;
  {
    MutexLock lock(&mutex_);
    draining = drains();
  }
  for (const Grant& grant : reply.grants) {
    LeasedChain chain{grant, reply.store_incarnation};
    const LeaseRef lease = chain.lease();
    if (held_->Add(std::move(chain), LeaseDeadline(sent_at, reply.lease_ttl)) != HeldChains::Added::kNew) continue;
    took_one = true;
    if (draining) {
      held_->Release(lease, ReleasedChain::Why::kRefused, "the worker drains");
      continue;
    }
    Log(LogLevel::kInfo, "lease granted",
        {{"job", lease.chain.job},
         {"chain", lease.chain.index},
         {"lease_epoch", lease.epoch},
         {"step", grant.progress.step},
         {"worker", options_.worker}});
  }
  return took_one;
}

void WorkerSession::DropAll() {
  for (const LeaseRef& lease : held_->DropAll()) uploader_->Drop(lease);
}

}  // namespace chainfleet

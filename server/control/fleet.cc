#include "server/control/fleet.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace chainfleet {
namespace {

constexpr size_t kFormerIncarnations = 8;

bool CountTogether(const Admission& a, const Admission& b) {
  return a.IsOfAllTenants() ? b.IsOfAllTenants() : a.tenant == b.tenant;
}

// RESOURCE_EXHAUSTED if there is no room for one more worker of this admission. The server forgets no worker to make
// room, because that worker may be alive.
absl::Status CheckFleetRoom(const std::map<std::string, WorkerEntry>& workers, const Admission& admission) {
  if (std::ssize(workers) < std::min(kMaxTenantWorkers, kMaxFleetWorkers)) return absl::OkStatus();  // counts no worker
  const auto known =
      std::ranges::count_if(workers, [&](const auto& w) { return CountTogether(w.second.admission, admission); });
  const std::string advice = " workers, with those that left in the last 10 minutes: start fewer, or wait";
  if (admission.IsOfAllTenants()) {
    if (known < kMaxFleetWorkers) return absl::OkStatus();
    return BoundReached("workers", absl::StrCat("the server knows ", known, advice), "QUEUE_FULL");
  }
  if (known < kMaxTenantWorkers) return absl::OkStatus();
  const std::string message = absl::StrCat("tenant ", admission.tenant, " has ", known, advice);
  return WithRetryAfter(BoundReached("tenant_workers", message, "TENANT_LIMIT"), absl::Seconds(1));
}

}  // namespace

absl::StatusOr<WorkerEntry*> Fleet::See(const SynchronizeRequest& request, absl::Duration now, absl::Duration term) {
  const auto stale = [&](const std::string& what) {
    return WithReason(absl::AbortedError(absl::StrCat("worker ", request.worker, ": ", what)), "STALE_SEQ");
  };
  const WorkerEntry* const known = Find(request.worker);
  if (known == nullptr || !CountTogether(known->admission, request.admission)) {
    CHAINFLEET_RETURN_IF_ERROR(CheckFleetRoom(workers_, request.admission));
  }
  const auto [entry, inserted] = workers_.try_emplace(request.worker);
  WorkerEntry& worker = entry->second;
  const bool is_new = inserted || worker.incarnation != request.incarnation;
  const bool is_present = !inserted && now - worker.last_sync < term;
  // An admin of a tenant can make tokens, whose workers may take the ids of silent workers of the fleet.
  const bool outranks = request.admission.IsOfAllTenants() && !worker.admission.IsOfAllTenants();
  // The owner of the same token may replace its worker at once, as after a crash.
  if (is_present && is_new && !outranks && worker.admission.token != request.admission.token) {
    return WithReason(absl::UnavailableError(absl::StrCat("worker ", request.worker,
                                                          " runs elsewhere, let in by another token: give this one "
                                                          "another --id, or stop that one")),
                      "WORKER_PRESENT");
  }
  const auto former = std::ranges::find(worker.former_incarnations, request.incarnation);
  if (former != worker.former_incarnations.end()) {
    if (is_present && !outranks) return stale("another process runs under this id now");
    worker.former_incarnations.erase(former);
  }
  if (!is_new && request.seq < worker.seq) {
    return stale(absl::StrCat("seq ", request.seq, " is older than ", worker.seq));
  }
  if (is_new && !inserted) {
    worker.former_incarnations.push_back(worker.incarnation);
    if (worker.former_incarnations.size() > kFormerIncarnations) worker.former_incarnations.pop_front();
  }
  worker.id = request.worker;
  worker.incarnation = request.incarnation;
  worker.admission = request.admission;
  worker.seq = request.seq;
  worker.host = request.host;
  worker.metrics_address = request.metrics_address;
  worker.told_to_drain = worker.told_to_drain && !is_new;
  worker.draining = request.draining || worker.told_to_drain;
  if (is_new || !worker.draining) worker.drain_ends.reset();
  // An operator may have ordered the drain at an earlier coordinator, with another deadline.
  if (worker.draining && !worker.drain_ends) worker.drain_ends = now + kDrainLimit;
  worker.last_sync = now;
  worker.silent = false;
  worker.chains_listed = request.chains.size();
  worker.device.clear();
  worker.num_devices = static_cast<int32_t>(request.devices.size());
  worker.chain_slots = 0;
  worker.memory_bytes = 0;
  for (const DeviceReport& device : request.devices) {
    absl::StrAppend(&worker.device, worker.device.empty() ? "" : ",", device.name);
    worker.chain_slots += device.chain_slots;
    worker.memory_bytes += device.memory_bytes;
  }
  // Only the first of a wave makes chains wait.
  if (is_new && now >= settles_ + kFleetSettles) settles_ = now + kFleetSettles;
  return &worker;
}

const WorkerEntry* Fleet::Find(const std::string& id) const {
  const auto found = workers_.find(id);
  return found == workers_.end() ? nullptr : &found->second;
}

bool Fleet::Drain(const std::string& id, absl::Duration ends) {
  WorkerEntry* worker = Find(id);
  if (worker == nullptr) return false;
  worker->draining = worker->told_to_drain = true;
  worker->drain_ends = ends;
  return true;
}

std::vector<WorkerEntry*> Fleet::NewlySilent(absl::Duration before) {
  std::vector<WorkerEntry*> found;
  for (auto& [id, worker] : workers_) {
    if (worker.last_sync < before && !std::exchange(worker.silent, true)) found.push_back(&worker);
  }
  return found;
}

void Fleet::ForgetSilent(absl::Duration before, const std::function<bool(const std::string&)>& waits) {
  std::erase_if(workers_, [&](const auto& entry) { return entry.second.last_sync < before && !waits(entry.first); });
}

}  // namespace chainfleet

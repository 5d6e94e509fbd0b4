// The workers that synchronize. Plain data: no lock, clock or I/O.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/base/status.h"
#include "core/domain/worker_protocol.h"

namespace chainfleet {

// A wave of workers may arrive one by one: chains wait this long after the first, so that the others get their share.
inline constexpr absl::Duration kFleetSettles = absl::Milliseconds(500);

// Workers of one tenant, and workers for all tenants together, that the fleet knows: also those that fell silent, until
// they are forgotten. A token lets in any number of workers, and each that is new takes memory and time of the
// dispatcher.
inline constexpr int64_t kMaxTenantWorkers = 2'000;
inline constexpr int64_t kMaxFleetWorkers = 10'000;

struct WorkerEntry {
  std::string id, incarnation, host, device, metrics_address;
  Admission admission;
  uint64_t seq = 0;
  int32_t num_devices = 0, chain_slots = 0;
  int64_t memory_bytes = 0;  // all devices together; 0 if unknown
  size_t chains_listed = 0;  // chains that its process reported in its last call
  bool draining = false;
  bool told_to_drain = false;                   // by an operator; true until its process ends
  std::optional<absl::Duration> drain_ends;     // monotonic; set while it drains
  bool silent = false;                          // NewlySilent has returned it since its last call
  absl::Duration last_sync;                     // monotonic
  std::deque<std::string> former_incarnations;  // the newest few

  // Returns true if the worker may get chains.
  bool IsUsable(absl::Duration now, absl::Duration lease_ttl) const {
    return !draining && chain_slots > 0 && last_sync + lease_ttl >= now;
  }
  // Returns the share of a device that one chain is charged with.
  double devices_per_slot() const { return chain_slots == 0 ? 0 : static_cast<double>(num_devices) / chain_slots; }
};

// Not thread-safe. Pointers stay valid until the worker is forgotten.
class Fleet {
 public:
  // Records the state that the worker reports. UNAVAILABLE / WORKER_PRESENT: a process that another token let in was
  // heard under this id within `term`. ABORTED / STALE_SEQ for a lower seq, and for a former incarnation until
  // the present one has been silent for `term`. The rule ends then, because after a restart of the server a late call
  // of a dead process may look like the newer incarnation. A process for all tenants replaces one for a single tenant
  // at once. RESOURCE_EXHAUSTED / TENANT_LIMIT or QUEUE_FULL for a new worker beyond kMaxTenantWorkers or
  // kMaxFleetWorkers.
  absl::StatusOr<WorkerEntry*> See(const SynchronizeRequest& request, absl::Duration now, absl::Duration term);

  const WorkerEntry* Find(const std::string& id) const;
  WorkerEntry* Find(const std::string& id) { return const_cast<WorkerEntry*>(std::as_const(*this).Find(id)); }
  // Drains the worker, whatever it reports, until its process ends. Chains that it still holds at `ends` are revoked.
  // Returns false if there is no such worker.
  bool Drain(const std::string& id, absl::Duration ends);
  // Returns workers last seen before `before`, each once for each silence.
  std::vector<WorkerEntry*> NewlySilent(absl::Duration before);
  // Forgets workers last seen before `before`, except those that wait for an answer.
  void ForgetSilent(absl::Duration before, const std::function<bool(const std::string&)>& waits);
  // Returns the workers by id.
  const std::map<std::string, WorkerEntry>& workers() const { return workers_; }
  // Returns the time until which chains wait for the rest of a wave of new workers.
  absl::Duration settles() const { return settles_; }

 private:
  absl::Duration settles_;
  std::map<std::string, WorkerEntry> workers_;
};

}  // namespace chainfleet

// The messages between worker and coordinator as plain values. Both sides of CoordinatorPort use the same
// structs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/domain/dataset.h"
#include "core/domain/job_spec.h"
#include "core/domain/progress_record.h"
#include "core/domain/stored_model.h"
#include "core/domain/tenant.h"

namespace chainfleet {

// The version of this build, and the oldest version that a server of this build accepts. The server rejects other
// versions and names both numbers.
inline constexpr int32_t kProtocolVersion = 2;
inline constexpr int32_t kOldestProtocolVersion = 2;

// Default time limit of a drain. A worker that still holds chains after the limit loses their leases.
inline constexpr absl::Duration kDrainLimit = absl::Minutes(5);

// The metadata of a call in which a worker that has joined sends its proof.
inline constexpr char kWorkerProofHeader[] = "chainfleet-worker-bin";

// The texts that a worker signs to prove that it has a key: once when it joins, then before each proof expires, in
// seconds since 1970.
inline std::string JoinText(const std::string& worker, const std::string& incarnation) {
  return absl::StrCat("chainfleet join\n", worker, "\n", incarnation);
}
inline std::string ProofText(int64_t expires) { return absl::StrCat("chainfleet proof\n", expires); }

// All facts about a job that a worker needs, fixed when the job is created.
struct JobPlan {
  std::string job;  // job id
  JobSpec spec;
  std::optional<Dataset> dataset;     // none for analytic potentials
  Normalisation normalisation;        // for the training set, recorded with the job
  TargetUnits target_units;           // for the training set, recorded with the job
  std::optional<StoredModel> module;  // set if the model is a stored module
  std::vector<StoredModel> weights;   // the files of init.weights, in order
  // Visits all fields but `spec`, for which messages and records have their own forms.
  static void Fields(auto& self, auto&& visit) {
    visit("job", self.job, Required());
    visit("dataset", self.dataset);
    visit("normalisation", self.normalisation, Required());
    visit("target_units", self.target_units, OrDefault());
    visit("module", self.module);
    visit("weights", self.weights, IfAny());
  }
};

inline const StoredModel* StoredOf(const JobPlan& plan) { return plan.module ? &*plan.module : nullptr; }

// Returns the inputs that are side by side in a row (WhyUnread); empty if a row is the only input.
inline std::vector<TensorSignature> ColumnsOf(const JobPlan& plan) {
  const bool several = plan.module && plan.module->signature && plan.module->signature->inputs.size() > 1;
  return several ? plan.module->signature->inputs : std::vector<TensorSignature>();
}

// Returns the files that the job keeps from being deleted.
inline std::vector<const StoredModel*> FilesOf(const JobPlan& plan) {
  std::vector<const StoredModel*> files;
  if (plan.module) files.push_back(&*plan.module);
  for (const StoredModel& file : plan.weights) files.push_back(&file);
  return files;
}

// A chain that is leased to the worker, with all it needs to resume from the last commit.
struct Grant {
  ChainId chain;
  int64_t lease_epoch = 0;              // rises with each lease of the chain; commits of older epochs are rejected
  std::shared_ptr<const JobPlan> plan;  // shared by the chains of a job
  ChainProgress progress;               // resume position: step, next draw, parent digest
  // Visits all fields but `plan`.
  static void Fields(auto& self, auto&& visit) {
    visit("chain", self.chain);
    visit("lease_epoch", self.lease_epoch);
    ChainProgress::Fields(self.progress, visit);
  }
};

// One device of the worker. Every Synchronize repeats the list.
struct DeviceReport {
  std::string name;          // "cpu", "cuda:0"
  int64_t memory_bytes = 0;  // total memory; 0: unknown
  int32_t chain_slots = 0;   // total chains that the device takes
  static void Fields(auto& self, auto&& visit) {
    visit("name", self.name);
    visit("memory_bytes", self.memory_bytes);
    visit("chain_slots", self.chain_slots);
  }
};

// A chain that the worker holds. Listing the chain renews its lease; a granted chain that is never listed expires.
struct HeldChain {
  ChainId chain;
  int64_t lease_epoch = 0;
  int64_t step = 0;  // step reached in memory, for display
  ChainStats stats;  // statistics at that step
  static void Fields(auto& self, auto&& visit) {
    visit("chain", self.chain);
    visit("lease_epoch", self.lease_epoch);
    visit("step", self.step);
    visit("stats", self.stats);
  }
};

// A lease that the worker returns without a commit; the lease ends at once. kRefused: this worker's build or device
// cannot run the chain, or the worker drains. kFailed: an error, named in `reason`. kHung: the device does not answer.
// kStopped: the worker was ordered to stop, or had made no step. kInvalid: the job is wrong on any worker; the chain
// has failed. kStore: an object of the chain is damaged or missing, or a put failed: no attempt is counted, and the
// chain waits until an operator has repaired the store.
struct ReleasedChain {
  ChainId chain;
  int64_t lease_epoch = 0;
  enum class Why {
    kRefused = 0,
    kFailed = 1,
    kHung = 3,
    kStopped = 4,
    kInvalid = 5,
    kStore = 6
  } why = Why::kRefused;  // the wire numbers
  std::string reason;     // for people
  static void Fields(auto& self, auto&& visit) {
    visit("chain", self.chain);
    visit("lease_epoch", self.lease_epoch);
    visit("why", self.why);
    visit("reason", self.reason);
  }
};

// How a worker that has joined was let in; empty on a server without tokens.
struct Admission {
  std::string token;   // id of its token
  std::string tenant;  // the tenant whose chains it takes; kEveryTenant or empty: all
  bool IsOfAllTenants() const { return tenant.empty() || tenant == kEveryTenant; }
  bool Admits(const std::string& other) const { return IsOfAllTenants() || tenant == other; }
};

// The worker's whole state in each call: the next call repairs the effects of a lost or repeated call.
struct SynchronizeRequest {
  int32_t protocol_version = kProtocolVersion;
  std::string worker;       // stable id
  std::string incarnation;  // random per process
  uint64_t seq = 0;         // rises with each call of an incarnation; a lower seq gets ABORTED / STALE_SEQ
  std::string host;
  std::string metrics_address;    // HOST:PORT of the worker's GET /metrics; empty: none
  std::string store_incarnation;  // store of the worker's chains; empty at first
  std::vector<DeviceReport> devices;
  std::vector<HeldChain> chains;
  std::vector<ReleasedChain> released;
  bool draining = false;  // takes no grants and hands back its chains
  Admission admission;    // not part of the message: the server says it
  static void Fields(auto& self, auto&& visit) {
    visit("protocol_version", self.protocol_version);
    visit("worker", self.worker);
    visit("incarnation", self.incarnation);
    visit("seq", self.seq);
    visit("host", self.host);
    visit("metrics_address", self.metrics_address);
    visit("store_incarnation", self.store_incarnation);
    visit("devices", self.devices);
    visit("chains", self.chains);
    visit("released", self.released);
    visit("draining", self.draining);
  }
};

// Repeated until the worker no longer lists the chain under that epoch.
struct StopOrder {
  ChainId chain;
  int64_t lease_epoch = 0;
  // kFenced: drop everything. kHandBack: commit a resume point with ends_as PENDING. kDrop: the job is cancelled, keep
  // nothing more.
  enum class How { kFenced, kHandBack, kDrop } how = How::kFenced;
  static void Fields(auto& self, auto&& visit) {
    visit("chain", self.chain);
    visit("lease_epoch", self.lease_epoch);
    visit("how", self.how);
  }
};

// The leases and orders of the worker from now on. A chain that is neither kept nor stopped runs until its lease ends.
struct SynchronizeReply {
  int64_t generation = 0;         // coordinator's; a worker drops replies of a lower generation
  std::string store_incarnation;  // a worker drops chains of other store incarnations
  std::vector<Grant> grants;      // repeated with the same epoch until listed or refused
  std::vector<ChainId> keep;      // leases that this call renews, for lease_ttl from before the request was sent
  std::vector<StopOrder> stop;
  absl::Duration next_sync_in;  // latest next call, earlier if there is news; 0: at once, the server may wait
  absl::Duration lease_ttl;     // counted from before the request was sent, less limits::kLeaseMargin
  bool drain = false;           // set by an operator: the worker drains under any leader, and its process stays
  // Visits all fields but `grants`, whose plans a message holds only once.
  static void Fields(auto& self, auto&& visit) {
    visit("generation", self.generation);
    visit("store_incarnation", self.store_incarnation);
    visit("keep", self.keep);
    visit("stop", self.stop);
    visit("next_sync_in", self.next_sync_in);
    visit("lease_ttl", self.lease_ttl);
    visit("drain", self.drain);
  }
};

// A commit that is durable.
struct CommitReply {
  bool replayed = false;  // the record already existed with the same digest
};

}  // namespace chainfleet

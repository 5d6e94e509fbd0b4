// The messages between worker and coordinator as plain values: the same structs on both sides of
// CoordinatorPort.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/domain/dataset.h"
#include "core/domain/job_spec.h"
#include "core/domain/progress_record.h"
#include "core/domain/stored_model.h"

namespace chainfleet {

// What this build speaks, and the oldest that a server of this build still accepts; anything else is refused with both
// numbers.
inline constexpr int32_t kProtocolVersion = 2;
inline constexpr int32_t kOldestProtocolVersion = 2;

// A worker that drains and still holds chains after this, or what the operator said instead, loses their leases.
inline constexpr absl::Duration kDrainLimit = absl::Minutes(5);

// All a worker needs to know of a job, fixed when the job is created.
struct JobPlan {
  std::string job;  // id
  JobSpec spec;
  std::optional<Dataset> dataset;     // none for analytic potentials
  Normalisation normalisation;        // of the training set, recorded with the job
  TargetUnits target_units;           // likewise
  std::optional<StoredModel> module;  // of a model that is a stored module
  // All but `spec`, which messages and records shape in their own ways.
  static void Fields(auto& self, auto&& visit) {
    visit("job", self.job, Required());
    visit("dataset", self.dataset);
    visit("normalisation", self.normalisation, Required());
    visit("target_units", self.target_units, OrDefault());
    visit("module", self.module);
  }
};

// A chain leased to the worker, with all it needs to go on from the last commit.
struct Grant {
  ChainId chain;
  int64_t lease_epoch = 0;              // one more with each lease of the chain; commits of a former one are refused
  std::shared_ptr<const JobPlan> plan;  // shared by the chains of a job
  ChainProgress progress;               // where to resume: step, next draw, digest to link to
  // All but `plan`.
  static void Fields(auto& self, auto&& visit) {
    visit("chain", self.chain);
    visit("lease_epoch", self.lease_epoch);
    ChainProgress::Fields(self.progress, visit);
  }
};

// One device of the worker; repeated in every Synchronize.
struct DeviceReport {
  std::string name;          // "cpu", "cuda:0"
  int64_t memory_bytes = 0;  // in all; 0: unknown
  int32_t chain_slots = 0;   // how many chains it will take in all
  static void Fields(auto& self, auto&& visit) {
    visit("name", self.name);
    visit("memory_bytes", self.memory_bytes);
    visit("chain_slots", self.chain_slots);
  }
};

// A chain that the worker has. Listing it renews its lease; a granted chain that is never listed runs out.
struct HeldChain {
  ChainId chain;
  int64_t lease_epoch = 0;
  int64_t step = 0;  // reached in memory, for display
  ChainStats stats;  // as of that step
  static void Fields(auto& self, auto&& visit) {
    visit("chain", self.chain);
    visit("lease_epoch", self.lease_epoch);
    visit("step", self.step);
    visit("stats", self.stats);
  }
};

// A lease given back without a commit: the worker cannot or must not go on. The lease ends at once. kRefused: not on
// this worker (its build or device cannot, or it drains). kFailed: an error, named in `reason`. kHung: the device does
// not answer. kStopped: as it was ordered to, or before its first step. kInvalid: the job itself is wrong, as any
// worker would find; the chain has failed. kStore: an object that the chain needs is damaged or missing, or the store
// did not take one: no attempt is counted, and the chain waits until an operator has mended the store.
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
  } why = Why::kRefused;  // as on the wire
  std::string reason;     // for people
  static void Fields(auto& self, auto&& visit) {
    visit("chain", self.chain);
    visit("lease_epoch", self.lease_epoch);
    visit("why", self.why);
    visit("reason", self.reason);
  }
};

// The worker's whole state, each time: a lost or repeated call changes nothing that the next one does not mend.
struct SynchronizeRequest {
  int32_t protocol_version = kProtocolVersion;
  std::string worker;       // stable id
  std::string incarnation;  // random per process
  uint64_t seq = 0;         // grows with each call of an incarnation; ABORTED / STALE_SEQ for a lower one
  std::string host;
  std::string metrics_address;    // HOST:PORT of its GET /metrics; empty: none
  std::string store_incarnation;  // the one its chains belong to; empty at first
  std::vector<DeviceReport> devices;
  std::vector<HeldChain> chains;
  std::vector<ReleasedChain> released;
  bool draining = false;  // takes no grants, hands back what it has
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

// What the worker is to have from now on. A chain that is neither kept nor stopped runs on until its lease ends.
struct SynchronizeReply {
  int64_t generation = 0;         // of the coordinator; a worker drops replies of a lower one
  std::string store_incarnation;  // chains of another one are dropped
  std::vector<Grant> grants;      // repeated with the same epoch until listed or refused
  std::vector<ChainId> keep;      // leases renewed by this call, for lease_ttl from before the request was sent
  std::vector<StopOrder> stop;
  absl::Duration next_sync_in;  // at the latest; sooner when there is something to tell; 0: at once, it may be held
  absl::Duration lease_ttl;     // counted from before the request was sent, less limits::kLeaseMargin
  bool drain = false;           // by an operator: it drains from now on, whoever leads, and its process stays
  // All but `grants`, whose plans a message tells once.
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
  bool replayed = false;  // the record was there already, with the same digest
};

}  // namespace chainfleet

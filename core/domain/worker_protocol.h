// The messages between worker and coordinator as plain values (protocol 4): the same structs on both sides of
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

namespace chainfleet {

inline constexpr int32_t kProtocolVersion = 1;
inline constexpr int32_t kOldestProtocolVersion = 1;

// All a worker needs to know of a job, fixed when the job is created.
struct JobPlan {
  std::string job;  // id
  JobSpec spec;
  std::optional<Dataset> dataset;  // none for analytic potentials
  Normalisation normalisation;     // of the training set, recorded with the job
};

struct Grant {
  ChainId chain;
  int64_t lease_epoch = 0;
  std::shared_ptr<const JobPlan> plan;
  ChainProgress progress;
};

struct DeviceReport {
  std::string name;  // "cpu", "cuda:0"
  int64_t memory_bytes = 0;
  int32_t chain_slots = 0;  // how many chains it will take in all
};

struct HeldChain {
  ChainId chain;
  int64_t lease_epoch = 0;
  int64_t step = 0;  // reached in memory, for display
  ChainStats stats;
};

// A lease given back without a commit: the worker cannot or must not go on.
struct ReleasedChain {
  ChainId chain;
  int64_t lease_epoch = 0;
  enum class Why { kRefused = 0, kFailed = 1, kHung = 3, kStopped = 4 } why = Why::kRefused;  // as on the wire
  std::string reason;
};

struct SynchronizeRequest {
  int32_t protocol_version = kProtocolVersion;
  std::string worker;       // stable id
  std::string incarnation;  // random per process
  uint64_t seq = 0;
  std::string host;
  std::string store_incarnation;  // the one its chains belong to; empty at first
  std::vector<DeviceReport> devices;
  std::vector<HeldChain> chains;
  std::vector<ReleasedChain> released;
  bool draining = false;
};

struct StopOrder {
  ChainId chain;
  int64_t lease_epoch = 0;
  // kFenced: drop everything. kHandBack: commit a resume point with ends_as PENDING. kDrop: the job is cancelled, keep
  // nothing more.
  enum class How { kFenced, kHandBack, kDrop } how = How::kFenced;
};

struct SynchronizeReply {
  int64_t generation = 0;  // of the coordinator; a worker drops replies of a lower one
  std::string store_incarnation;
  std::vector<Grant> grants;  // repeated with the same epoch until listed or refused
  std::vector<ChainId> keep;  // leases renewed by this call, for lease_ttl from before the request was sent
  std::vector<StopOrder> stop;
  absl::Duration next_sync_in;
  absl::Duration lease_ttl;
};

struct CommitReply {
  bool replayed = false;  // the record was there already, with the same digest
};

}  // namespace chainfleet

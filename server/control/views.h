// What the Dispatcher tells about jobs, chains and workers: copies, safe to keep.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/domain/snapshot.h"
#include "core/domain/worker_protocol.h"

namespace chainfleet {

struct ChainView {
  ChainId id;
  ChainState state = ChainState::kPending;
  int64_t step = 0;  // newest known, committed or reported by the lease holder
  int64_t total_steps = 0;
  int64_t num_draws = 0;  // committed
  ChainStats stats;
  std::string worker;  // of the current lease, else empty
  int64_t lease_epoch = 0;
  int32_t attempts = 0;  // leases ended without progress since the last commit
  std::string reason;
};

struct JobView {
  std::string id;
  std::shared_ptr<const JobPlan> plan;
  JobIntent intent = JobIntent::kRun;
  JobState state = JobState::kPending;
  absl::Time created_at;
  std::optional<absl::Time> finished_at;
  std::vector<ChainView> chains;  // by index
  int64_t newest_version = 0;     // of the snapshots, 0 if none
};

struct WorkerView {
  std::string id, host, device;
  int32_t chain_slots = 0;
  int32_t chains = 0;
  absl::Duration since_sync;
  bool draining = false;
};

// One page of something; `next_page_token` is empty on the last.
template <typename T>
struct Page {
  std::vector<T> items;
  std::string next_page_token;
};

}  // namespace chainfleet

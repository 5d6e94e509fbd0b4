// What a worker reports and commits about a chain's way.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/ids.h"
#include "core/domain/chain_state.h"
#include "core/domain/chain_trace.h"
#include "core/domain/draw.h"
#include "core/domain/run_report.h"

namespace chainfleet {

// How the proposals of a Metropolis chain fared, over all its steps.
struct MetropolisStats {
  double acceptance = 0;  // share of proposals accepted
  // Of kernels that see the energy difference on mini-batches, in units of T: the estimated variance of its mean, skew
  // and kurtosis (3 if normal) of the batches' differences, means over the steps; the share of steps whose variance was
  // beyond what the correction can bear.
  double noise_variance = 0, skew = 0, kurtosis = 0;
  double guarded = 0;
  bool operator==(const MetropolisStats&) const = default;
};

// Numbers for people and dashboards; never part of the truth.
struct ChainStats {
  double energy = 0;     // U at the last step's batch, full-data scale
  double step_size = 0;  // alpha
  double temperature = 0;
  double steps_per_second = 0;
  double anchor_distance = 0;  // |theta - theta_a|, 0 without an anchor
  std::optional<MetropolisStats> metropolis;
  std::optional<RunReport> report;  // none before the first measurement
  int64_t device_bytes = 0;         // of a GPU that the chain takes, measured in a step; 0: not measured
};

// The durable position of a chain: what the store holds and a grant carries.
struct ChainProgress {
  int64_t step = 0;                             // of the resume point; 0 before the first
  int64_t num_draws = 0;                        // committed: the next draw's index
  DigestHex last_digest = FirstParentDigest();  // the next segment's parent
  std::optional<ResumePoint> resume_point;
};

// One commit: resume point and segment move together or not at all.
struct ProgressCommit {
  // Of the grant: a store that was put back twice may give the same epoch again. Empty from older workers.
  std::string store_incarnation;
  ChainId chain;
  int64_t lease_epoch = 0;
  ResumePoint resume_point;  // always there; its step must be above the committed one
  std::optional<Segment> segment;
  ChainStats stats;
  ChainTrace trace;  // of the steps after the committed one; like stats never part of the truth
  // Set on the last commit under this lease: the chain is done, diverged, failed, or handed back (PENDING).
  std::optional<ChainState> ends_as;
  std::string reason;  // of FAILED or DIVERGED, for people
};

}  // namespace chainfleet

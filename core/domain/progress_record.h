// The records with which a worker reports and commits a chain's progress.
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

// Statistics of a Metropolis chain's proposals over all its steps.
struct MetropolisStats {
  double acceptance = 0;  // share of proposals accepted
  // For kernels that see the energy difference on mini-batches, in units of T, as means over the steps: the estimated
  // variance of the mean difference, and the skew and kurtosis (3 if normal) of the batches' differences. `guarded` is
  // the share of steps whose variance was beyond the correction.
  double noise_variance = 0, skew = 0, kurtosis = 0;
  double guarded = 0;
  static void Fields(auto& self, auto&& visit) {
    visit("acceptance", self.acceptance);
    visit("noise_variance", self.noise_variance);
    visit("skew", self.skew);
    visit("kurtosis", self.kurtosis);
    visit("guarded", self.guarded);
  }
  bool operator==(const MetropolisStats&) const = default;
};

// Numbers for people and dashboards; no decision about a chain depends on them.
struct ChainStats {
  double energy = 0;     // U at the last step's batch, full-data scale
  double step_size = 0;  // alpha
  double temperature = 0;
  double steps_per_second = 0;
  double anchor_distance = 0;  // |theta - theta_a|, 0 without an anchor
  std::optional<MetropolisStats> metropolis;
  std::optional<RunReport> report;  // none before the first measurement
  int64_t device_bytes = 0;         // GPU bytes of the chain, measured in a step; 0: not measured
  static void Fields(auto& self, auto&& visit) {
    visit("energy", self.energy);
    visit("step_size", self.step_size);
    visit("temperature", self.temperature);
    visit("steps_per_second", self.steps_per_second);
    visit("anchor_distance", self.anchor_distance);
    visit("metropolis", self.metropolis);
    visit("report", self.report);
    visit("device_bytes", self.device_bytes);
  }
};

// The durable position of a chain. The store holds it and a grant carries it.
struct ChainProgress {
  int64_t step = 0;                             // step of the resume point; 0 before the first
  int64_t num_draws = 0;                        // committed draws, which is the next draw's index
  DigestHex last_digest = FirstParentDigest();  // parent of the next segment
  std::optional<ResumePoint> resume_point;
  static void Fields(auto& self, auto&& visit) {
    visit("step", self.step);
    visit("num_draws", self.num_draws);
    visit("last_digest", self.last_digest);
    visit("resume_point", self.resume_point);
  }
};

// One commit. Resume point and segment are committed together or not at all.
struct ProgressCommit {
  Author author;
  std::string incarnation;  // process of the author
  // Incarnation of the store, copied from the grant, because a store restored twice may issue the same epoch again.
  // Older workers leave it empty.
  std::string store_incarnation;
  ChainId chain;
  int64_t lease_epoch = 0;
  ResumePoint resume_point;  // always set; its step must be above the committed step
  std::optional<Segment> segment;
  ChainStats stats;
  ChainTrace trace;  // the steps after the committed one; for display, as `stats`
  // Set on the last commit under this lease: the chain is done, diverged, failed, or handed back (PENDING).
  std::optional<ChainState> ends_as;
  std::string reason;  // why the chain FAILED or DIVERGED, for people
  static void Fields(auto& self, auto&& visit) {
    Author::Fields(self.author, visit);
    visit("incarnation", self.incarnation);
    visit("store_incarnation", self.store_incarnation);
    visit("chain", self.chain);
    visit("lease_epoch", self.lease_epoch);
    visit("resume_point", self.resume_point);
    visit("segment", self.segment);
    visit("stats", self.stats);
    visit("trace", self.trace, IfAny());
    visit("ends_as", self.ends_as);
    visit("reason", self.reason);
    visit("signature", self.author.signature);
  }
};

}  // namespace chainfleet

// Jobs and running chains as dashboards show them: sums made under the dispatcher's lock, so that a scrape costs no
// copy of all chains.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/domain/chain_state.h"
#include "core/domain/progress_record.h"

namespace chainfleet {

// Over all chains of a job, whatever their state.
struct JobSummary {
  std::string id;
  JobState state = JobState::kPending;
  std::map<ChainState, int64_t> chains;
  int64_t num_draws = 0;                  // committed
  int64_t step = 0, total_steps = 0;      // sums; newest known
  double max_draws = 0;                   // that the stop rule asks for, of all points; 0: no such rule
  int64_t stepped = 0;                    // leased ones whose statistics are known, and
  double energy_sum = 0, energy_max = 0;  // theirs; 0 without any
  double step_size_sum = 0, temperature_sum = 0, anchor_distance_sum = 0;
  int64_t proposing = 0;  // those of them that run Metropolis samplers, and
  double acceptance_sum = 0;
};

struct ChainSummary {
  ChainId id;
  int64_t step = 0;  // newest known
  int64_t num_draws = 0;
  ChainStats stats;  // without its report
};

// Whether a chain has stepped since this server knows it: before that its statistics are zeros that nobody measured.
inline bool HasStepped(const ChainStats& stats) { return stats.step_size > 0; }

struct FleetSummary {
  std::vector<JobSummary> jobs;       // newest first
  std::vector<ChainSummary> running;  // leased, in the order of the jobs, as many as were asked for
};

}  // namespace chainfleet

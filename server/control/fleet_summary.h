// Jobs and running chains as dashboards show them. The sums are made under the dispatcher's lock, so that a scrape does
// not copy all chains.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/domain/chain_state.h"
#include "core/domain/progress_record.h"

namespace chainfleet {

// Sums over all chains of a job, in any state.
struct JobSummary {
  std::string id;
  JobState state = JobState::kPending;
  std::map<ChainState, int64_t> chains;
  int64_t num_draws = 0;                  // committed
  int64_t step = 0, total_steps = 0;      // sums over chains, newest known
  double max_draws = 0;                   // draws that the stop rule requires, over all points; 0 without such a rule
  int64_t stepped = 0;                    // number of leased chains with known statistics
  double energy_sum = 0, energy_max = 0;  // over these chains; 0 without any
  double step_size_sum = 0, temperature_sum = 0, anchor_distance_sum = 0;
  int64_t proposing = 0;  // number of these chains with a Metropolis sampler
  double acceptance_sum = 0;
};

struct ChainSummary {
  ChainId id;
  int64_t step = 0;  // newest known
  int64_t num_draws = 0;
  ChainStats stats;  // without its report
};

// False until the chain has stepped under this server: its statistics are zeros then, not measurements.
inline bool HasStepped(const ChainStats& stats) { return stats.step_size > 0; }

struct FleetSummary {
  std::vector<JobSummary> jobs;       // newest first
  std::vector<ChainSummary> running;  // leased chains in the order of the jobs, up to the requested number
};

}  // namespace chainfleet

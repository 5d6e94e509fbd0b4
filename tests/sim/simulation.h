// One run of the fleet from one seed: jobs, users and faults, then a calm time, then the checks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace chainfleet {

struct SimulationReport {
  std::vector<std::string> complaints;  // broken promises; empty if all were kept
  int64_t grants = 0, commits = 0, replayed = 0, preempted = 0;
  std::map<std::string, int64_t> refusals;  // refused commits, objects and coordinators, by reason
  std::map<std::string, int64_t> ends;      // chains by their last state
  std::string journal;                      // digest of all events in order: equal for equal seeds and builds
};

// The coordinators' state store: maps, or the SQL that ships, on a database in memory.
enum class SimulatedState { kMaps, kSql };

// Single-threaded, in virtual time; `seed` decides every choice. `trace` gets a line for each event, or is
// empty.
SimulationReport RunSimulation(uint64_t seed, const std::function<void(const std::string&)>& trace = {},
                               SimulatedState state = SimulatedState::kMaps);

}  // namespace chainfleet

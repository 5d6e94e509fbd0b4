// Measures alternatives in turn, round by round, so that disturbances of the host affect all of them alike.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <string>
#include <vector>

namespace chainfleet {

struct Alternative {
  std::string name;
  std::function<void()> step;
};

// kThreadCpu excludes the time in which other threads had the core; only for steps on one thread.
enum class StepTime { kElapsed, kThreadCpu };

// One iteration of `state` runs a step of each. Counters: `<name>_ms`, the median time of its step, and for all but the
// first `<name>/<name of the first>`, the median over rounds of the ratio within the round.
void StepInTurn(benchmark::State& state, const std::vector<Alternative>& alternatives,
                StepTime measured = StepTime::kElapsed);

}  // namespace chainfleet

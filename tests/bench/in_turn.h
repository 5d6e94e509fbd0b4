// Alternatives measured in turn, round by round, so that what disturbs the host disturbs all of them alike.
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

// kThreadCpu, for steps that take one thread, leaves out the time in which others had the core.
enum class StepTime { kElapsed, kThreadCpu };

// One iteration of `state` is a step of each. Counters: `<name>_ms`, the median time of its step, and for all but the
// first `<name>/<name of the first>`, the median over rounds of the ratio within the round.
void StepInTurn(benchmark::State& state, const std::vector<Alternative>& alternatives,
                StepTime measured = StepTime::kElapsed);

}  // namespace chainfleet

#include "tests/bench/in_turn.h"

#include <time.h>

#include <algorithm>
#include <cstddef>

namespace chainfleet {
namespace {

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double Milliseconds(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

double Milliseconds(clockid_t clock, const std::function<void()>& step) {
  const double start = Milliseconds(clock);
  step();
  return Milliseconds(clock) - start;
}

}  // namespace

void StepInTurn(benchmark::State& state, const std::vector<Alternative>& alternatives, StepTime measured) {
  const clockid_t clock = measured == StepTime::kElapsed ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
  for (const Alternative& alternative : alternatives) alternative.step();  // the first step touches the memory
  std::vector<std::vector<double>> times(alternatives.size()), ratios(alternatives.size());
  for (auto _ : state) {
    for (size_t i = 0; i < alternatives.size(); ++i) {
      times[i].push_back(Milliseconds(clock, alternatives[i].step));
      ratios[i].push_back(times[i].back() / times[0].back());
    }
  }
  for (size_t i = 0; i < alternatives.size(); ++i) {
    state.counters[alternatives[i].name + "_ms"] = Median(times[i]);
    if (i > 0) state.counters[alternatives[i].name + "/" + alternatives[0].name] = Median(ratios[i]);
  }
}

}  // namespace chainfleet

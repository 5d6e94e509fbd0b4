// Measures, at a few steps of a run, the values of a chain's RunReport.
//
// A measurement is a pure function of (job, chain key, step, theta). It uses no random number that a step uses and does
// not change the chain. It is made before the first update (FirstReportStep), and then
//
//   gradient variance, rounding   before the update that gives the middle draw of a cycle's collection window
//   curvature                     before the last update of a cycle; compared with the step size of the restart
//
// but at most so often that measurements cost a tenth of the steps: of cycles shorter than kStepsBetween only every few
// are measured, always including the last.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/domain/job_spec.h"
#include "core/domain/step_size_schedule.h"
#include "worker/numerics/samplers/sampler_state.h"

namespace chainfleet {

// The update before which chain `index` of a job is first measured. 0 on a CPU. On a GPU the chains of a network of
// millions of parameters step together, and measuring all of them at once would delay the first step by many seconds.
// They are therefore measured in groups, one group before each step.
int64_t FirstReportStep(int32_t index, int64_t num_parameters, Device device, int64_t training_steps);

// The row of a chain before a step: its first measurement is due before update `first`.
struct MeasuredRow {
  int32_t chain = 0;
  int64_t first = 0;
  const StepSizeSchedule* schedule = nullptr;
  std::optional<RunReport>* report = nullptr;
};

// Not thread-safe. The objects that it points to must outlive it.
class ChainReporter {
 public:
  static constexpr int64_t kStepsBetween = 640;

  // `evaluated`: where the potential reads the chain of each row that it evaluates. May be null.
  ChainReporter(const JobSpec* spec, const StepPlan* plan, Potential* potential, const MinibatchPlan* batches,
                std::vector<int32_t>* evaluated = nullptr);

  // True if a measurement is due before update `t` (from 0) of a chain whose first one is due before `first`.
  bool IsDue(int64_t t, int64_t first = 0) const { return VarianceIsDue(t, first) || CurvatureIsDue(t, first); }

  // Updates the report of row r if a measurement is due at row r of `theta`, before its step chains[r]. Values that
  // overflow are left out. Throws as a Potential does when memory is short; the reports are then unchanged or newer.
  void Measure(const std::vector<MeasuredRow>& rows, const std::vector<ChainStep>& chains, const ThetaArena& theta);

 private:
  bool VarianceIsDue(int64_t t, int64_t first) const;
  bool CurvatureIsDue(int64_t t, int64_t first) const;
  bool CycleIsMeasured(int64_t cycle) const;
  void ReportNoise(const ChainStep& chain, double variance, const std::vector<float>& theta, RunReport* report) const;
  void ReportCurvature(const ChainStep& chain, const StepSizeSchedule& schedule, double curvature,
                       RunReport* report) const;
  // The job's sampler, with the chain's own numbers.
  SamplerSpec SamplerOf(const ChainStep& chain) const;

  const JobSpec* const spec_;
  const StepPlan* const plan_;
  Potential* const potential_;
  const MinibatchPlan* const batches_;
  std::vector<int32_t>* const evaluated_;
  const bool has_mobility_, has_bound_;
};

// The standard deviation of a step's noise divided by the ulp of the rms of a tensor of `theta` [D]; the smallest over
// tensors that are not all zero; nullopt if all are.
std::optional<double> NoiseUlps(double noise, const Layout& layout, const std::vector<float>& theta);

}  // namespace chainfleet

// Records scalar quantities for live diagnostics. None of them is a weight of a network, because those are not
// identified.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/job_spec.h"
#include "worker/numerics/potentials/potential.h"
#include "worker/numerics/samplers/sampler_state.h"

namespace chainfleet {

// The quantities of each chain, in this order and with these names:
//
//   energy                      U on the step's minibatch, before the step
//   anchor_distance             |theta - theta_a| before the step, for samplers that draw both
//   gradient_uncertainty        GU or its scale-free form on the step's minibatch, for that sampler
//   KIND.norm                   the Euclidean norm of all parameters; KIND is theta or theta_a, if the job keeps it
//   KIND.probability[ROW]       at a few rows spread over the data set: the network's probability of the row's label,
//                               without augmentation and dropout; batch norm uses those rows only
//   KIND.log_density[ROW]       likewise log p(y | x, theta) of the row's float32 target, in nats
//   KIND.log_likelihood[ROW]    likewise for a linear or logistic regression, whose weights are identified
//   KIND.NAME, KIND.NAME[I]     each parameter of a regression with at most kMostTracedParameters of them, by its index
//   KIND[I]                     likewise of a density without data
//
// In a job of kind sbc all but the first three, which have no true value, and none of theta_a, whose law is not the
// posterior: the batch subtracts the truth.
//
// A pure function of the state: it uses no random number and does not change a chain. Not thread-safe; `potential` must
// outlive it.
class ChainTracer {
 public:
  // `has_labels`: the data set's targets are classes, not numbers.
  ChainTracer(const JobSpec& spec, bool has_labels, Potential* potential);

  const std::vector<std::string>& quantities() const { return quantities_; }
  const std::vector<DrawKind>& kinds() const { return kinds_; }

  // The values of each row after its step `info`, [C, Q]; `kinds` are the arenas of kinds(). Throws as a
  // Potential does when memory is short.
  absl::StatusOr<std::vector<std::vector<double>>> Trace(const std::vector<StepInfo>& info,
                                                         const std::vector<const ThetaArena*>& kinds);

  // The values at `theta` [D], taken for each kind.
  absl::StatusOr<std::vector<double>> ValuesAt(const std::vector<float>& theta, Device device);

 private:
  Potential* const potential_;
  const std::vector<DrawKind> kinds_;
  const bool has_energy_, has_anchor_, has_uncertainty_;
  const bool are_probabilities_;               // the values at probes
  std::vector<int64_t> probes_;                // rows of the data set
  const std::vector<std::string> parameters_;  // names of those that are traced
  std::vector<std::string> quantities_;
};

}  // namespace chainfleet

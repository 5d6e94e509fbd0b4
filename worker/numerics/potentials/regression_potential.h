// Bayesian linear and logistic regression: the smallest potentials with examples. Their posteriors are known.
#pragma once

#include <memory>

#include "core/base/status.h"
#include "core/domain/worker_protocol.h"
#include "worker/numerics/potentials/potential.h"

namespace chainfleet {

class ResidentDataset;

// U = precision/2 |theta|^2 + (N/n) sum over the minibatch of -log p(target | x . weights + intercept), with x
// standardised by `plan.normalisation`; for linear regression with its normalising constant. INVALID_ARGUMENT:
// `dataset` is null or its targets are not those of plan.spec.model.
absl::StatusOr<std::unique_ptr<Potential>> MakeRegressionPotential(const JobPlan& plan,
                                                                   std::shared_ptr<const ResidentDataset> dataset,
                                                                   Device device);

}  // namespace chainfleet

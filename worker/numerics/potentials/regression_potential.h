// Bayesian linear and logistic regression: the smallest potentials with examples, whose posteriors are known.
#pragma once

#include <memory>

#include "core/base/status.h"
#include "core/domain/worker_protocol.h"
#include "worker/numerics/potentials/potential.h"

namespace chainfleet {

class ResidentDataset;

// U = precision/2 |theta|^2 + (N/n) sum over the batch of -log p(target | x . weights + intercept), x standardised as
// `plan.normalisation` says; of linear regression with its normalising constant. INVALID_ARGUMENT if `dataset` is null
// or holds other targets than plan.spec.model learns from.
absl::StatusOr<std::unique_ptr<Potential>> MakeRegressionPotential(const JobPlan& plan,
                                                                   std::shared_ptr<const ResidentDataset> dataset,
                                                                   Device device);

}  // namespace chainfleet

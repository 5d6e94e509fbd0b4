// Simulation-based calibration (Talts, Betancourt, Simpson, Vehtari & Gelman 2018, arXiv:1804.06788): the true
// parameters of each chain, and the targets that they give.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/status.h"
#include "core/domain/worker_protocol.h"
#include "worker/numerics/dataset/resident_dataset.h"
#include "worker/numerics/potentials/potential.h"

namespace chainfleet {

struct ModelFile;

// The true theta [D] of a chain, from the job's prior: a pure function of the job's seed and the chain.
std::vector<float> DrawTruth(const JobSpec& spec, const Layout& layout, int32_t chain);

// The inputs of `dataset` once for each chain of the job, with targets from the model at the chain's true theta: a
// label from its class probabilities, or a number from its normal. `potential` is that of the plan. INVALID_ARGUMENT:
// the model has no data or, by batch norm, no law of a row's target alone.
absl::StatusOr<std::shared_ptr<const ResidentDataset>> SimulateTargets(const JobPlan& plan, const Potential& potential,
                                                                       const ResidentDataset* dataset,
                                                                       std::shared_ptr<const ModelFile> module);

}  // namespace chainfleet

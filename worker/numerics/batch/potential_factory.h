// Creates a job's potential on a device from its plan.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/worker_protocol.h"
#include "worker/numerics/potentials/potential.h"

namespace chainfleet {

class ResidentDataset;
struct ModelFile;

// Networks (models/network_potential.h) and regressions need `dataset`; other analytic potentials ignore it. `module`:
// the file of a stored network. `chains`: the chain of each row of the arenas, kept up to date by the caller; null if
// unknown. INVALID_ARGUMENT or UNIMPLEMENTED: this build lacks the model.
absl::StatusOr<std::unique_ptr<Potential>> MakePotential(const JobPlan& plan,
                                                         std::shared_ptr<const ResidentDataset> dataset, Device device,
                                                         const ModelFile* module = nullptr,
                                                         std::shared_ptr<const std::vector<int32_t>> chains = nullptr);

}  // namespace chainfleet

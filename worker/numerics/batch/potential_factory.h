// Creates a job's potential on a device from its plan.
#pragma once

#include <memory>
#include <string>

#include "core/base/status.h"
#include "core/domain/worker_protocol.h"
#include "worker/numerics/potentials/potential.h"

namespace chainfleet {

class ResidentDataset;
struct ModelFile;

// Networks (models/network_potential.h) and regressions need `dataset`; other analytic potentials ignore it. `module`:
// the file of a stored network. INVALID_ARGUMENT or UNIMPLEMENTED: this build lacks the model.
absl::StatusOr<std::unique_ptr<Potential>> MakePotential(const JobPlan& plan,
                                                         std::shared_ptr<const ResidentDataset> dataset, Device device,
                                                         const ModelFile* module = nullptr);

}  // namespace chainfleet

// The rules of `kind: sbc`, simulation-based calibration: each chain draws its true parameters from the prior and its
// targets from the model, so both must be laws that can be drawn from.
#pragma once

#include <vector>

#include "core/base/status.h"
#include "core/domain/job_spec.h"

namespace chainfleet {

// Checks without data. REQUIRES: `spec.model` has passed Validate. A job of another kind has no violations.
std::vector<FieldViolation> ValidateSbc(const JobSpec& spec);

// Checks against the data set and, if the network is stored, its file: each chain holds targets of its own, and the
// network is a function of its parameters alone. REQUIRES: ValidateSbc has found nothing.
std::vector<FieldViolation> ValidateSbcData(const JobSpec& spec, const Dataset& dataset, const StoredModel* stored);

}  // namespace chainfleet

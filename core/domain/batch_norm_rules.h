// Rules of a job whose network has batch norm over mini-batches.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/sampler_spec.h"

namespace chainfleet {

// Returns a violation for a sampler that needs a potential of theta alone. `advice` ends its message.
inline std::vector<FieldViolation> ValidateForBatchNorm(const SamplerSpec& sampler, const std::string& advice) {
  if (!sampler.needs_full_data()) return {};
  return {
      {"sampler." + sampler.name(),
       "needs a potential that is a function of theta alone, which batch norm over mini-batches is not: " + advice}};
}

}  // namespace chainfleet

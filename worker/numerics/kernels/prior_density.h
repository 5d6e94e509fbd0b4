// Energy and gradient of a prior of independent parameters, on the host.
#pragma once

#include <cstdint>
#include <variant>

#include "core/domain/prior_spec.h"

namespace chainfleet {

// N(0, 1 / precision), for a range of parameters that share it.
struct NormalDensity {
  double precision = 0;
};
using PriorDensity = std::variant<NormalDensity, LaplacePrior, StudentTPrior>;

// Returns the sum of -log density(x[i]) up to a constant, i < count, in 16 partial sums (i mod 16) of doubles that are
// added in order. Adds its gradient to gradient[count] unless that is null. The gradient of the Laplace density is 0 at
// 0, so zeros of padding add nothing. REQUIRES: `count` is a multiple of 16.
double AddPrior(const PriorDensity& density, const float* x, int64_t count, float* gradient);

}  // namespace chainfleet

// Energy and gradient of a prior of independent parameters, on the host.
#pragma once

#include <cstdint>
#include <variant>

#include "core/domain/prior_spec.h"

namespace chainfleet {

// N(0, 1 / precision), for a stretch of parameters that share it.
struct NormalDensity {
  double precision = 0;
};
using PriorDensity = std::variant<NormalDensity, LaplacePrior, StudentTPrior>;

// Sum of -log density(x[i]) up to a constant, i < count, in 16 partial sums (i mod 16) of doubles added up in order;
// its gradient is added to gradient[count] unless that is null. The Laplace density's gradient is 0 at 0, so zeros of
// padding add nothing. `count` is a multiple of 16.
double AddPrior(const PriorDensity& density, const float* x, int64_t count, float* gradient);

}  // namespace chainfleet

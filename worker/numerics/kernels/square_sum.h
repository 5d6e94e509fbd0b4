// |x|^2 in double: the Gaussian prior's energy.
#pragma once

#include <cstdint>

namespace chainfleet {

// Sum of x[i]^2, i < count, in 16 partial sums (i mod 16) added up in order: the same bits for every vector width.
double SquareSum(const float* x, int64_t count);

// sums[l] = sum of x[16 i + l]^2, i < count: of values in lanes (lanes.h).
void LaneSquareSums(const float* x, int64_t count, double* sums);

}  // namespace chainfleet

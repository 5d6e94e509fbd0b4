// The Cholesky factor of a small symmetric matrix, without a linear algebra library.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace chainfleet {

// L [n, n], lower, row-major, with L L' = `matrix`; its upper half is not looked at. Nothing if the matrix is not
// positive definite.
std::optional<std::vector<double>> CholeskyFactor(std::vector<double> matrix, int64_t n);

// (L L')^-1, row-major.
std::vector<double> InverseFromCholesky(const std::vector<double>& factor, int64_t n);

}  // namespace chainfleet

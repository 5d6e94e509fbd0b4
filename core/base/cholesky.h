// Computes the Cholesky factor of a small symmetric matrix, without a linear algebra library.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace chainfleet {

// Returns L [n, n], lower, row-major, with L L' = `matrix`; does not read the upper half. Returns nullopt if the matrix
// is not positive definite.
std::optional<std::vector<double>> CholeskyFactor(std::vector<double> matrix, int64_t n);

// Solves L L' y = `right` in place.
void SolveCholesky(const std::vector<double>& factor, std::vector<double>* right);

// Returns (L L')^-1, row-major.
std::vector<double> InverseFromCholesky(const std::vector<double>& factor, int64_t n);

}  // namespace chainfleet

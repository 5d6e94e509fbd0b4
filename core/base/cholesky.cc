#include "core/base/cholesky.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace chainfleet {

std::optional<std::vector<double>> CholeskyFactor(std::vector<double> matrix, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    double* row = matrix.data() + i * n;
    for (int64_t j = 0; j <= i; ++j) {
      const double* above = matrix.data() + j * n;
      const double rest = row[j] - std::inner_product(row, row + j, above, 0.0);
      if (j < i) {
        row[j] = rest / above[j];
      } else if (!(rest > 0) || !std::isfinite(rest)) {
        return std::nullopt;
      } else {
        row[i] = std::sqrt(rest);
      }
    }
    std::fill(row + i + 1, row + n, 0.0);
  }
  return matrix;
}

void SolveCholesky(const std::vector<double>& factor, std::vector<double>* right) {
  const size_t n = right->size();
  std::vector<double>& y = *right;
  for (size_t i = 0; i < n; ++i) {
    const double* row = factor.data() + i * n;
    y[i] = (y[i] - std::inner_product(row, row + i, y.data(), 0.0)) / row[i];
  }
  for (size_t i = n; i-- > 0;) {
    y[i] /= factor[i * n + i];
    for (size_t j = 0; j < i; ++j) y[j] -= factor[i * n + j] * y[i];
  }
}

std::vector<double> InverseFromCholesky(const std::vector<double>& factor, int64_t n) {
  // Rows of M = (L^-1)', so that (L L')^-1 = M M' reads contiguous rows.
  std::vector<double> m(n * n);
  for (int64_t column = 0; column < n; ++column) {
    double* x = m.data() + column * n;  // solves L x = e_column
    for (int64_t i = column; i < n; ++i) {
      const double* row = factor.data() + i * n;
      const double sum = std::inner_product(row + column, row + i, x + column, 0.0);
      x[i] = ((i == column) - sum) / row[i];
    }
  }
  std::vector<double> inverse(n * n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      const double* a = m.data() + i * n;
      inverse[i * n + j] = inverse[j * n + i] = std::inner_product(a + i, a + n, m.data() + j * n + i, 0.0);
    }
  }
  return inverse;
}

}  // namespace chainfleet

#include "tests/support/linear_law.h"

namespace chainfleet::testing {
namespace {

using Matrix = std::vector<std::vector<double>>;

Matrix Product(const Matrix& a, const Matrix& b) {
  Matrix c = Zeros(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < a.size(); ++j) {
      for (size_t k = 0; k < a.size(); ++k) c[i][j] += a[i][k] * b[k][j];
    }
  }
  return c;
}

Matrix Sandwich(const Matrix& a, const Matrix& s) {
  Matrix transposed = Zeros(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < a.size(); ++j) transposed[j][i] = a[i][j];
  }
  return Product(Product(a, s), transposed);
}

Matrix Sum(Matrix a, const Matrix& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < a.size(); ++j) a[i][j] += b[i][j];
  }
  return a;
}

}  // namespace

Matrix Zeros(size_t size) { return Matrix(size, std::vector<double>(size, 0)); }

Matrix Outer(const std::vector<double>& w) {
  Matrix outer = Zeros(w.size());
  for (size_t i = 0; i < w.size(); ++i) {
    for (size_t j = 0; j < w.size(); ++j) outer[i][j] = w[i] * w[j];
  }
  return outer;
}

Matrix CovarianceAfter(size_t size, int64_t steps, const std::function<LinearStep(int64_t t)>& step) {
  Matrix sigma = Zeros(size);
  for (int64_t t = 0; t < steps; ++t) {
    const LinearStep now = step(t);
    sigma = Sum(Sandwich(now.a, sigma), now.q);
  }
  return sigma;
}

LinearStep Then(const LinearStep& first, const LinearStep& second) {
  return {Product(second.a, first.a), Sum(Sandwich(second.a, first.q), second.q)};
}

}  // namespace chainfleet::testing

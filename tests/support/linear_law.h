// Second moments of linear Gaussian recursions, in double, to compare with kernels on a quadratic.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace chainfleet::testing {

// x <- A x + noise of covariance Q, over a state of a few numbers per coordinate.
struct LinearStep {
  std::vector<std::vector<double>> a, q;
};

// Returns a square matrix of zeros.
std::vector<std::vector<double>> Zeros(size_t size);
// w w^T.
std::vector<std::vector<double>> Outer(const std::vector<double>& w);

// The covariance of a state of `size` numbers after `steps` steps from 0; `step(t)` gives the t-th.
std::vector<std::vector<double>> CovarianceAfter(size_t size, int64_t steps,
                                                 const std::function<LinearStep(int64_t t)>& step);

// B after A, as one step.
LinearStep Then(const LinearStep& first, const LinearStep& second);

}  // namespace chainfleet::testing

// Exact second moments of Langevin kernels at a finite step on a quadratic, and comparisons of samples with them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/domain/job_spec.h"

namespace chainfleet::testing {

// var theta, cov(theta, theta_a), var theta_a.
struct Law {
  double var = 0, cov = 0, var_a = 0;
};

// U = k x^2 / 2 from N examples of equal curvature, n for each step. `coupling` is 1 / eta; 0 for SGLD, whose var_a has
// no meaning.
struct Quadratic {
  double k = 0, coupling = 0, step_size = 0, temperature = 0;
  double gradient_variance = 0;  // V = N^2 var_i(grad) / n: of a batch drawn with replacement
  int64_t num_examples = 1, batch_size = 1;
};

// The stationary law just before the update of position `position` in an epoch, 0 <= position < floor(N/n). With
// B = I - alpha A, A = [[k + g, -g], [-g, g]], one epoch is Sigma -> B^m Sigma B'^m + 2 alpha T sum_j B^j B'^j +
// alpha^2 sum_jl C_jl B^j e1 e1' B'^l; C, the covariance of the epoch's m mini-batch gradients, is V I for batches
// drawn with replacement, and for a permutation cut into m = N/n pieces (they sum to a constant) V (N-n)/(N-1) on the
// diagonal and -1/(m-1) of that off it. N must be a multiple of n.
Law StationaryLaw(const Quadratic& quadratic, Minibatches minibatches = Minibatches::kIndependent,
                  int64_t position = 0);

// Samples of a law with mean 0; `theta_a` is empty without an anchor. Samples of one group (`group` in a row) may be
// dependent, groups are independent.
struct Samples {
  std::vector<float> theta, theta_a;
  int64_t group = 1;
};

// theta^2, theta theta_a and theta_a^2, means over many coordinates, at each draw of each chain: [chains, draws], the
// last two empty without an anchor.
struct MomentTraces {
  int64_t chains = 1;
  std::vector<double> theta, cross, theta_a;
};

// Returns misfits in words; empty if each second moment is within 4 standard errors of the law. The errors of samples
// come from the spread over groups, the errors of traces from their effective sample size. A moment with a standard
// error above 0.4 % of its value is a misfit too, because it is too rough to show a 2 % error.
std::vector<std::string> Misfits(const Samples& samples, const Law& law);
std::vector<std::string> Misfits(const MomentTraces& traces, const Law& law);

}  // namespace chainfleet::testing

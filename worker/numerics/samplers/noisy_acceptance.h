// Acceptance rules for an energy difference with normal noise. All values are in units of the temperature.
#pragma once

#include <cstdint>

#include "worker/numerics/samplers/sampler_state.h"

namespace chainfleet {

// The term to add to the noisy difference so that the Metropolis rule keeps detailed balance on average (Ceperley &
// Dewing, "The penalty method for random walks with uncertain energies", 1999): u_B for a variance `x` of the mean of
// `num_batches` estimates, itself estimated from them,
//
//   u_B = x / 2 + x^2 / (4 (M + 1)) + x^3 / (3 (M + 1) (M + 3)),
//
// the start of a series that is accurate well below x = M / 4. For a known variance the penalty is x / 2.
double CorrectedPenalty(double x, int64_t num_batches);

// The noise that must be added to the present noise for Barker's rule (Seita et al., "An efficient minibatch acceptance
// test for Metropolis-Hastings", UAI 2017): accepting when log ratio + logistic noise > 0 is Barker's 1 / (1 +
// exp(difference)). A logistic variable is normal with variance 4 K^2, where K has Kolmogorov's distribution (Andrews &
// Mallows, "Scale mixtures of normal distributions", 1974). Noise of variance x is therefore extended by a normal of
// variance 4 K^2 - x. This is exact whenever 4 K^2 >= x (except 3.6 % of the time at x = 1, .3 % at .64).
struct LogisticRemainder {
  double noise = 0;
  bool short_of = false;  // 4 K^2 < x: there is too much noise already
};
LogisticRemainder RemainderToLogistic(const ChainStep& chain, double x);

// The `u` quantile of Kolmogorov's distribution, 0 < u < 1.
double KolmogorovQuantile(double u);

}  // namespace chainfleet

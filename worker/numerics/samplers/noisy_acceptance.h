// Acceptance where the energy difference is known up to normal noise. All in units of the temperature.
#pragma once

#include <cstdint>

#include "worker/numerics/samplers/sampler_state.h"

namespace chainfleet {

// The term to add to the noisy difference so that Metropolis' rule keeps detailed balance on average (Ceperley &
// Dewing, "The penalty method for random walks with uncertain energies", 1999): u_B for a variance `x` of the mean of
// `num_batches` estimates that was itself estimated from them,
//
//   u_B = x / 2 + x^2 / (4 (M + 1)) + x^3 / (3 (M + 1) (M + 3)),
//
// of a series that is good well below x = M / 4. Of a variance that is known the penalty is x / 2.
double CorrectedPenalty(double x, int64_t num_batches);

// The noise that Barker's rule wants beside what is there (Seita et al., "An efficient minibatch acceptance test for
// Metropolis-Hastings", UAI 2017): accepting when log ratio + logistic noise > 0 is Barker's 1 / (1 + exp(difference)).
// A logistic variable is normal with variance 4 K^2, K of Kolmogorov's law (Andrews & Mallows, "Scale mixtures of
// normal distributions", 1974), so that noise of variance x is made up to it by a normal of variance 4 K^2 - x: exactly
// wherever 4 K^2 >= x (all but 3.6 % of the time at x = 1, .3 % at .64).
struct LogisticRemainder {
  double noise = 0;
  bool short_of = false;  // 4 K^2 < x: there was too much noise already
};
LogisticRemainder RemainderToLogistic(const ChainStep& chain, double x);

// The `u` quantile of Kolmogorov's law, 0 < u < 1.
double KolmogorovQuantile(double u);

}  // namespace chainfleet

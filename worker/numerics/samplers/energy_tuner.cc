#include "worker/numerics/samplers/energy_tuner.h"

#include <algorithm>
#include <cmath>

namespace chainfleet {

void AdaptStep(double energy_error, double target, TunedStep tuned) {
  constexpr double kDecay = 99.0 / 101, kSpread = 9;
  const double excess = energy_error * energy_error / target + 1e-8;
  const double far = std::log(excess) / kSpread, weight = std::exp(-far * far / 2);
  tuned.error = kDecay * tuned.error + weight * excess / std::pow(tuned.eps, 6);
  tuned.weight = kDecay * tuned.weight + weight;
  tuned.eps = std::min(std::pow(tuned.error / tuned.weight, -1.0 / 6), tuned.most);
}

void BackOff(TunedStep tuned) { tuned.eps = tuned.most = 0.8 * tuned.eps; }

}  // namespace chainfleet

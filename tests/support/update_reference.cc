#include "tests/support/update_reference.h"

#include <cmath>
#include <numbers>

namespace chainfleet::testing {

double ReferenceNormal(RngKey key, RngStream stream, uint64_t t, int64_t p) {
  const int64_t q = p / 64, r = p % 64;
  const int64_t output = r / 16, pair = output / 2 * 2;
  const PhiloxBlock block = RandomBlock(key, stream, t, static_cast<uint32_t>(16 * q + r % 16));
  const double radius = std::sqrt(-2 * std::log(static_cast<double>(UniformFloat(block.word[pair]))));
  const double angle = 2 * std::numbers::pi * UniformFloat(block.word[pair + 1]);
  return radius * (output % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

void ReferenceUpdate(const RowStep& step, std::vector<double>& theta, std::vector<double>* theta_a,
                     const std::vector<double>& gradient) {
  for (size_t p = 0; p < theta.size(); ++p) {
    const double force = theta_a == nullptr ? 0 : step.coupling * (theta[p] - (*theta_a)[p]);
    theta[p] += step.noise * ReferenceNormal(step.key, RngStream::kThetaNoise, step.t, p) -
                step.step_size * (gradient[p] + step.prior_precision * theta[p] + force);
    if (theta_a != nullptr) {
      (*theta_a)[p] +=
          step.noise * ReferenceNormal(step.key, RngStream::kThetaANoise, step.t, p) + step.step_size * force;
    }
  }
}

}  // namespace chainfleet::testing

#include "worker/numerics/tracing/linear_response.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace chainfleet {
namespace {

double MobilityOf(const SgldSpec&, double alpha) { return alpha; }
double MobilityOf(const EmcmcSpec&, double alpha) { return alpha; }
double MobilityOf(const EmcmcGibbsSpec&, double alpha) { return alpha; }
double MobilityOf(const SghmcSpec& sampler, double alpha) {
  const double a = sampler.friction;
  return sampler.scheme == SghmcScheme::kFriction ? alpha / a : alpha * (2 - a) / (2 * a);
}

// theta and theta_a share the heat: together they move by alpha / 2.
double HeatOf(const EmcmcSpec&, double alpha) { return alpha / 4; }
// A constant force moves theta by alpha (1 - r^L) / (1 - r) in L inner steps, r = 1 - alpha g, and theta_a follows.
// Noise adds the variance alpha^2 V (1 - r^(2 L)) / (1 - r^2) in these steps. Half the ratio of variance and
// displacement is the heat. For even L and r <= -1 theta leaves every minimum.
std::optional<double> HeatOf(const EmcmcGibbsSpec& sampler, double alpha) {
  const double r = 1 - alpha / sampler.eta;
  if (sampler.inner_steps % 2 == 0 && r <= -1) return std::nullopt;
  if (r == -1) return alpha / 2 * static_cast<double>(sampler.inner_steps);  // the limit
  return alpha / 2 * (1 + std::pow(r, static_cast<double>(sampler.inner_steps))) / (1 + r);
}
double HeatOf(const auto& sampler, double alpha) requires requires { MobilityOf(sampler, alpha); }
{ return MobilityOf(sampler, alpha) / 2; }

// `k` >= 0. A division by 0 gives infinity, which means no bound.
double BoundOf(const SgldSpec&, double k, double) { return 2 / k; }
double BoundOf(const GradientUncertaintySpec&, double k, double) { return 2 / k; }

// 2 over the larger eigenvalue of A = [[k + g, -g], [-g, g + decay]].
double BoundOf(const EmcmcSpec& sampler, double k, double prior_precision) {
  const double g = 1 / sampler.eta, decay = sampler.anchor_decay ? prior_precision : 0;
  return 4 / (k + decay + 2 * g + std::hypot(k - decay, 2 * g));
}

// L steps from theta towards theta_a ~ N(theta, .) multiply theta's mean by (g + r^L k) / (k + g), r = 1 - alpha (k +
// g). This is at least -1 while (-r)^L <= 1 + 2 g / k for odd L, and at most 1 while r^L <= 1 for even L.
double BoundOf(const EmcmcGibbsSpec& sampler, double k, double) {
  const double g = 1 / sampler.eta;
  if (sampler.inner_steps % 2 == 0) return 2 / (k + g);
  return (1 + std::pow(1 + 2 * g / k, 1 / static_cast<double>(sampler.inner_steps))) / (k + g);
}

// True if L inner steps and then theta <- m shrink (theta, s). With r = 1 - alpha (k + g), c = g / (k + g) and a the
// weight of the old mean: s' = r^L s + (1 - r^L) c theta. m has the part a^L + q of s and 1 - a^L - q of c theta, q =
// (1 - a) sum over j = 1..L of a^(L - j) r^j. An eigenvalue leaves the unit circle at -1.
bool EntropyShrinks(int64_t inner_steps, double a, double k, double g, double alpha) {
  const double r = 1 - alpha * (k + g), c = g / (k + g), steps = static_cast<double>(inner_steps);
  const double kept = std::pow(a, steps), shrunk = std::pow(r, steps), q = (1 - a) * r * (shrunk - kept) / (r - a);
  const double of_theta = c * (1 - kept - q), determinant = of_theta * shrunk - (kept + q) * c * (1 - shrunk);
  return 1 + of_theta + shrunk + determinant > 0 && determinant < 1;
}

double EntropyBound(double eta, int64_t inner_steps, double averaging, double k) {
  const double g = 1 / eta, inner = 2 / (k + g);
  double low = 1 / (k + g), high = inner;  // r from 0 to -1
  if (EntropyShrinks(inner_steps, averaging, k, g, (1 - 1e-9) * inner)) return inner;
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (EntropyShrinks(inner_steps, averaging, k, g, middle) ? low : high) = middle;
  }
  return low;
}

double BoundOf(const EntropySgdSpec& sampler, double k, double) {
  return EntropyBound(sampler.eta, sampler.inner_steps, sampler.averaging, k);
}
double BoundOf(const EntropySgldSpec& sampler, double k, double) {
  return EntropyBound(sampler.eta, sampler.inner_steps, sampler.averaging, k);
}
double BoundOf(const SghmcSpec& sampler, double k, double) {
  return sampler.scheme == SghmcScheme::kFriction ? 2 * (2 - sampler.friction) / k : 4 / k;
}

// Heavy-ball momentum. SAM's ascent step adds at most rho k to a gradient: it moves the point of convergence but does
// not change stability. AdamW divides by the size of its gradients, so no step size makes it diverge.
double BoundOf(const auto& sampler, double k, double) requires requires { sampler.momentum; }
{
  if constexpr (requires { sampler.optimizer; }) {
    if (sampler.optimizer == Optimizer::kAdamw) return std::numeric_limits<double>::infinity();
  }
  return 2 * (1 + sampler.momentum) / k;
}
double BoundOf(const HmcSpec&, double k, double) { return 2 / std::sqrt(k); }

}  // namespace

std::optional<double> Mobility(const SamplerSpec& sampler, double step_size) {
  return std::visit(
      [&](const auto& kind) -> std::optional<double> {
        if constexpr (requires { MobilityOf(kind, step_size); }) return MobilityOf(kind, step_size);
        return std::nullopt;
      },
      sampler.kind);
}

std::optional<double> HeatOfNoise(const SamplerSpec& sampler, double step_size) {
  return std::visit(
      [&](const auto& kind) -> std::optional<double> {
        if constexpr (requires { HeatOf(kind, step_size); }) return HeatOf(kind, step_size);
        return std::nullopt;
      },
      sampler.kind);
}

std::optional<double> StableBelow(const SamplerSpec& sampler, double curvature, double prior_precision) {
  const double k = std::max(0.0, curvature);
  const double bound = std::visit(
      [&](const auto& kind) {
        if constexpr (requires { BoundOf(kind, k, prior_precision); }) return BoundOf(kind, k, prior_precision);
        return std::numeric_limits<double>::infinity();
      },
      sampler.kind);
  return std::isfinite(bound) ? std::optional(bound) : std::nullopt;
}

bool HasStabilityBound(const SamplerSpec& sampler) { return StableBelow(sampler, 1, 0).has_value(); }

}  // namespace chainfleet

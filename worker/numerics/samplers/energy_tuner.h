// The tuner of microcanonical dynamics: it lets the energy error of a step have the variance that is its target.
//
//   E the energy error of a step eps, D v the target: x = E^2 / (D v) + 1e-8, w = exp(-(log(x) / 9)^2 / 2), sums with
//   decay 99 / 101: eps <- (sum w x / eps^6 / sum w)^(-1/6)
//
// A step that is not finite is undone, and bounds all later ones by 0.8 of it. The numbers are those of the authors'
// scikit-learn-contrib/bde for MILE (mile.h).
#pragma once

namespace chainfleet {

// A chain's numbers, kept by its kernel.
struct TunedStep {
  double &eps, &most, &error, &weight;
};

// After a step with this energy error; `target` is D v.
void AdaptStep(double energy_error, double target, TunedStep tuned);

// After a step that was not finite.
void BackOff(TunedStep tuned);

// The target at `done` of the tuner, from 0 to 1.
inline double TargetAt(double done, double start, double end) { return start + (end - start) * done; }

}  // namespace chainfleet

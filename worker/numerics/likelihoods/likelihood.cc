#include "worker/numerics/likelihoods/likelihood.h"

#include "core/base/check.h"

namespace chainfleet {

void Likelihood::Probabilities(const float*, float*) const { CHAINFLEET_CHECK(false) << "no likelihood of labels"; }

void Likelihood::Moments(const float*, double, double*, double*) const {
  CHAINFLEET_CHECK(false) << "no likelihood of numbers";
}

std::unique_ptr<const Likelihood> MakeLikelihood(const LikelihoodKind& spec, int64_t num_classes,
                                                 const TargetUnits& units) {
  if (units != TargetUnits()) {
    LikelihoodKind within = spec;
    auto* gaussian = std::get_if<GaussianLikelihood>(&within);
    if (gaussian != nullptr && gaussian->variance) *gaussian->variance /= units.stddev * units.stddev;
    return MakeInTargetUnits(MakeLikelihood(within, num_classes, TargetUnits()), units);
  }
  if (const auto* gaussian = std::get_if<GaussianLikelihood>(&spec)) return MakeGaussian(*gaussian);
  if (const auto* gaussian = std::get_if<HeteroscedasticGaussianLikelihood>(&spec)) {
    return MakeHeteroscedasticGaussian(gaussian->deviation);
  }
  if (std::holds_alternative<BernoulliLikelihood>(spec)) return MakeBernoulli();
  return MakeCategorical(num_classes);
}

}  // namespace chainfleet

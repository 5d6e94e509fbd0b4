// Tests every setting of every sampler at the edge of its domain and just beyond.
#include "core/domain/sampler_spec.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>
#include <vector>

namespace chainfleet {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Refusal {
  SamplerKind sampler;
  const char* field;
};

std::vector<Refusal> RefusalsOfMicrocanonicalSamplers() {
  return {
      {MileSpec{.optimizer_steps = -1}, "optimizer_steps"},
      {MileSpec{.validation_fraction = 1}, "validation_fraction"},
      {MileSpec{.patience = 0}, "patience"},
      {MileSpec{.warm_up_steps = -1}, "warm_up_steps"},
      {MileSpec{.initial_step = 0}, "initial_step"},
      {MileSpec{.energy_variance_start = 0}, "energy_variance_start"},
      {MileSpec{.energy_variance_end = kNan}, "energy_variance_end"},
      {MileSpec{.decoherence_length = 0}, "decoherence_length"},
      {SmileSpec{.optimizer_steps = -1}, "optimizer_steps"},
      {SmileSpec{.warm_up_steps = -1}, "warm_up_steps"},
      {SmileSpec{.initial_step = 0}, "initial_step"},
      {SmileSpec{.energy_variance_start = 0}, "energy_variance_start"},
      {SmileSpec{.energy_variance_end = kNan}, "energy_variance_end"},
      {SmileSpec{.noise_share = 0}, "noise_share"},
      {SmileSpec{.decoherence_length = 0}, "decoherence_length"},
  };
}

std::vector<Refusal> Refusals() {
  std::vector<Refusal> all = RefusalsOfMicrocanonicalSamplers();
  const std::vector<Refusal> others = {
      {SgdSpec{.momentum = 1}, "momentum"},
      {SgdSpec{.momentum = -0.1}, "momentum"},
      {SgldSpec{.gradient_noise = -1}, "gradient_noise"},
      {SgldSpec{.gradient_noise = kInfinity}, "gradient_noise"},
      {SgldSpec{.noise_free_fraction = 1}, "noise_free_fraction"},
      {SghmcSpec{.friction = 0}, "friction"},
      {SghmcSpec{.friction = 1.1}, "friction"},
      {SghmcSpec{.noise_free_fraction = 1}, "noise_free_fraction"},
      {EmcmcSpec{.eta = 0}, "eta"},
      {EmcmcSpec{.eta = kNan}, "eta"},
      {EmcmcSpec{.noise_free_fraction = -0.1}, "noise_free_fraction"},
      {EmcmcGibbsSpec{.eta = -1}, "eta"},
      {EmcmcGibbsSpec{.inner_steps = 0}, "inner_steps"},
      {EntropySgdSpec{.eta = 0}, "eta"},
      {EntropySgdSpec{.inner_steps = 0}, "inner_steps"},
      {EntropySgdSpec{.averaging = 1}, "averaging"},
      {EntropySgldSpec{.eta = 0}, "eta"},
      {EntropySgldSpec{.inner_steps = 0}, "inner_steps"},
      {EntropySgldSpec{.averaging = -0.1}, "averaging"},
      {SamSpec{.rho = 0}, "rho"},
      {SamSpec{.momentum = 1}, "momentum"},
      {BsamSpec{.beta1 = 1}, "beta1"},
      {BsamSpec{.beta2 = 1}, "beta2"},
      {BsamSpec{.prior_precision = 0}, "prior_precision"},
      {BsamSpec{.rho = -1}, "rho"},
      {BsamSpec{.damping = -1}, "damping"},
      {BsamSpec{.initial_scale = 0}, "initial_scale"},
      {BsamSpec{.data_multiplier = 0}, "data_multiplier"},
      {BsamSpec{.parts = 0}, "parts"},
      {GradientUncertaintySpec{.threshold = kNan}, "threshold"},
      {GradientUncertaintySpec{.quantile = 0}, "quantile"},
      {GradientUncertaintySpec{.quantile = 1}, "quantile"},
      {HmcSpec{.leapfrog_steps = 0}, "leapfrog_steps"},
      {PenaltyMhSpec{.num_batches = 2}, "num_batches"},  // the variance of two batches is no estimate
      {PenaltyMhSpec{.effective_data_size = 0}, "effective_data_size"},
      {BatchedMhSpec{.num_batches = 0}, "num_batches"},
      {TemperedMhSpec{.data_size = 0}, "data_size"},
      {BarkerMhSpec{.num_batches = 2}, "num_batches"},
      {SwaSpec{.momentum = 1}, "momentum"},
      {SwaSpec{.start_epoch = -1}, "start_epoch"},
      {SwagSpec{.momentum = 1}, "momentum"},
      {SwagSpec{.start_epoch = -1}, "start_epoch"},
      {SwagSpec{.max_rank = 1}, "max_rank"},
      {SwagSpec{.scale = 0}, "scale"},
      {SwagSpec{.draws = 0}, "draws"},
      {McDropoutSpec{.rate = 0}, "rate"},
      {McDropoutSpec{.rate = 1}, "rate"},
      {McDropoutSpec{.momentum = 1}, "momentum"},
      {McDropoutSpec{.draws = 0}, "draws"},
      {LaplaceSpec{.momentum = 1}, "momentum"},
      {LaplaceSpec{.draws = 0}, "draws"},
  };
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

TEST(SamplerSpec, RefusesASettingOutsideItsDomainAtItsPath) {
  for (const Refusal& refusal : Refusals()) {
    const SamplerSpec sampler{refusal.sampler};
    const auto violations = Validate(sampler);
    const std::string path = "sampler." + sampler.name() + "." + refusal.field;
    ASSERT_EQ(violations.size(), 1u) << path;
    EXPECT_EQ(violations[0].path, path);
  }
}

// Lists the fields without bounds of their own; every other field needs a line above.
TEST(SamplerSpec, HasNoSettingWithoutADomain) {
  std::set<std::string> tried = {"sghmc.scheme",         "emcmc.anchor_decay", "gradient_uncertainty.scale_free",
                                 "penalty_mh.proposal",  "penalty_mh.penalty", "batched_mh.proposal",
                                 "barker_mh.proposal",   "swag.diagonal",      "laplace.structure",
                                 "sgd.optimizer",        "swa.optimizer",      "swag.optimizer",
                                 "mc_dropout.optimizer", "laplace.optimizer",  "mile.descent",
                                 "smile.descent",        "smile.precondition"};
  for (const Refusal& refusal : Refusals()) {
    tried.insert(SamplerSpec{refusal.sampler}.name() + "." + refusal.field);
  }
  ForEachAlternative<SamplerKind>([&](auto spec) {
    decltype(spec)::Fields(spec, [&](const char* field, const auto&...) {
      EXPECT_EQ(tried.count(std::string(spec.kName) + "." + field), 1u) << spec.kName << "." << field;
    });
  });
}

TEST(SamplerSpec, TakesTheEdgesThatBelongToTheDomain) {
  for (const SamplerKind& sampler : std::vector<SamplerKind>{
           SgdSpec{.momentum = 0}, SghmcSpec{.friction = 1}, EmcmcGibbsSpec{.inner_steps = 1},
           EntropySgdSpec{.averaging = 0}, BsamSpec{.beta1 = 0, .rho = 0, .damping = 0}, HmcSpec{.leapfrog_steps = 1},
           PenaltyMhSpec{.num_batches = 3}, BarkerMhSpec{.num_batches = 3}, BatchedMhSpec{.num_batches = 1},
           SwagSpec{.start_epoch = 0, .max_rank = 2, .draws = 1},
           MileSpec{.optimizer_steps = 0, .validation_fraction = 0, .patience = 1, .warm_up_steps = 0},
           SmileSpec{.optimizer_steps = 0, .warm_up_steps = 0}}) {
    EXPECT_TRUE(Validate(SamplerSpec{sampler}).empty()) << SamplerSpec{sampler}.name();
  }
}

}  // namespace
}  // namespace chainfleet

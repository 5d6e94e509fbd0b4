// The samplers and their settings, as values. docs/explanation/sampling.md and the kernels in worker/numerics/samplers
// have the formulas and papers.
//
// A spec may declare: kAnchor, the sampler keeps theta and theta_a; kMetropolis, the sampler stays in place when a
// proposal is rejected, so that a draw's weight counts the steps it was held; kFullData, U(theta) must depend on theta
// alone (no batch norm by mini-batch, no augmentation); `draws`, networks sampled after the training steps; kDataPass,
// between the two the sampler passes once over all data, one batch a step; own_burn_in(), the steps of a run before the
// sampler's law holds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/limits.h"
#include "core/base/status.h"
#include "core/domain/fields.h"

namespace chainfleet {

// How a chain descends to a mode: heavy-ball momentum, or AdamW (Loshchilov & Hutter, ICLR 2019).
enum class Optimizer { kHeavyBall, kAdamw };
inline std::initializer_list<const char*> EnumNames(Optimizer) {
  static constexpr std::initializer_list<const char*> kNames = {"heavy_ball", "adamw"};
  return kNames;
}

// Stochastic gradient descent; no noise.
struct SgdSpec {
  static constexpr char kName[] = "sgd";
  double momentum = 0.9;
  Optimizer optimizer = Optimizer::kHeavyBall;
  static void Fields(auto& self, auto&& visit) {
    visit("momentum", self.momentum, Below(0, 1));
    visit("optimizer", self.optimizer);
  }
  bool operator==(const SgdSpec&) const = default;
};

// theta -= alpha grad U + sqrt(2 alpha T) z. `gradient_noise` is V, the variance of the mini-batch gradient of U: the
// injected noise then has variance 2 alpha T - alpha^2 V. 0: no correction.
struct SgldSpec {
  static constexpr char kName[] = "sgld";
  double gradient_noise = 0;
  double noise_free_fraction = 0;  // noise-free share of each cycle, from the cycle's start
  static void Fields(auto& self, auto&& visit) {
    visit("gradient_noise", self.gradient_noise, AtLeast(0));
    visit("noise_free_fraction", self.noise_free_fraction, Below(0, 1));
  }
  bool operator==(const SgldSpec&) const = default;
};

enum class SghmcScheme { kFriction, kBaoa };
inline std::initializer_list<const char*> EnumNames(SghmcScheme) {
  static constexpr std::initializer_list<const char*> kNames = {"friction", "baoa"};
  return kNames;
}

// Stochastic-gradient Hamiltonian Monte Carlo with friction a in (0, 1].
struct SghmcSpec {
  static constexpr char kName[] = "sghmc";
  double friction = 0.1;
  SghmcScheme scheme = SghmcScheme::kFriction;
  double noise_free_fraction = 0;
  static void Fields(auto& self, auto&& visit) {
    visit("friction", self.friction, Bounds{.least = 0, .most = 1, .open_least = true});
    visit("scheme", self.scheme);
    visit("noise_free_fraction", self.noise_free_fraction, Below(0, 1));
  }
  bool operator==(const SghmcSpec&) const = default;
};

// Entropy-MCMC, joint form (Li & Zhang): theta and its anchor theta_a are coupled with variance eta; both updates use
// the old values. `anchor_decay`: the prior acts on theta_a too, as in the official code.
struct EmcmcSpec {
  static constexpr char kName[] = "emcmc";
  static constexpr bool kAnchor = true;
  double eta = 4e-4;
  bool anchor_decay = false;
  double noise_free_fraction = 0;
  static void Fields(auto& self, auto&& visit) {
    visit("eta", self.eta, Above(0));
    visit("anchor_decay", self.anchor_decay);
    visit("noise_free_fraction", self.noise_free_fraction, Below(0, 1));
  }
  bool operator==(const EmcmcSpec&) const = default;
};

// Entropy-MCMC, Gibbs-like: theta_a ~ N(theta, eta T I) before every `inner_steps` steps of theta.
struct EmcmcGibbsSpec {
  static constexpr char kName[] = "emcmc_gibbs";
  static constexpr bool kAnchor = true;
  double eta = 4e-4;
  int64_t inner_steps = 1;
  static void Fields(auto& self, auto&& visit) {
    visit("eta", self.eta, Above(0));
    visit("inner_steps", self.inner_steps, Between(1, 1e6));
  }
  bool operator==(const EmcmcGibbsSpec&) const = default;
};

// Entropy-SGD (Chaudhari et al., ICLR 2017): theta follows the running mean of an inner chain every `inner_steps`.
struct EntropySgdSpec {
  static constexpr char kName[] = "entropy_sgd";
  double eta = 4e-4;
  int64_t inner_steps = 20;
  double averaging = 0.75;  // weight of the old mean
  static void Fields(auto& self, auto&& visit) {
    visit("eta", self.eta, Above(0));
    visit("inner_steps", self.inner_steps, Between(1, 1e6));
    visit("averaging", self.averaging, Below(0, 1));
  }
  bool operator==(const EntropySgdSpec&) const = default;
};

// Entropy-SGD with noise sqrt(h eta) z on theta.
struct EntropySgldSpec {
  static constexpr char kName[] = "entropy_sgld";
  double eta = 4e-4;
  int64_t inner_steps = 20;
  double averaging = 0.75;
  static void Fields(auto& self, auto&& visit) { EntropySgdSpec::Fields(self, visit); }
  bool operator==(const EntropySgldSpec&) const = default;
};

// Sharpness-aware minimisation (Foret et al., ICLR 2021).
struct SamSpec {
  static constexpr char kName[] = "sam";
  double rho = 0.05;
  double momentum = 0.9;
  static void Fields(auto& self, auto&& visit) {
    visit("rho", self.rho, Above(0));
    visit("momentum", self.momentum, Below(0, 1));
  }
  bool operator==(const SamSpec&) const = default;
};

// Bayesian SAM (Möllenhoff & Khan, ICLR 2023). The method has its own prior.
struct BsamSpec {
  static constexpr char kName[] = "bsam";
  double beta1 = 0.9, beta2 = 0.999;
  double prior_precision = 40;
  double rho = 0.01;
  double damping = 0.1;
  double initial_scale = 1;    // s0
  double data_multiplier = 1;  // N of the method over N stored; the official script uses 4 for its augmentation
  int64_t parts = 8;           // parts of each batch; each part has its own sample
  static void Fields(auto& self, auto&& visit) {
    visit("beta1", self.beta1, Below(0, 1));
    visit("beta2", self.beta2, Below(0, 1));
    visit("prior_precision", self.prior_precision, Above(0));
    visit("rho", self.rho, AtLeast(0));
    visit("damping", self.damping, AtLeast(0));
    visit("initial_scale", self.initial_scale, Above(0));
    visit("data_multiplier", self.data_multiplier, Above(0));
    visit("parts", self.parts, Between(1, 1024));
  }
  bool operator==(const BsamSpec&) const = default;
};

// Sampling with gradient uncertainty (Park et al.): adds noise where the gradients of a batch disagree. Without a
// threshold, uses the `quantile` of the values seen in burn-in. `scale_free` divides the value by sum |X_i|^2.
struct GradientUncertaintySpec {
  static constexpr char kName[] = "gradient_uncertainty";
  static constexpr bool kFullData = true;
  std::optional<double> threshold;
  double quantile = 0.5;
  bool scale_free = true;
  static void Fields(auto& self, auto&& visit) {
    visit("threshold", self.threshold);
    visit("quantile", self.quantile, Inside(0, 1));
    visit("scale_free", self.scale_free);
  }
  bool operator==(const GradientUncertaintySpec&) const = default;
};

// Random-walk Metropolis on the full data; the schedule is the proposal's standard deviation.
struct RandomWalkSpec {
  static constexpr char kName[] = "random_walk";
  static constexpr bool kMetropolis = true, kFullData = true;
  static void Fields(auto&, auto&&) {}
  bool operator==(const RandomWalkSpec&) const = default;
};

// Metropolis-adjusted Langevin on the full data: q = N(theta - alpha grad U, 2 alpha T).
struct MalaSpec {
  static constexpr char kName[] = "mala";
  static constexpr bool kMetropolis = true, kFullData = true;
  static void Fields(auto&, auto&&) {}
  bool operator==(const MalaSpec&) const = default;
};

// Hamiltonian Monte Carlo on the full data; the schedule is the leapfrog step.
struct HmcSpec {
  static constexpr char kName[] = "hmc";
  static constexpr bool kMetropolis = true, kFullData = true;
  int64_t leapfrog_steps = 10;
  static void Fields(auto& self, auto&& visit) { visit("leapfrog_steps", self.leapfrog_steps, Between(1, 10'000)); }
  bool operator==(const HmcSpec&) const = default;
};

enum class Proposal { kRandomWalk, kLangevin };
inline std::initializer_list<const char*> EnumNames(Proposal) {
  static constexpr std::initializer_list<const char*> kNames = {"random_walk", "langevin"};
  return kNames;
}

// kCorrected: u_B, for an estimated variance. kPlain: chi2 / 2.
enum class Penalty { kCorrected, kPlain };
inline std::initializer_list<const char*> EnumNames(Penalty) {
  static constexpr std::initializer_list<const char*> kNames = {"corrected", "plain"};
  return kNames;
}

// Penalty Metropolis-Hastings (Ceperley & Dewing 1999; Kawasaki & Holzmann): estimates the energy difference on
// `num_batches` disjoint mini-batches. The likelihood counts as `effective_data_size` examples; default N.
struct PenaltyMhSpec {
  static constexpr char kName[] = "penalty_mh";
  static constexpr bool kMetropolis = true, kFullData = true;
  Proposal proposal = Proposal::kRandomWalk;
  int64_t num_batches = 20;
  Penalty penalty = Penalty::kCorrected;
  std::optional<double> effective_data_size;
  static void Fields(auto& self, auto&& visit) {
    visit("proposal", self.proposal);
    visit("num_batches", self.num_batches, Between(3, 100'000));
    visit("penalty", self.penalty);
    visit("effective_data_size", self.effective_data_size, Above(0));
  }
  bool operator==(const PenaltyMhSpec&) const = default;
};

// Penalty Metropolis-Hastings without the penalty: biased, for comparison.
struct BatchedMhSpec {
  static constexpr char kName[] = "batched_mh";
  static constexpr bool kMetropolis = true, kFullData = true;
  Proposal proposal = Proposal::kRandomWalk;
  int64_t num_batches = 1;
  static void Fields(auto& self, auto&& visit) {
    visit("proposal", self.proposal);
    visit("num_batches", self.num_batches, Between(1, 100'000));
  }
  bool operator==(const BatchedMhSpec&) const = default;
};

// Random-walk Metropolis on the full data with the likelihood to the power data_size / N, for comparison.
struct TemperedMhSpec {
  static constexpr char kName[] = "tempered_mh";
  static constexpr bool kMetropolis = true, kFullData = true;
  double data_size = 0;
  static void Fields(auto& self, auto&& visit) { visit("data_size", self.data_size, Above(0)); }
  bool operator==(const TemperedMhSpec&) const = default;
};

// Barker's acceptance with the noise of the mini-batch difference corrected towards the logistic law (Seita et al.).
struct BarkerMhSpec {
  static constexpr char kName[] = "barker_mh";
  static constexpr bool kMetropolis = true, kFullData = true;
  Proposal proposal = Proposal::kRandomWalk;
  int64_t num_batches = 20;
  static void Fields(auto& self, auto&& visit) {
    visit("proposal", self.proposal);
    visit("num_batches", self.num_batches, Between(3, 100'000));
  }
  bool operator==(const BarkerMhSpec&) const = default;
};

// Stochastic weight averaging (Izmailov et al., UAI 2018): the draw is the mean of the snapshots.
struct SwaSpec {
  static constexpr char kName[] = "swa";
  double momentum = 0.9;
  int64_t start_epoch = 1;
  int64_t draws = 1;
  Optimizer optimizer = Optimizer::kHeavyBall;
  static void Fields(auto& self, auto&& visit) {
    visit("momentum", self.momentum, Below(0, 1));
    visit("optimizer", self.optimizer);
    visit("start_epoch", self.start_epoch, Between(0, limits::kMaxEpochs));
  }
  bool operator==(const SwaSpec&) const = default;
};

// SWAG (Maddox et al., NeurIPS 2019): a Gaussian from the SGD iterates, one snapshot a data epoch from `start_epoch`.
struct SwagSpec {
  static constexpr char kName[] = "swag";
  double momentum = 0.9;
  int64_t start_epoch = 1;
  bool diagonal = false;
  int64_t max_rank = 20;        // K, columns of the deviation matrix
  std::optional<double> scale;  // scale of the covariance; default 0.5, diagonal 1
  int64_t draws = 30;
  Optimizer optimizer = Optimizer::kHeavyBall;
  static void Fields(auto& self, auto&& visit) {
    visit("momentum", self.momentum, Below(0, 1));
    visit("optimizer", self.optimizer);
    visit("start_epoch", self.start_epoch, Between(0, limits::kMaxEpochs));
    visit("diagonal", self.diagonal);
    visit("max_rank", self.max_rank, Between(2, 1000));
    visit("scale", self.scale, Above(0));
    visit("draws", self.draws, Between(1, 1e6));
  }
  bool operator==(const SwagSpec&) const = default;
};

// MC dropout (Gal & Ghahramani, ICML 2016), on weights: each input unit of a linear or convolution layer except the
// first is dropped with probability `rate` for a whole step, and for a whole draw.
struct McDropoutSpec {
  static constexpr char kName[] = "mc_dropout";
  double rate = 0.05;
  double momentum = 0.9;
  int64_t draws = 30;
  Optimizer optimizer = Optimizer::kHeavyBall;
  static void Fields(auto& self, auto&& visit) {
    visit("rate", self.rate, Inside(0, 1));
    visit("momentum", self.momentum, Below(0, 1));
    visit("optimizer", self.optimizer);
    visit("draws", self.draws, Between(1, 1e6));
  }
  bool operator==(const McDropoutSpec&) const = default;
};

enum class CurvatureStructure { kKronecker, kDiagonal, kFull };
inline std::initializer_list<const char*> EnumNames(CurvatureStructure) {
  static constexpr std::initializer_list<const char*> kNames = {"kronecker", "diagonal", "full"};
  return kNames;
}

// Laplace's approximation (MacKay 1992): a Gaussian around the end point of SGD. Its precision is the Gauss-Newton
// matrix over all data plus the precision of the prior.
struct LaplaceSpec {
  static constexpr char kName[] = "laplace";
  static constexpr bool kFullData = true, kDataPass = true;
  CurvatureStructure structure = CurvatureStructure::kKronecker;
  double momentum = 0.9;
  int64_t draws = 30;
  Optimizer optimizer = Optimizer::kHeavyBall;
  static void Fields(auto& self, auto&& visit) {
    visit("structure", self.structure);
    visit("momentum", self.momentum, Below(0, 1));
    visit("optimizer", self.optimizer);
    visit("draws", self.draws, Between(1, 1e6));
  }
  bool operator==(const LaplaceSpec&) const = default;
};

// Microcanonical Langevin ensembles (Sommer et al., ICLR 2025): AdamW towards a mode, then microcanonical Langevin
// dynamics on all data, first with a tuner of the step and of the length L. The schedule is AdamW's learning rate.
struct MileSpec {
  static constexpr char kName[] = "mile";
  static constexpr bool kFullData = true, kMicrocanonical = true;
  int64_t optimizer_steps = 1000;
  Optimizer descent = Optimizer::kAdamw;
  double validation_fraction = 0.15;  // share of the data that stops the descent early
  int64_t patience = 20;              // descent steps without a better validation loss
  int64_t warm_up_steps = 50'000;     // steps of the tuner
  double initial_step = 1e-3;
  double energy_variance_start = 0.5, energy_variance_end = 0.1;  // target per coordinate, over the warm-up
  std::optional<double> decoherence_length;                       // L; default: tuned
  int64_t own_burn_in() const { return optimizer_steps + warm_up_steps; }
  static void Fields(auto& self, auto&& visit) {
    visit("optimizer_steps", self.optimizer_steps, Between(0, limits::kMaxStepsPerChain));
    visit("descent", self.descent);
    visit("validation_fraction", self.validation_fraction, Below(0, 1));
    visit("patience", self.patience, Between(1, limits::kMaxStepsPerChain));
    visit("warm_up_steps", self.warm_up_steps, Between(0, limits::kMaxStepsPerChain));
    visit("initial_step", self.initial_step, Above(0));
    visit("energy_variance_start", self.energy_variance_start, Above(0));
    visit("energy_variance_end", self.energy_variance_end, Above(0));
    visit("decoherence_length", self.decoherence_length, Above(0));
  }
  bool operator==(const MileSpec&) const = default;
};

// Microcanonical Langevin dynamics on mini-batches (Sommer et al., arXiv 2602.06500): a descent, then the dynamics of
// mile, with a tuner of the step and a scale of each parameter from the noise of its gradients. The schedule is the
// descent's rate.
struct SmileSpec {
  static constexpr char kName[] = "smile";
  static constexpr bool kMicrocanonical = true;
  int64_t optimizer_steps = 1000;
  Optimizer descent = Optimizer::kAdamw;
  int64_t warm_up_steps = 50'000;  // steps of the tuner
  double initial_step = 1e-3;
  double energy_variance_start = 0.5, energy_variance_end = 0.1;  // target per coordinate, over the warm-up
  bool precondition = true;                                       // scales by the noise of gradients
  double noise_share = 0.1;                  // how much the noise turns the velocity, as a multiple of the refresh
  std::optional<double> decoherence_length;  // L; default: tuned to noise_share
  int64_t own_burn_in() const { return optimizer_steps + warm_up_steps; }
  static void Fields(auto& self, auto&& visit) {
    visit("optimizer_steps", self.optimizer_steps, Between(0, limits::kMaxStepsPerChain));
    visit("descent", self.descent);
    visit("warm_up_steps", self.warm_up_steps, Between(0, limits::kMaxStepsPerChain));
    visit("initial_step", self.initial_step, Above(0));
    visit("energy_variance_start", self.energy_variance_start, Above(0));
    visit("energy_variance_end", self.energy_variance_end, Above(0));
    visit("precondition", self.precondition);
    visit("noise_share", self.noise_share, Above(0));
    visit("decoherence_length", self.decoherence_length, Above(0));
  }
  bool operator==(const SmileSpec&) const = default;
};

using SamplerKind =
    std::variant<SgldSpec, EmcmcSpec, SgdSpec, SghmcSpec, EmcmcGibbsSpec, EntropySgdSpec, EntropySgldSpec, SamSpec,
                 BsamSpec, GradientUncertaintySpec, RandomWalkSpec, MalaSpec, HmcSpec, PenaltyMhSpec, BatchedMhSpec,
                 TemperedMhSpec, BarkerMhSpec, SwaSpec, SwagSpec, McDropoutSpec, LaplaceSpec, MileSpec, SmileSpec>;

// clang-format off
template <typename Spec> concept IsAnchored = requires { Spec::kAnchor; };
template <typename Spec> concept IsMetropolis = requires { Spec::kMetropolis; };
template <typename Spec> concept NeedsFullData = requires { Spec::kFullData; };
template <typename Spec> concept PassesOverData = requires { Spec::kDataPass; };
template <typename Spec> concept IsMicrocanonical = requires { Spec::kMicrocanonical; };
// clang-format on

struct SamplerSpec {
  SamplerKind kind;

  std::string name() const {
    return std::visit([](const auto& s) { return std::string(s.kName); }, kind);
  }
  bool has_anchor() const {
    return std::visit([]<typename S>(const S&) { return IsAnchored<S>; }, kind);
  }
  bool is_metropolis() const {
    return std::visit([]<typename S>(const S&) { return IsMetropolis<S>; }, kind);
  }
  bool needs_full_data() const {
    return std::visit([]<typename S>(const S&) { return NeedsFullData<S>; }, kind);
  }
  bool passes_over_data() const {
    return std::visit([]<typename S>(const S&) { return PassesOverData<S>; }, kind);
  }
  bool is_microcanonical() const {
    return std::visit([]<typename S>(const S&) { return IsMicrocanonical<S>; }, kind);
  }
  bool uses_adamw() const {
    return std::visit(
        [](const auto& s) {
          if constexpr (requires { s.optimizer; }) return s.optimizer == Optimizer::kAdamw;
          return false;
        },
        kind);
  }
  // Returns the number of networks sampled after the training steps, one a step; 0: draws come from training steps.
  int64_t posterior_draws() const;
  // Returns the number of steps of a run before the sampler's law holds; 0: that is for the job's burn-in to say.
  int64_t own_burn_in() const;
  // Returns the number of disjoint mini-batches of a Metropolis step's energy comparison; 0: the step uses all data.
  int64_t num_batches() const;
  // Returns the share of each cycle, from the cycle's start, that runs at temperature 0.
  double noise_free_fraction() const;
  bool operator==(const SamplerSpec&) const = default;
};

// Returns violations with paths below "sampler".
std::vector<FieldViolation> Validate(const SamplerSpec& sampler);

}  // namespace chainfleet

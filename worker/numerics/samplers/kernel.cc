#include "worker/numerics/samplers/kernel.h"

#include <iterator>

namespace chainfleet {
namespace {

Kernel Make(const SgldSpec& spec) { return Sgld{spec.gradient_noise}; }
Kernel Make(const EmcmcSpec& spec) { return Emcmc{spec.eta, spec.anchor_decay}; }
Kernel Make(const EmcmcGibbsSpec& spec) { return EmcmcGibbs{spec.eta, spec.inner_steps}; }
Kernel Make(const EntropySgdSpec& spec) { return EntropySgd{spec.eta, spec.inner_steps, spec.averaging, false}; }
Kernel Make(const EntropySgldSpec& spec) { return EntropySgd{spec.eta, spec.inner_steps, spec.averaging, true}; }
Kernel Make(const SgdSpec& spec) { return Sgd{{spec.momentum, spec.optimizer}}; }
Kernel Make(const SghmcSpec& spec) { return Sghmc{spec.friction, spec.scheme}; }
Kernel Make(const SamSpec& spec) { return Sam{spec.rho, spec.momentum}; }
Kernel Make(const BsamSpec& spec) { return Bsam{spec}; }
Kernel Make(const SwaSpec& spec) { return Swag{{spec.momentum, spec.optimizer}, spec.start_epoch, 0, 0}; }
Kernel Make(const SwagSpec& spec) {
  return Swag{{spec.momentum, spec.optimizer},
              spec.start_epoch,
              spec.diagonal ? 0 : spec.max_rank,
              spec.scale.value_or(spec.diagonal ? 1 : 0.5)};
}
Kernel Make(const GradientUncertaintySpec& spec) { return GradientUncertainty{spec}; }
Kernel Make(const RandomWalkSpec&) { return RandomWalk{}; }
Kernel Make(const TemperedMhSpec& spec) { return RandomWalk{spec.data_size}; }
Kernel Make(const MalaSpec&) { return Mala{}; }
Kernel Make(const HmcSpec& spec) { return Hmc{spec.leapfrog_steps}; }
Kernel Make(const PenaltyMhSpec& spec) {
  const bool plain = spec.penalty == Penalty::kPlain;
  return MinibatchMh{plain ? MinibatchMh::Rule::kPlainPenalty : MinibatchMh::Rule::kPenalty, spec.proposal,
                     spec.num_batches, spec.effective_data_size.value_or(0)};
}
Kernel Make(const BatchedMhSpec& spec) {
  return MinibatchMh{MinibatchMh::Rule::kNone, spec.proposal, spec.num_batches};
}
Kernel Make(const BarkerMhSpec& spec) {
  return MinibatchMh{MinibatchMh::Rule::kBarker, spec.proposal, spec.num_batches};
}
Kernel Make(const McDropoutSpec& spec) { return McDropout{{spec.momentum, spec.optimizer}, spec.rate}; }
Kernel Make(const LaplaceSpec& spec) {
  return Laplace{{spec.momentum, spec.optimizer, /*couples_prior=*/true}, spec.structure};
}
Kernel Make(const MileSpec& spec) { return Mile{spec}; }
Kernel Make(const SmileSpec& spec) { return Smile{spec}; }

}  // namespace

absl::StatusOr<Kernel> MakeKernel(const SamplerSpec& spec) {
  return std::visit(
      [](const auto& kind) -> absl::StatusOr<Kernel> {
        if constexpr (requires { Make(kind); }) return Make(kind);
        return absl::UnimplementedError(std::string("sampler.") + kind.kName + ": this build has no such kernel");
      },
      spec.kind);
}

std::vector<std::string> ArenaNames(const Kernel& kernel) {
  return std::visit(
      [](const auto& k) {
        if constexpr (requires { k.Arenas(); })
          return k.Arenas();
        else
          return std::vector<std::string>(std::begin(k.kArenas), std::end(k.kArenas));
      },
      kernel);
}

std::string DrawArena(const Kernel& kernel, DrawKind kind) {
  return std::visit(
      [kind](const auto& k) -> std::string {
        if constexpr (requires { k.draw_arena(); }) {
          if (kind == DrawKind::kTheta) return k.draw_arena();
        }
        return ToString(kind);
      },
      kernel);
}

}  // namespace chainfleet

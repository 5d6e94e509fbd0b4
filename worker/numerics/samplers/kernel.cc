#include "worker/numerics/samplers/kernel.h"

#include <iterator>

namespace chainfleet {
namespace {

Kernel Make(const SgldSpec& spec) { return Sgld{spec.gradient_noise}; }
Kernel Make(const EmcmcSpec& spec) { return Emcmc{spec.eta, spec.anchor_decay}; }

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

#include "worker/numerics/samplers/kernel.h"

#include <iterator>

namespace chainfleet {
namespace {

Kernel Make(const SgldSpec&) { return Sgld{}; }
Kernel Make(const EmcmcSpec& spec) { return Emcmc{spec.eta}; }

}  // namespace

Kernel MakeKernel(const SamplerSpec& spec) {
  return std::visit([](const auto& kind) { return Make(kind); }, spec.kind);
}

std::vector<std::string> ArenaNames(const Kernel& kernel) {
  return std::visit([](const auto& k) { return std::vector<std::string>(std::begin(k.kArenas), std::end(k.kArenas)); },
                    kernel);
}

}  // namespace chainfleet

#include "core/domain/chain_memory.h"

#include <variant>

#include "core/base/saturating.h"
#include "core/domain/network_shape.h"
#include "core/domain/posthoc_rules.h"

namespace chainfleet {

int64_t StateCopies(const SamplerSpec& sampler) {
  constexpr int64_t kUsual = 3, kAveraging = 7;
  if (std::holds_alternative<SwaSpec>(sampler.kind)) return kAveraging;
  const auto* swag = std::get_if<SwagSpec>(&sampler.kind);
  if (swag == nullptr) return kUsual;
  return kAveraging + (swag->diagonal ? 0 : swag->max_rank);
}

int64_t EstimateChainBytes(const JobSpec& spec, const std::vector<int64_t>& input_shape, int64_t num_classes,
                           int64_t module_bytes) {
  constexpr int64_t kGradientAndProposals = 3;
  const int64_t copies = 2 * StateCopies(spec.sampler) + kGradientAndProposals;
  if (module_bytes > 0) return SaturatingMultiply(copies, module_bytes);
  const auto parameters = InferParameters(spec.model, input_shape, num_classes);
  if (!parameters.ok()) return 0;
  int64_t floats = SaturatingMultiply(copies, NumParameters(*parameters));
  if (spec.model.is_network()) {
    const auto network = InferNetwork(spec.model, input_shape, num_classes);
    if (network.ok()) {
      const int64_t of_example = SaturatingAdd(NumValues(input_shape), network->activation_floats);
      floats = SaturatingAdd(floats, SaturatingMultiply(SaturatingMultiply(2, spec.batch_size), of_example));
    }
  }
  return SaturatingAdd(SaturatingMultiply(floats, sizeof(float)), CurvatureBytes(spec.sampler, *parameters));
}

}  // namespace chainfleet

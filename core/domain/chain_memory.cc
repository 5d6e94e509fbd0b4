#include "core/domain/chain_memory.h"

#include <algorithm>
#include <variant>

#include "core/base/saturating.h"
#include "core/domain/network_shape.h"
#include "core/domain/posthoc_rules.h"
#include "core/domain/sweep_points.h"

namespace chainfleet {
namespace {

// Returns the bytes that a chain keeps for each example between steps: Metropolis kernels on all data keep its losses at
// theta and at the last proposal, mile its place in the chain's order.
int64_t BytesOfExample(const SamplerSpec& sampler) {
  constexpr int64_t kNumber = 8;
  if (sampler.is_metropolis() && sampler.num_batches() == 0) return 2 * kNumber;
  const auto* mile = std::get_if<MileSpec>(&sampler.kind);
  return mile != nullptr && mile->validation_fraction > 0 ? kNumber : 0;
}

}  // namespace

int64_t StateCopies(const SamplerSpec& sampler) {
  constexpr int64_t kUsual = 3, kMicrocanonical = 5, kAveraging = 7;
  if (sampler.is_microcanonical()) return kMicrocanonical;
  const auto square = static_cast<int64_t>(sampler.uses_adamw());
  if (std::holds_alternative<SwaSpec>(sampler.kind)) return kAveraging + square;
  const auto* swag = std::get_if<SwagSpec>(&sampler.kind);
  if (swag == nullptr) return kUsual + square;
  return kAveraging + square + (swag->diagonal ? 0 : swag->max_rank);
}

int64_t EstimateChainBytes(const JobSpec& spec, const std::vector<int64_t>& input_shape, int64_t num_classes,
                           const StoredModel* stored, int64_t num_examples) {
  constexpr int64_t kGradientAndProposals = 3;
  const int64_t copies = 2 * StateCopies(spec.sampler) + kGradientAndProposals;
  const int64_t of_examples = SaturatingMultiply(BytesOfExample(spec.sampler), num_examples);
  if (stored != nullptr && !stored->signature) {
    return SaturatingAdd(SaturatingMultiply(copies, stored->object.size_bytes), of_examples);
  }
  const auto parameters = InferParameters(spec.model, input_shape, num_classes, stored);
  if (!parameters.ok()) return 0;
  int64_t floats = SaturatingMultiply(copies, NumParameters(*parameters));
  if (spec.model.is_network()) {
    const auto network = InferNetwork(spec.model, input_shape, num_classes);
    if (network.ok()) {
      const int64_t of_file = stored == nullptr ? 0 : ActivationBytes(*stored->signature, spec.model.sample) / 4;
      const int64_t of_example =
          SaturatingAdd(NumValues(input_shape), SaturatingAdd(network->activation_floats, of_file));
      floats = SaturatingAdd(floats, SaturatingMultiply(SaturatingMultiply(2, spec.batch_size), of_example));
    }
  }
  const int64_t bytes = SaturatingAdd(SaturatingMultiply(floats, sizeof(float)), of_examples);
  return SaturatingAdd(bytes, CurvatureBytes(spec.sampler, *parameters));
}

int64_t EstimateDrawBytes(const JobPlan& plan, int64_t num_parameters) {
  const auto kinds = static_cast<int64_t>(KindsOf(plan.spec).size());
  if (plan.module && !plan.module->signature) return SaturatingMultiply(kinds, plan.module->object.size_bytes);
  return SaturatingMultiply(kinds * static_cast<int64_t>(sizeof(float)), num_parameters);
}

int64_t EstimateDrawBytes(const JobPlan& plan) {
  if (plan.module && !plan.module->signature) return EstimateDrawBytes(plan, 0);
  const Dataset data = plan.dataset.value_or(Dataset());
  const auto parameters = InferParameters(plan.spec.model, data.input_shape, NumClasses(data.targets), StoredOf(plan));
  return EstimateDrawBytes(plan, parameters.ok() ? NumParameters(*parameters) : 0);
}

int64_t EstimateStoredBytes(const JobPlan& plan) { return EstimateStoredBytes(plan, EstimateDrawBytes(plan)); }

int64_t EstimateStoredBytes(const JobPlan& plan, int64_t draw_bytes) {
  int64_t draws = PlanSteps(plan.spec, plan.dataset ? plan.dataset->num_rows : 1).NumDraws();
  if (const auto kept = plan.spec.retention.keep_last) draws = std::min(draws, *kept);
  return SaturatingMultiply(SaturatingMultiply(NumChains(plan.spec), draws), draw_bytes);
}

}  // namespace chainfleet

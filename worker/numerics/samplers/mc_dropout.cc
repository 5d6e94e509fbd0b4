#include "worker/numerics/samplers/mc_dropout.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "worker/numerics/arena/tensor_view.h"
#include "worker/numerics/samplers/anchored_langevin.h"

namespace chainfleet {
namespace {

// The factors z of weight tensor `tensor`, [C, 1, units, 1...], for its view [C, outputs, units, kernel...].
struct TensorMask {
  int64_t tensor;
  at::Tensor factors;
};

// The factors of all weights except the first. An inactive row gets the factors of its last step, and so the same draw.
std::vector<TensorMask> DrawMasks(const StepInputs& inputs, double rate, const ThetaArena& theta) {
  const std::vector<ParameterShape>& parameters = theta.layout().parameters();
  std::vector<int64_t> weights;
  for (size_t k = 0; k < parameters.size(); ++k) {
    if (parameters[k].shape.size() > 1) weights.push_back(static_cast<int64_t>(k));
  }
  weights.erase(weights.begin(), weights.begin() + std::min<int64_t>(1, static_cast<int64_t>(weights.size())));
  int64_t units = 0;
  for (const int64_t k : weights) units += parameters[k].shape[1];
  at::Tensor all = at::empty({theta.rows(), units}, at::kFloat);
  const float kept = static_cast<float>(1 / (1 - rate));
  for (int64_t row = 0; row < theta.rows(); ++row) {
    const ChainStep& chain = inputs.chains[row];
    const auto t = static_cast<uint64_t>(chain.active ? chain.t : chain.t - 1);
    float* factor = all.data_ptr<float>() + row * units;
    for (int64_t j = 0; j < units; j += 4) {
      const PhiloxBlock block = RandomBlock(chain.key, RngStream::kDropout, t, static_cast<uint32_t>(j / 4));
      for (int64_t w = 0; w < std::min<int64_t>(4, units - j); ++w) {
        factor[j + w] = UniformFloat(block.word[w]) <= rate ? 0 : kept;
      }
    }
  }
  if (theta.device().is_cuda()) all = Uploaded(all.const_data_ptr<float>(), all.sizes(), TorchDevice(theta.device()));
  std::vector<TensorMask> masks;
  int64_t first = 0;
  for (const int64_t k : weights) {
    std::vector<int64_t> shape(parameters[k].shape.size() + 1, 1);
    shape[0] = theta.rows();
    shape[2] = parameters[k].shape[1];
    masks.push_back({k, all.narrow(1, first, shape[2]).reshape(shape)});
    first += shape[2];
  }
  return masks;
}

}  // namespace

Late<StepInfo> McDropout::Step(const StepInputs& inputs, SamplerState* state) const {
  ThetaArena& masked = state->arenas[2];
  const std::vector<TensorMask> masks = DrawMasks(inputs, rate, state->theta());
  RowsView(masked).copy_(RowsView(state->theta()));
  for (const TensorMask& mask : masks) ParameterView(masked, mask.tensor).mul_(mask.factors);

  BatchRows batch = FillBatches(inputs, masked);
  batch.dropout = false;
  inputs.scratch->energy = Evaluate(inputs, masked, batch, &inputs.scratch->gradient);
  for (const TensorMask& mask : masks) ParameterView(inputs.scratch->gradient, mask.tensor).mul_(mask.factors);

  const auto training =
      OnlyActive(inputs.chains, [&](const ChainStep& chain) { return chain.t < inputs.plan->training_steps; });
  return descent.Update(ForChains(inputs, training), state);
}

}  // namespace chainfleet

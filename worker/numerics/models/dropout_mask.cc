#include "worker/numerics/models/dropout_mask.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "worker/numerics/arena/tensor_view.h"

namespace chainfleet {

at::Tensor DropoutMask(double rate, const StepKey* steps, int64_t chains, int64_t values, const at::Tensor& like,
                       uint32_t* blocks) {
  const at::Tensor mask = at::empty({chains, values}, at::kFloat);
  auto* out = mask.mutable_data_ptr<float>();
  const float kept = static_cast<float>(1 / (1 - rate));
  for (const StepKey* step = steps; step != steps + chains; ++step, out += values) {
    for (int64_t i = 0; i < values; i += 4) {  // a block gives four values
      const auto index = *blocks + static_cast<uint32_t>(i / 4);
      const PhiloxBlock block = RandomBlock(step->key, RngStream::kDropout, step->step, index);
      for (int64_t w = 0; w < std::min<int64_t>(4, values - i); ++w) {
        out[i + w] = UniformFloat(block.word[w]) < rate ? 0 : kept;
      }
    }
  }
  *blocks += static_cast<uint32_t>((values + 3) / 4);
  if (like.is_cuda()) return Uploaded(mask.const_data_ptr<float>(), mask.sizes(), like.device()).to(like.options());
  return mask.to(like.options());
}

}  // namespace chainfleet

#include "worker/numerics/potentials/batch_ids.h"

#include <ATen/ops/empty.h>

#include "worker/numerics/arena/tensor_view.h"
#include "worker/numerics/kernels/cuda_module.h"

namespace chainfleet {

at::Tensor BatchIds(const BatchRows& batch, int64_t first, int64_t count, at::Device device) {
  if (batch.draw == nullptr) return Uploaded(batch.row(first), {count * batch.size}, device);
  static_assert(sizeof(StepKey) == 2 * sizeof(int64_t));
  const at::Tensor keys = Uploaded(reinterpret_cast<const int64_t*>(batch.keys + first), {2 * count}, device);
  at::Tensor ids = at::empty({count * batch.size}, at::TensorOptions().dtype(at::kLong).device(device));
  FillIdsCuda(*batch.draw, static_cast<const StepKey*>(keys.const_data_ptr()), count,
              static_cast<int64_t*>(ids.mutable_data_ptr()), device.index());
  return ids;
}

}  // namespace chainfleet

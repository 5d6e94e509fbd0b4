#include "worker/numerics/arena/tensor_view.h"

#include <ATen/ATen.h>

namespace chainfleet {
namespace {

at::Tensor View(const float* data, at::IntArrayRef sizes, at::IntArrayRef strides, Device device) {
  return at::from_blob(const_cast<float*>(data), sizes, strides,
                       at::TensorOptions().dtype(at::kFloat).device(TorchDevice(device)));
}

template <typename T>
at::Tensor Upload(const T* values, at::IntArrayRef sizes, at::Device device) {
  constexpr at::ScalarType kType = c10::CppTypeToScalarType<T>::value;
  const at::Tensor host = at::from_blob(const_cast<T*>(values), sizes, at::dtype(kType));
  return device.is_cuda() ? host.pin_memory().to(device, kType, /*non_blocking=*/true) : host;
}

}  // namespace

at::Device TorchDevice(Device device) {
  return device.is_cuda() ? at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(device.cuda_index))
                          : at::Device(at::kCPU);
}

at::Tensor Uploaded(const int64_t* values, at::IntArrayRef sizes, at::Device device) {
  return Upload(values, sizes, device);
}
at::Tensor Uploaded(const float* values, at::IntArrayRef sizes, at::Device device) {
  return Upload(values, sizes, device);
}
at::Tensor Uploaded(const double* values, at::IntArrayRef sizes, at::Device device) {
  return Upload(values, sizes, device);
}

at::Tensor RowsView(const ThetaArena& arena) {
  return View(arena.data(), {arena.rows(), arena.row_stride()}, {arena.row_stride(), 1}, arena.device());
}

at::Tensor ParameterView(const ThetaArena& arena, int64_t k) {
  std::vector<int64_t> sizes = arena.layout().parameters()[k].shape;
  std::vector<int64_t> strides(sizes.size() + 1, 1);
  for (size_t i = sizes.size(); i > 1; --i) strides[i - 1] = strides[i] * sizes[i - 1];
  strides[0] = arena.row_stride();
  sizes.insert(sizes.begin(), arena.rows());
  return View(arena.data() + arena.layout().spans()[k].padded, sizes, strides, arena.device());
}

}  // namespace chainfleet

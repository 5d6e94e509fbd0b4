#include "worker/numerics/models/input_columns.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include "core/domain/parameter_shape.h"
#include "worker/numerics/models/exported_steps.h"

namespace chainfleet {
namespace {

at::Tensor Cast(const at::Tensor& x, at::ScalarType type) {
  if (type == at::kFloat) return x.contiguous();
  const at::Tensor whole = type == at::kBool ? x.ne(0).to(at::kFloat) : x.round();
  // A GPU would finish all earlier steps to answer.
  TORCH_CHECK_VALUE(
      x.is_cuda() || whole.equal(x), "the network takes ",
      type == at::kBool ? "a mask, but the inputs are not 0 or 1" : "indices, but the inputs are not whole numbers");
  return whole.to(type).contiguous();
}

}  // namespace

InputColumns::InputColumns(const std::vector<ExportedSignature>& inputs) {
  for (const ExportedSignature& input : inputs) {
    types_.push_back(EmptyFor({.type = input.type, .shape = {0}}).scalar_type());
    shapes_.push_back(input.shape);
    sizes_.push_back(NumValues(input.shape));
  }
}

std::vector<at::Tensor> InputColumns::Parts(const at::Tensor& x) const {
  return sizes_.size() == 1 ? std::vector{x} : x.split_with_sizes(sizes_, -1);
}

std::vector<at::Tensor> InputColumns::Split(const at::Tensor& x) const {
  std::vector<at::Tensor> inputs = Parts(x);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs.size() > 1) {
      std::vector<int64_t> shape(x.sizes().begin(), x.sizes().end() - 1);
      shape.insert(shape.end(), shapes_[i].begin(), shapes_[i].end());
      inputs[i] = inputs[i].reshape(shape);
    }
    inputs[i] = Cast(inputs[i], types_[i]);
  }
  return inputs;
}

at::Tensor InputColumns::Possible(const at::Tensor& x) const {
  constexpr int64_t kLongAxis = 3;
  std::vector<at::Tensor> parts = Parts(x);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (types_[i] == at::kFloat) continue;
    parts[i] = parts[i].gt(0).to(at::kFloat);
    if (shapes_[i].empty() || shapes_[i].back() < kLongAxis) continue;
    const at::Tensor along = parts[i].unflatten(-1, {-1, shapes_[i].back()});
    along.select(-1, 0).fill_(1);
    along.select(-1, 1).fill_(0);
  }
  return parts.size() == 1 ? parts[0] : at::cat(parts, -1);
}

}  // namespace chainfleet

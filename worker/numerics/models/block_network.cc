#include "worker/numerics/models/block_network.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "worker/numerics/kernels/lanes.h"
#include "worker/numerics/models/eager_network.h"
#include "worker/numerics/models/fused_network.h"
#include "worker/numerics/models/scripted_network.h"

namespace chainfleet {
namespace {

static_assert(kMaxBlockRows == kSliceImages);

std::vector<int64_t> FlatOffsets(const std::vector<ParameterShape>& parameters) {
  std::vector<int64_t> offsets;
  for (const ParameterShape& parameter : parameters) offsets.push_back(parameter.offset);
  return offsets;
}

// Each image's numbers are computed alone (kernels/lanes.h).
class FusedBlock final : public BlockNetwork {
 public:
  FusedBlock(Architecture architecture, const std::vector<ParameterShape>& parameters)
      : network_(std::move(architecture), FlatOffsets(parameters)),
        work_(network_.architecture(), kSliceImages, /*training=*/false) {}

  void Read(const InputRows& rows, int64_t first, int64_t count) override {
    std::vector<int64_t> ids(count);
    std::iota(ids.begin(), ids.end(), first);
    images_ = count;
    network_.Gather(rows, ids.data(), count, 0, &work_);
  }

  const float* Outputs(const float* draw) override {
    network_.Forward(draw, images_, 0, &work_);
    return work_.dense.back().y.data();
  }

 private:
  const FusedNetwork network_;
  NetworkWorkspace work_;
  int64_t images_ = 0;
};

// Blocks have one shape, missing images are zeros: an operation that went another way for another number of images
// would change bits.
class EagerBlock final : public BlockNetwork {
 public:
  EagerBlock(NetworkShape network, std::shared_ptr<const ScriptedNetwork> script)
      : network_(std::move(network)), script_(std::move(script)) {
    std::vector<int64_t> shape = {1, kMaxBlockRows};
    shape.insert(shape.end(), network_.input_shape.begin(), network_.input_shape.end());
    x_ = at::zeros(shape, at::kFloat);
  }

  void Read(const InputRows& rows, int64_t first, int64_t count) override {
    float* x = x_.data_ptr<float>();
    for (int64_t i = 0; i < count; ++i) rows.Read(first + i, x + i * rows.row_size());
    std::fill(x + count * rows.row_size(), x + x_.numel(), 0.0f);
  }

  const float* Outputs(const float* draw) override {
    const c10::AutoGradMode autograd(false);
    lanes_ = OutputsOf(draw).view({kSliceGroups, kLanes, network_.num_outputs}).transpose(1, 2).contiguous();
    return lanes_.const_data_ptr<float>();
  }

 private:
  // [1, shape...] each; from_blob takes a mutable pointer, nothing writes through it.
  static std::vector<at::Tensor> Views(const std::vector<ParameterShape>& tensors, const float* draw) {
    std::vector<at::Tensor> views;
    for (const ParameterShape& tensor : tensors) {
      std::vector<int64_t> shape = {1};
      shape.insert(shape.end(), tensor.shape.begin(), tensor.shape.end());
      views.push_back(at::from_blob(const_cast<float*>(draw) + tensor.offset, shape, at::kFloat));
    }
    return views;
  }

  at::Tensor OutputsOf(const float* draw) const {
    if (script_ != nullptr) return script_->Logits(Views(network_.parameters, draw), x_);
    const std::vector<at::Tensor> statistics = Views(network_.statistics, draw);
    return EagerLogits(network_, Views(network_.parameters, draw), x_, {.statistics = &statistics});
  }

  const NetworkShape network_;
  const std::shared_ptr<const ScriptedNetwork> script_;
  at::Tensor x_;      // [1, kMaxBlockRows, input_shape...]
  at::Tensor lanes_;  // outputs as they are handed out
};

class LinearBlock final : public BlockNetwork {
 public:
  explicit LinearBlock(const std::vector<ParameterShape>& parameters)
      : width_(NumValues(parameters[0].shape)), has_intercept_(parameters.size() > 1) {}

  void Read(const InputRows& rows, int64_t first, int64_t count) override {
    x_.resize(count * width_);
    for (int64_t i = 0; i < count; ++i) rows.Read(first + i, x_.data() + i * width_);
  }

  const float* Outputs(const float* draw) override {
    for (int64_t i = 0; i * width_ < static_cast<int64_t>(x_.size()); ++i) {
      double output = has_intercept_ ? draw[width_] : 0;
      for (int64_t j = 0; j < width_; ++j) output += static_cast<double>(x_[i * width_ + j]) * draw[j];
      outputs_[i] = static_cast<float>(output);
    }
    return outputs_;
  }

 private:
  const int64_t width_;
  const bool has_intercept_;
  std::vector<float> x_;
  float outputs_[kMaxBlockRows] = {};
};

}  // namespace

std::unique_ptr<BlockNetwork> MakeBlockNetwork(const NetworkShape& network,
                                               std::shared_ptr<const ScriptedNetwork> script) {
  if (std::optional<Architecture> fused = FusedArchitecture(network)) {
    return std::make_unique<FusedBlock>(*std::move(fused), network.parameters);
  }
  return std::make_unique<EagerBlock>(network, std::move(script));
}

std::unique_ptr<BlockNetwork> MakeLinearBlock(const std::vector<ParameterShape>& parameters) {
  return std::make_unique<LinearBlock>(parameters);
}

}  // namespace chainfleet

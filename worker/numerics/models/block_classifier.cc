#include "worker/numerics/models/block_classifier.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "worker/numerics/kernels/softmax.h"
#include "worker/numerics/models/eager_network.h"
#include "worker/numerics/models/fused_network.h"
#include "worker/numerics/models/scripted_network.h"

namespace chainfleet {
namespace {

static_assert(kMaxBlockImages == kSliceImages);

std::vector<int64_t> FlatOffsets(const std::vector<ParameterShape>& parameters) {
  std::vector<int64_t> offsets;
  for (const ParameterShape& parameter : parameters) offsets.push_back(parameter.offset);
  return offsets;
}

// Each image's numbers are computed alone (kernels/lanes.h).
class FusedClassifier final : public BlockClassifier {
 public:
  FusedClassifier(Architecture architecture, const std::vector<ParameterShape>& parameters)
      : network_(std::move(architecture), FlatOffsets(parameters)),
        work_(network_.architecture(), kSliceImages, /*training=*/false) {}

  void Read(const InputRows& rows, int64_t first, int64_t count) override {
    std::vector<int64_t> ids(count);
    std::iota(ids.begin(), ids.end(), first);
    images_ = count;
    network_.Gather(rows, ids.data(), count, 0, &work_);
  }

  const BlockScores& Classify(const float* draw) override {
    const int64_t classes = network_.architecture().num_classes();
    scores_.probability.resize(images_ * classes);
    scores_.logit.resize(images_ * classes);
    scores_.log_normaliser.resize(images_);
    network_.Forward(draw, images_, 0, &work_);
    NetworkWorkspace::Dense& top = work_.dense.back();
    for (int64_t first = 0; first < images_; first += kLanes) {
      const float* logits = top.y.data() + first * classes;
      alignas(64) float log_normaliser[kLanes];
      Softmax(logits, classes, top.dy.data(), log_normaliser);
      for (int64_t l = 0; l < std::min(kLanes, images_ - first); ++l) {
        scores_.log_normaliser[first + l] = log_normaliser[l];
        for (int64_t k = 0; k < classes; ++k) {
          scores_.probability[(first + l) * classes + k] = top.dy.data()[k * kLanes + l];
          scores_.logit[(first + l) * classes + k] = logits[k * kLanes + l];
        }
      }
    }
    return scores_;
  }

 private:
  const FusedNetwork network_;
  NetworkWorkspace work_;
  int64_t images_ = 0;
  BlockScores scores_;
};

// Blocks have one shape, missing images are zeros: an operation that went another way for another number of images
// would change bits.
class EagerClassifier final : public BlockClassifier {
 public:
  EagerClassifier(NetworkShape network, std::shared_ptr<const ScriptedNetwork> script)
      : network_(std::move(network)), script_(std::move(script)) {
    std::vector<int64_t> shape = {1, kMaxBlockImages};
    shape.insert(shape.end(), network_.input_shape.begin(), network_.input_shape.end());
    x_ = at::zeros(shape, at::kFloat);
  }

  void Read(const InputRows& rows, int64_t first, int64_t count) override {
    float* x = x_.data_ptr<float>();
    for (int64_t i = 0; i < count; ++i) rows.Read(first + i, x + i * rows.row_size());
    std::fill(x + count * rows.row_size(), x + x_.numel(), 0.0f);
    images_ = count;
  }

  const BlockScores& Classify(const float* draw) override {
    const c10::AutoGradMode autograd(false);
    const at::Tensor logits = Logits(draw).squeeze(0);
    CopyRows(logits, &scores_.logit);
    CopyRows(at::softmax(logits, 1), &scores_.probability);
    CopyRows(at::logsumexp(logits, {1}), &scores_.log_normaliser);
    return scores_;
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

  at::Tensor Logits(const float* draw) const {
    if (script_ != nullptr) return script_->Logits(Views(network_.parameters, draw), x_);
    const std::vector<at::Tensor> statistics = Views(network_.statistics, draw);
    return EagerLogits(network_, Views(network_.parameters, draw), x_, {.statistics = &statistics});
  }

  void CopyRows(const at::Tensor& of_block, std::vector<float>* out) const {
    const at::Tensor rows = of_block.narrow(0, 0, images_).contiguous();
    out->assign(rows.const_data_ptr<float>(), rows.const_data_ptr<float>() + rows.numel());
  }

  const NetworkShape network_;
  const std::shared_ptr<const ScriptedNetwork> script_;
  at::Tensor x_;  // [1, kMaxBlockImages, input_shape...]
  int64_t images_ = 0;
  BlockScores scores_;
};

}  // namespace

std::unique_ptr<BlockClassifier> MakeBlockClassifier(const NetworkShape& network,
                                                     std::shared_ptr<const ScriptedNetwork> script) {
  if (std::optional<Architecture> fused = FusedArchitecture(network)) {
    return std::make_unique<FusedClassifier>(*std::move(fused), network.parameters);
  }
  return std::make_unique<EagerClassifier>(network, std::move(script));
}

}  // namespace chainfleet

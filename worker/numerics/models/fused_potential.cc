#include "worker/numerics/models/fused_potential.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "worker/numerics/arena/tensor_view.h"
#include "worker/numerics/kernels/square_sum.h"
#include "worker/numerics/likelihoods/likelihood.h"
#include "worker/numerics/models/fused_network.h"
#include "worker/numerics/models/network_curvature.h"
#include "worker/numerics/tensors/single_threaded.h"

namespace chainfleet {
namespace {

std::vector<int64_t> PaddedOffsets(const Layout& layout) {
  std::vector<int64_t> offsets;
  for (const TensorSpan& span : layout.spans()) offsets.push_back(span.padded);
  return offsets;
}

class FusedPotential final : public Potential {
 public:
  FusedPotential(Architecture architecture, NetworkShape network, std::shared_ptr<const Layout> layout,
                 std::shared_ptr<const ResidentDataset> dataset, const NetworkSettings& settings)
      : shape_(std::move(network)),
        layout_(std::move(layout)),
        dataset_(std::move(dataset)),
        likelihood_(MakeLikelihood(settings.likelihood, dataset_->num_classes(), settings.target_units)),
        targets_(dataset_->TargetNumbers(settings.target_units)),
        augmentation_(settings.augmentation),
        prior_precision_(settings.prior_precision),
        rows_(dataset_->description().input_type, dataset_->input_bytes().data(), architecture.input_shape,
              settings.normalisation),
        network_(std::move(architecture), PaddedOffsets(*layout_)) {}

  const std::shared_ptr<const Layout>& layout() const override { return layout_; }
  int64_t num_examples() const override { return dataset_->description().num_rows; }
  double prior_precision() const override { return prior_precision_; }

  void Evaluate(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, double* energy) override {
    Evaluate(theta, batch, gradient, energy, nullptr);
  }

  bool EvaluateWithNorms(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, double* energy,
                         double* squared_norms) override {
    if (!std::exchange(with_norms_, true)) workspaces_.clear();
    Evaluate(theta, batch, gradient, energy, squared_norms);
    // The backward pass started with deltas multiplied by N/n.
    const double scale = DataScale(batch);
    for (int64_t i = 0; i < theta.rows() * batch.size; ++i) {
      squared_norms[i] /= scale * scale;
      if (likelihood_->has_log_variance()) squared_norms[i] += slopes_[i] * slopes_[i];
    }
    return true;
  }

  void Losses(const ThetaArena& theta, const BatchRows& batch, double* losses) override {
    const Piece slice = [&](int64_t row, int64_t slice, NetworkWorkspace* work) {
      Forward(theta.row(row), batch, row, slice, 1, work, losses);
    };
    Run(theta.rows(), batch.size, slice, nullptr, 0);
  }

  bool AddCurvature(const ThetaArena& theta, const CurvatureSlice* slices) override {
    RunSingleThreaded(theta.rows(), [&](int64_t row) {
      const auto [sum, first, count] = slices[row];
      if (sum == nullptr) return;
      std::vector<int64_t> shape = {1, count};
      shape.insert(shape.end(), shape_.input_shape.begin(), shape_.input_shape.end());
      const at::Tensor x = at::empty(shape, at::kFloat);
      for (int64_t i = 0; i < count; ++i) rows_.Read(first + i, x.data_ptr<float>() + i * rows_.row_size());
      std::vector<at::Tensor> parameters;
      for (size_t k = 0; k < layout_->spans().size(); ++k) {
        parameters.push_back(ParameterView(theta, static_cast<int64_t>(k)).narrow(0, row, 1));
      }
      AddNetworkCurvature(shape_, *likelihood_, parameters, x, sum);
    });
    return true;
  }

  void LogPrior(const ThetaArena& theta, const double* prior_precisions, double* log_prior) override {
    for (int64_t row = 0; row < theta.rows(); ++row) log_prior[row] = LogPriorOf(theta, prior_precisions, row);
  }

 private:
  // Computes one slice or part of one chain (fused_network.h).
  using Piece = std::function<void(int64_t row, int64_t index, NetworkWorkspace* work)>;

  // `squared_norms` may be null; they are scaled by (N/n)^2.
  void Evaluate(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, double* energy,
                double* squared_norms) {
    const double scale = DataScale(batch);
    losses_.resize(theta.rows() * batch.size);
    const Piece slice = [&](int64_t row, int64_t slice, NetworkWorkspace* work) {
      // Do this first: it brings theta into the cache for the products.
      if (slice == 0) energy[row] = -LogPriorOf(theta, batch.prior_precisions, row);
      Forward(theta.row(row), batch, row, slice, static_cast<float>(scale), work, losses_.data());
      double* norms = squared_norms == nullptr ? nullptr : squared_norms + row * batch.size;
      network_.Backward(theta.row(row), batch.size, slice, work, norms);
    };
    const Piece part = [&](int64_t row, int64_t part, NetworkWorkspace* work) {
      network_.GradientPart(part, batch.size, *work, gradient->row(row));
    };
    Run(theta.rows(), batch.size, slice, part, network_.num_parts());
    for (int64_t row = 0; row < theta.rows(); ++row) {
      const double* losses = losses_.data() + row * batch.size;
      double sum = 0;
      for (int64_t i = 0; i < batch.size; ++i) sum += losses[i];
      energy[row] += scale * sum;
      if (!likelihood_->has_log_variance()) continue;
      const auto slopes = slopes_.begin() + row * batch.size;
      *LogVariance(gradient->row(row)) = static_cast<float>(scale * std::accumulate(slopes, slopes + batch.size, 0.0));
    }
  }

  // The likelihood's own parameter in a row: the layout's last tensor.
  template <typename Float>
  Float* LogVariance(Float* row) const {
    return row + layout_->spans().back().padded;
  }

  // N / n.
  double DataScale(const BatchRows& batch) const {
    return static_cast<double>(num_examples()) / static_cast<double>(batch.size);
  }

  double LogPriorOf(const ThetaArena& theta, const double* prior_precisions, int64_t row) const {
    const double precision = prior_precisions == nullptr ? prior_precision_ : prior_precisions[row];
    return -precision / 2 * SquareSum(theta.row(row), theta.row_stride());
  }

  void Run(int64_t chains, int64_t images, const Piece& slice, const Piece& part, int64_t num_parts) {
    const int64_t threads = at::get_num_threads(), slices = NumSlices(images);
    if (images > workspace_images_) workspaces_.clear();
    workspace_images_ = std::max(workspace_images_, images);
    if (likelihood_->has_log_variance()) slopes_.resize(chains * images);
    while (static_cast<int64_t>(workspaces_.size()) < threads) {
      workspaces_.emplace_back(network_.architecture(), workspace_images_, true, with_norms_);
    }
    const int64_t whole = chains - chains % threads;
    at::parallel_for(0, whole, 1, [&](int64_t first, int64_t last) {
      NetworkWorkspace* work = &workspaces_[at::get_thread_num()];
      for (int64_t row = first; row < last; ++row) {
        for (int64_t s = 0; s < slices; ++s) slice(row, s, work);
        for (int64_t p = 0; p < num_parts; ++p) part(row, p, work);
      }
    });
    NetworkWorkspace* shared = &workspaces_[0];
    for (int64_t row = whole; row < chains; ++row) {
      at::parallel_for(0, slices, 1, [&](int64_t first, int64_t last) {
        for (int64_t s = first; s < last; ++s) slice(row, s, shared);
      });
      at::parallel_for(0, num_parts, 1, [&](int64_t first, int64_t last) {
        for (int64_t p = first; p < last; ++p) part(row, p, shared);
      });
    }
  }

  void Gather(const BatchRows& batch, int64_t row, int64_t slice, NetworkWorkspace* work) const {
    ImageChange changes[kSliceImages];
    const bool changed = augmentation_.any() && batch.keys != nullptr;
    const int64_t first = slice * kSliceImages, last = std::min(batch.size, first + kSliceImages);
    for (int64_t i = first; changed && i < last; ++i) {
      const StepKey& step = batch.keys[row];
      changes[i - first] = DrawImageChange(augmentation_, step.key, step.step, static_cast<uint32_t>(i));
    }
    network_.Gather(rows_, batch.row(row), batch.size, slice, work, changed ? changes : nullptr);
  }

  // Losses (and slopes_) of the slice's images of chain `row`, and `scale` times their gradient by the outputs.
  void Forward(const float* theta, const BatchRows& batch, int64_t row, int64_t slice, float scale,
               NetworkWorkspace* work, double* losses) {
    const int64_t* ids = batch.row(row);
    Gather(batch, row, slice, work);
    network_.Forward(theta, batch.size, slice, work);
    const int64_t outputs = network_.architecture().num_outputs();
    const NetworkWorkspace::Dense& top = work->dense.back();
    const int64_t last = std::min(batch.size, (slice + 1) * kSliceImages);
    for (int64_t first = slice * kSliceImages; first < last; first += kLanes) {
      float targets[kLanes];
      LaneExamples examples{.outputs = top.y.data() + first * outputs, .targets = targets};
      examples.count = std::min(kLanes, last - first);
      for (int64_t l = 0; l < examples.count; ++l) targets[l] = targets_[ids[first + l]];
      if (likelihood_->has_log_variance()) examples.log_variance = *LogVariance(theta);
      LaneLosses seen;
      likelihood_->Evaluate(examples, scale, top.dy.data() + first * outputs, &seen);
      std::copy_n(seen.loss, examples.count, losses + row * batch.size + first);
      if (likelihood_->has_log_variance()) {
        std::copy_n(seen.slope, examples.count, slopes_.begin() + row * batch.size + first);
      }
    }
  }

  NetworkShape shape_;
  std::shared_ptr<const Layout> layout_;
  std::shared_ptr<const ResidentDataset> dataset_;
  const std::unique_ptr<const Likelihood> likelihood_;
  const std::vector<float> targets_;  // [N]
  AugmentationSpec augmentation_;
  double prior_precision_;
  InputRows rows_;
  FusedNetwork network_;
  std::vector<NetworkWorkspace> workspaces_;  // one per thread
  int64_t workspace_images_ = 0;
  bool with_norms_ = false;     // workspaces have room for EvaluateWithNorms
  std::vector<double> losses_;  // [C, n]
  std::vector<double> slopes_;  // [C, n]: derivatives with respect to the likelihood's log variance, if any
};

}  // namespace

std::unique_ptr<Potential> MakeFusedPotential(Architecture architecture, NetworkShape network,
                                              std::shared_ptr<const Layout> layout,
                                              std::shared_ptr<const ResidentDataset> dataset,
                                              const NetworkSettings& settings) {
  return std::make_unique<FusedPotential>(std::move(architecture), std::move(network), std::move(layout),
                                          std::move(dataset), settings);
}

}  // namespace chainfleet

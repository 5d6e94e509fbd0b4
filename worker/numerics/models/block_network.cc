#include "worker/numerics/models/block_network.h"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "worker/numerics/kernels/gather.h"
#include "worker/numerics/kernels/lane_buffer.h"
#include "worker/numerics/kernels/lanes.h"
#include "worker/numerics/models/fused_network.h"
#include "worker/numerics/models/lane_network.h"
#include "worker/numerics/models/stored_network.h"

namespace chainfleet {
namespace {

static_assert(kMaxBlockRows == kSliceImages);

std::vector<int64_t> FlatOffsets(const std::vector<ParameterShape>& parameters) {
  std::vector<int64_t> offsets;
  for (const ParameterShape& parameter : parameters) offsets.push_back(parameter.offset);
  return offsets;
}

// Computes the numbers of each image separately (kernels/lanes.h).
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

// As FusedBlock, for layers that the fused kernels do not support.
class LaneBlock final : public BlockNetwork {
 public:
  explicit LaneBlock(const NetworkShape& network)
      : network_(network),
        inputs_(NumValues(network.input_shape)),
        staging_(kLanes * RowStride(inputs_)),
        x_(kMaxBlockRows * inputs_),
        y_(kMaxBlockRows * network.num_outputs) {}

  void Read(const InputRows& rows, int64_t first, int64_t count) override {
    groups_ = NumGroups(count);
    for (int64_t g = 0; g < groups_; ++g) {
      const int64_t images = std::min(count - g * kLanes, kLanes);
      for (int64_t i = 0; i < images; ++i) {
        rows.Read(first + g * kLanes + i, staging_.data() + i * RowStride(inputs_));
      }
      RowsToLanes(staging_.data(), RowStride(inputs_), images, inputs_, x_.data() + g * inputs_ * kLanes);
    }
  }

  const float* Outputs(const float* draw) override {
    network_.Forward(draw, groups_, x_.data(), y_.data());
    return y_.data();
  }

 private:
  LaneNetwork network_;
  const int64_t inputs_;
  int64_t groups_ = 0;
  LaneBuffer<float> staging_;  // [16][RowStride(inputs)]
  LaneBuffer<float> x_, y_;    // [group][inputs | outputs][16]
};

// Passes of one size (RowsOfPass), because kernels of LibTorch choose their order of summation by the number of rows.
class ScriptBlock final : public BlockNetwork {
 public:
  explicit ScriptBlock(std::shared_ptr<const StoredNetwork> script)
      : script_(std::move(script)),
        pass_(script_->PassOfRows()),
        draw_(at::zeros({script_->shape().draw_size()}, at::kFloat)),
        parameters_(TensorsOfDraw(script_->shape().parameters, draw_)),
        statistics_(TensorsOfDraw(script_->shape().statistics, draw_)),
        y_(kMaxBlockRows * script_->shape().num_outputs) {
    std::vector<int64_t> shape = {1, kMaxBlockRows * pass_.step + pass_.size};
    const std::vector<int64_t>& input = script_->shape().input_shape;
    shape.insert(shape.end(), input.begin(), input.end());
    x_ = at::zeros(shape, at::kFloat);
  }

  // Fills the last pass with copies of the last row.
  void Read(const InputRows& rows, int64_t first, int64_t count) override {
    count_ = count;
    const int64_t size = pass_.size;
    filled_ = (count * pass_.step + size - 1) / size * size;
    for (int64_t i = 0; i < filled_; ++i) {
      rows.Read(first + std::min(i / pass_.step, count - 1), x_.data_ptr<float>() + i * rows.row_size());
    }
    features_.clear();
    for (int64_t start = 0; start < filled_ && script_->HasFeatures(); start += size) {
      features_.push_back(script_->Features(x_.narrow(1, start, size).squeeze(0).clone()));
    }
  }

  // Draw and rows are copied to aligned memory, because libraries of LibTorch choose kernels by alignment, too.
  const float* Outputs(const float* draw) override {
    const c10::AutoGradMode autograd(false);
    std::copy_n(draw, draw_.numel(), draw_.mutable_data_ptr<float>());
    const int64_t outputs = script_->shape().num_outputs;
    for (int64_t start = 0; start < filled_; start += pass_.size) {
      const at::Tensor y = OutputsOfPass(start).contiguous();
      const int64_t first = start / pass_.step, last = std::min(count_, (start + pass_.size) / pass_.step);
      for (int64_t i = first; i < last; ++i) {
        const auto* const row = y.const_data_ptr<float>() + (i * pass_.step - start) * outputs;
        for (int64_t k = 0; k < outputs; ++k) y_.data()[(i / kLanes * outputs + k) * kLanes + i % kLanes] = row[k];
      }
    }
    return y_.data();
  }

 private:
  // [pass_.size, K]
  at::Tensor OutputsOfPass(int64_t start) const {
    const ForwardMode mode{.statistics = &statistics_};
    if (features_.empty())
      return script_->Logits(parameters_, x_.narrow(1, start, pass_.size).clone(), mode).squeeze(0);
    std::vector<at::Tensor> features;
    for (const at::Tensor& feature : features_[start / pass_.size]) features.push_back(feature.clone().unsqueeze(0));
    return script_->LogitsOf(parameters_, features, mode).squeeze(0);
  }

  const std::shared_ptr<const StoredNetwork> script_;
  const RowsOfPass pass_;
  const at::Tensor draw_;
  const std::vector<at::Tensor> parameters_, statistics_;  // views of draw_
  int64_t count_ = 0, filled_ = 0;                         // rows, and positions of x_ that hold them
  at::Tensor x_;                                           // [1, kMaxBlockRows * step + size, input_shape...]
  std::vector<std::vector<at::Tensor>> features_;          // one for each pass; empty: the network has none
  LaneBuffer<float> y_;                                    // [group][outputs][16]
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
                                               std::shared_ptr<const StoredNetwork> script) {
  if (std::optional<Architecture> fused = FusedArchitecture(network)) {
    return std::make_unique<FusedBlock>(*std::move(fused), network.parameters);
  }
  if (script != nullptr) return std::make_unique<ScriptBlock>(std::move(script));
  return std::make_unique<LaneBlock>(network);
}

std::unique_ptr<BlockNetwork> MakeLinearBlock(const std::vector<ParameterShape>& parameters) {
  return std::make_unique<LinearBlock>(parameters);
}

}  // namespace chainfleet

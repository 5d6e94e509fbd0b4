#include "worker/numerics/predict/flatness_run.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/base/rng_key.h"
#include "worker/numerics/dataset/input_rows.h"
#include "worker/numerics/dataset/resident_dataset.h"
#include "worker/numerics/models/example_gradients.h"
#include "worker/numerics/models/fused_network.h"
#include "worker/numerics/models/stored_network.h"
#include "worker/numerics/predict/served_model.h"
#include "worker/numerics/tensors/single_threaded.h"
#include "worker/numerics/tensors/torch_errors.h"

namespace chainfleet {
namespace {

using Theta = std::shared_ptr<const std::vector<float>>;

constexpr int64_t kBlockGradientFloats = int64_t{1} << 22;  // for the examples that a thread processes at once
constexpr int64_t kMaxBlockExamples = 16;
constexpr int64_t kChunk = 4096;  // parameters that a thread adds at once

// Running mean and sum of squared deviations of rows [m, D].
class RunningVariance {
 public:
  explicit RunningVariance(int64_t size) : mean_(size), squares_(size) {}

  void Add(const at::Tensor& rows) {
    const float* values = rows.const_data_ptr<float>();
    const auto size = static_cast<int64_t>(mean_.size());
    RunSingleThreaded((size + kChunk - 1) / kChunk, [&](int64_t chunk) {
      const int64_t begin = chunk * kChunk, end = std::min(begin + kChunk, size);
      for (int64_t row = 0; row < rows.size(0); ++row) {
        const double weight = 1 / static_cast<double>(count_ + row + 1);
        for (int64_t p = begin; p < end; ++p) {
          const double value = values[row * size + p], deviation = value - mean_[p];
          mean_[p] += deviation * weight;
          squares_[p] += deviation * (value - mean_[p]);
        }
      }
    });
    count_ += rows.size(0);
  }

  // Returns E[(g - E g)^2] and moves the memory out.
  std::vector<double> Take() {
    for (double& value : squares_) value /= static_cast<double>(count_);
    mean_ = {};
    return std::move(squares_);
  }

 private:
  int64_t count_ = 0;
  std::vector<double> mean_, squares_;  // [D]
};

// Radius x |theta| x a random unit vector, over the parameters only.
std::vector<float> RandomDirection(const std::vector<float>& theta, int64_t size, double radius, RngKey key) {
  std::vector<double> normal(size);
  RunSingleThreaded((size + kChunk - 1) / kChunk, [&](int64_t chunk) {
    for (int64_t p = chunk * kChunk; p < std::min((chunk + 1) * kChunk, size); ++p) {
      normal[p] = NormalDouble(key, RngStream::kProbe, 0, static_cast<uint32_t>(p));
    }
  });
  double theta_squares = 0, normal_squares = 0;
  for (int64_t p = 0; p < size; ++p) {
    theta_squares += static_cast<double>(theta[p]) * theta[p];
    normal_squares += normal[p] * normal[p];
  }
  const double scale = radius * std::sqrt(theta_squares / normal_squares);
  std::vector<float> direction(size);
  for (int64_t p = 0; p < size; ++p) direction[p] = static_cast<float>(scale * normal[p]);
  return direction;
}

class MeasuredFlatness final : public FlatnessRun {
 public:
  MeasuredFlatness(std::shared_ptr<const ServedModel> model, const FlatnessPlan& plan, ChainId chain, Theta theta,
                   Theta theta_a, std::shared_ptr<const ResidentDataset> data, int64_t first_row, int64_t num_rows)
      : model_(std::move(model)),
        plan_(plan),
        theta_(std::move(theta)),
        theta_a_(std::move(theta_a)),
        data_(std::move(data)),
        first_row_(first_row),
        num_rows_(num_rows),
        targets_(data_->TargetNumbers(model_->plan->target_units)),
        rows_(data_->description().input_type, data_->input_bytes().data(), model_->plan->input_shape,
              model_->plan->normalisation),
        size_(NumParameters(model_->network.parameters)),
        variance_(size_) {
    result_.chain = chain;
  }

  absl::StatusOr<bool> Advance() override {
    return CatchTorch("the flatness of a draw", [&]() -> absl::StatusOr<bool> {
      if (next_row_ < num_rows_) {
        AddGradients();
        if (next_row_ == num_rows_) Rank(variance_.Take());
      } else {
        AddPoint();
      }
      return std::ssize(result_.line_positions) == plan_.line_points;
    });
  }

  const Flatness& result() const override { return result_; }

 private:
  struct Thread {
    std::unique_ptr<BlockNetwork> network;
    LaneBuffer<float> scratch;
  };

  // Processes a block of examples on each thread.
  void AddGradients() {
    const int64_t block = std::clamp<int64_t>(kBlockGradientFloats / size_, 1, kMaxBlockExamples);
    const int64_t left = (num_rows_ - next_row_ + block - 1) / block;
    std::vector<at::Tensor> gradients(std::min<int64_t>(left, at::get_num_threads()));
    RunSingleThreaded(std::ssize(gradients), [&](int64_t b) {
      const int64_t first = next_row_ + b * block;
      gradients[b] = GradientsOf(first_row_ + first, std::min(block, num_rows_ - first));
    });
    for (const at::Tensor& rows : gradients) {
      variance_.Add(rows);
      next_row_ += rows.size(0);
    }
  }

  // [count, D]: gradients of rows [first, first + count) of the data set.
  at::Tensor GradientsOf(int64_t first, int64_t count) const {
    std::vector<int64_t> shape = {count};
    shape.insert(shape.end(), model_->network.input_shape.begin(), model_->network.input_shape.end());
    const at::Tensor x = at::empty(shape, at::kFloat);
    for (int64_t i = 0; i < count; ++i) rows_.Read(first + i, x.data_ptr<float>() + i * rows_.row_size());
    // from_blob takes a mutable pointer, but nothing writes through it.
    const at::Tensor draw = at::from_blob(const_cast<float*>(theta_->data()), {std::ssize(*theta_)}, at::kFloat);
    at::Tensor targets = at::from_blob(const_cast<float*>(targets_.data()) + first, {count}, at::kFloat);
    if (std::holds_alternative<Classes>(model_->plan->targets)) targets = targets.to(at::kLong);
    return ExampleGradients(model_->network, model_->script.get(), *model_->likelihood,
                            TensorsOfDraw(model_->network.parameters, draw),
                            TensorsOfDraw(model_->network.statistics, draw), x, targets)
        .contiguous();
  }

  void Rank(std::vector<double> diagonal) {
    result_.fisher_trace = std::accumulate(diagonal.begin(), diagonal.end(), 0.0);
    // Sort NaNs first: they must not count as flat.
    std::sort(diagonal.begin(), diagonal.end(),
              [](double a, double b) { return std::isnan(a) ? !std::isnan(b) : a > b; });
    result_.fisher_ranks = FisherRanks(size_, plan_.fisher_points);
    for (const int64_t rank : result_.fisher_ranks) result_.fisher_values.push_back(diagonal[rank - 1]);
  }

  // Computes the next point of each line.
  void AddPoint() {
    if (direction_.empty()) {
      const RngKey key = Fold(RngKey{plan_.seed}, static_cast<uint64_t>(result_.chain.index));
      direction_ = RandomDirection(*theta_, size_, plan_.radius, key);
    }
    const auto i = static_cast<double>(result_.line_positions.size());
    const double t = -1 + 2 * i / (plan_.line_points - 1);
    result_.line_positions.push_back(t);
    result_.random_line.push_back(MeanLossAt([&](int64_t p) { return t * direction_[p]; }));
    if (theta_a_ == nullptr) return;
    result_.anchor_line.push_back(
        MeanLossAt([&](int64_t p) { return t * (static_cast<double>((*theta_a_)[p]) - (*theta_)[p]); }));
  }

  // At theta + `step(p)` for parameter p; statistics are unchanged.
  template <typename Step>
  double MeanLossAt(const Step& step) {
    std::vector<float> draw = *theta_;
    for (int64_t p = 0; p < size_; ++p) draw[p] = static_cast<float>(draw[p] + step(p));
    const int64_t outputs = model_->likelihood->num_outputs();
    while (std::ssize(threads_) < at::get_num_threads()) {
      threads_.push_back({model_->make_block(), LaneBuffer<float>(outputs * kLanes)});
    }
    std::vector<double> losses(num_rows_);
    RunSingleThreaded((num_rows_ + kMaxBlockRows - 1) / kMaxBlockRows, [&](int64_t block) {
      const int64_t first = block * kMaxBlockRows, count = std::min(num_rows_ - first, kMaxBlockRows);
      LossesOf(draw, first, count, &threads_[at::get_thread_num()], losses.data() + first);
    });
    return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(num_rows_);
  }

  // Losses of rows [first, first + count), counted from first_row_.
  void LossesOf(const std::vector<float>& draw, int64_t first, int64_t count, Thread* thread, double* losses) const {
    thread->network->Read(rows_, first_row_ + first, count);
    const float* outputs = thread->network->Outputs(draw.data());
    for (int64_t i = 0; i < count; i += kLanes) {
      LaneExamples examples{.outputs = outputs + i * model_->likelihood->num_outputs()};
      examples.targets = targets_.data() + first_row_ + first + i;
      examples.count = std::min(kLanes, count - i);
      if (model_->likelihood->has_log_variance()) examples.log_variance = draw[model_->log_variance_at()];
      LaneLosses of_lanes;
      model_->likelihood->Evaluate(examples, 1, thread->scratch.data(), &of_lanes);
      std::copy_n(of_lanes.loss, examples.count, losses + i);
    }
  }

  const std::shared_ptr<const ServedModel> model_;
  const FlatnessPlan plan_;
  const Theta theta_, theta_a_;  // the second may be null
  const std::shared_ptr<const ResidentDataset> data_;
  const int64_t first_row_, num_rows_;
  const std::vector<float> targets_;  // targets of all rows
  const InputRows rows_;
  const int64_t size_;  // D
  RunningVariance variance_;
  int64_t next_row_ = 0;          // row of the next gradient, counted from first_row_
  std::vector<float> direction_;  // [D], set when the lines begin
  std::vector<Thread> threads_;
  Flatness result_;
};

}  // namespace

std::vector<int64_t> FisherRanks(int64_t size, int64_t points) {
  std::vector<int64_t> ranks = {1};
  for (int64_t i = 1; i < points; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(points - 1);
    const int64_t rank = std::llround(std::pow(static_cast<double>(size), share));
    if (rank > ranks.back()) ranks.push_back(rank);
  }
  return ranks;
}

absl::StatusOr<std::unique_ptr<FlatnessRun>> MakeFlatnessRun(std::shared_ptr<const ServedModel> model,
                                                             const FlatnessPlan& plan, const DrawStack& theta,
                                                             const DrawStack& theta_a,
                                                             std::shared_ptr<const ResidentDataset> data,
                                                             int64_t first_row, int64_t num_rows) {
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(Validate(plan)));
  CHAINFLEET_RETURN_IF_ERROR(model->CheckRows(data->description(), first_row, num_rows));
  CHAINFLEET_RETURN_IF_ERROR(model->CheckTargets(data->description()));
  if (num_rows < 1 || num_rows > limits::kMaxShardRows) {
    return absl::InvalidArgumentError(
        absl::StrCat("flatness is measured over 1 to ", limits::kMaxShardRows, " rows, asked for ", num_rows));
  }
  CHAINFLEET_RETURN_IF_ERROR(model->CheckDraws(theta));
  CHAINFLEET_RETURN_IF_ERROR(model->CheckDraws(theta_a));
  if (theta.theta.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("chain ", ToString(theta.chain), ": no draw of theta to measure"));
  }
  return std::make_unique<MeasuredFlatness>(std::move(model), plan, theta.chain, theta.theta.back(),
                                            theta_a.theta.empty() ? nullptr : theta_a.theta.back(), std::move(data),
                                            first_row, num_rows);
}

}  // namespace chainfleet

#include <ATen/Parallel.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "worker/numerics/models/eager_network.h"
#include "worker/numerics/models/fused_network.h"
#include "worker/numerics/predict/device_rows.h"
#include "worker/numerics/predict/draw_pass.h"
#include "worker/numerics/predict/stack_cache.h"
#include "worker/numerics/tensors/single_threaded.h"

namespace chainfleet {
namespace {

constexpr int64_t kBlockRows = 512;
// Bound on the outputs of all layers of one product together.
constexpr int64_t kActivationBytes = int64_t{1} << 30;

class StackedPass final : public DrawPass {
 public:
  StackedPass(std::shared_ptr<const ServedModel> model, std::shared_ptr<StackCache> stacks)
      : model_(std::move(model)), stacks_(std::move(stacks)) {}

  bool Run(const PassWork& work, const Pause&, PassProgress*) override {
    const c10::AutoGradMode autograd(false);
    while (static_cast<int64_t>(scratch_.size()) < at::get_num_threads()) {
      scratch_.emplace_back(work.sums->front().scratch_size());
    }
    for (int64_t start = 0; start < work.num_rows; start += kBlockRows) {
      const int64_t count = std::min(work.num_rows - start, kBlockRows);
      const at::Tensor x = Inputs(work, start, count);
      for (size_t i = 0; i < work.stacks.size(); ++i) AddStack(work, i, start, x);
    }
    return true;
  }

 private:
  // [1, count, input_shape...] on the device, from the previous part of the shard if they are kept.
  at::Tensor Inputs(const PassWork& work, int64_t start, int64_t count) {
    if (work.kept == nullptr) return Read(work.rows, start, count);
    if (*work.kept == nullptr) *work.kept = std::make_shared<DeviceRows>();
    DeviceRows& kept = **work.kept;
    if (const auto it = kept.blocks.find(start); it != kept.blocks.end()) return it->second;
    at::Tensor x = Read(work.rows, start, count);
    if (const auto bytes = static_cast<int64_t>(x.nbytes()); bytes <= kept.room) {
      kept.room -= bytes;
      kept.blocks.emplace(start, x);
    }
    return x;
  }

  at::Tensor Read(const RowSource& source, int64_t start, int64_t count) {
    std::vector<int64_t> shape = {1, count};
    shape.insert(shape.end(), model_->network.input_shape.begin(), model_->network.input_shape.end());
    at::Tensor x = at::empty(shape, at::kFloat);
    const auto [rows, first] = source.Read(start, count, &changed_);
    float* const out = x.data_ptr<float>();
    for (int64_t i = 0; i < count; ++i) rows.Read(first + i, out + i * rows.row_size());
    return x.to(stacks_->device());
  }

  // Adds all draws of a stack over the rows `x` from `start` on. On the device draws are cached in groups counted from
  // the oldest draw, which stay the same while a chain adds newer draws. The activations limit how many draws of a
  // group are processed at once.
  void AddStack(const PassWork& work, size_t stack, int64_t start, const at::Tensor& x) {
    const DrawStack& draws = work.stacks[stack];
    const auto all = static_cast<int64_t>(draws.theta.size());
    const int64_t group = std::clamp<int64_t>(kMaxStackBytes / 4 / (model_->draw_size * sizeof(float)), 1, kMaxGroup);
    const int64_t passes = kActivationBytes / std::max<int64_t>(1, model_->network.activation_floats * sizeof(float));
    const int64_t at_once = std::max<int64_t>(1, passes / x.size(1));
    for (int64_t first = (all - 1) / group * group; all > 0 && first >= 0; first -= group) {
      const int64_t size = std::min(group, all - first);
      const at::Tensor theta = stacks_->Get(draws, static_cast<size_t>(first), static_cast<size_t>(size));
      for (int64_t end = size; end > 0; end -= at_once) {
        const int64_t begin = std::max<int64_t>(0, end - at_once);
        AddDraws(work, stack, first + begin, theta.narrow(0, begin, end - begin), start, x);
      }
    }
  }

  // Adds draws [first, first + S) of a stack, theta [S, draw_size].
  void AddDraws(const PassWork& work, size_t stack, int64_t first, const at::Tensor& theta, int64_t start,
                const at::Tensor& x) {
    const at::Tensor lanes = Lanes(Outputs(theta, x));
    const int64_t count = theta.size(0), rows = x.size(1), per_draw = lanes.numel() / count,
                  outputs = model_->network.num_outputs;
    const float* const values = lanes.const_data_ptr<float>();
    const int64_t threads = at::get_num_threads(), blocks = (rows + kMaxBlockRows - 1) / kMaxBlockRows;
    RunSingleThreaded(threads, [&](int64_t t) {
      for (int64_t block = t; block < blocks; block += threads) {
        const int64_t at = block * kMaxBlockRows, some = std::min(rows - at, kMaxBlockRows);
        for (int64_t s = count - 1; s >= 0; --s) {
          AddOutputs(*model_, work, stack, first + s, start + at, some, values + s * per_draw + at * outputs,
                     scratch_[static_cast<size_t>(t)].data());
        }
      }
    });
  }

  // [S, n, K]
  at::Tensor Outputs(const at::Tensor& theta, const at::Tensor& x) const {
    std::vector<int64_t> shape = x.sizes().vec();
    shape[0] = theta.size(0);
    const std::vector<at::Tensor> statistics = Views(model_->network.statistics, theta);
    return EagerLogits(model_->network, Views(model_->network.parameters, theta), x.expand(shape),
                       {.statistics = &statistics});
  }

  // Views [S, shape...] of theta [S, draw_size].
  static std::vector<at::Tensor> Views(const std::vector<ParameterShape>& tensors, const at::Tensor& theta) {
    std::vector<at::Tensor> views;
    for (const ParameterShape& tensor : tensors) {
      std::vector<int64_t> shape = {theta.size(0)};
      shape.insert(shape.end(), tensor.shape.begin(), tensor.shape.end());
      views.push_back(theta.narrow(1, tensor.offset, NumValues(tensor.shape)).view(shape));
    }
    return views;
  }

  // Converts [S, n, K] to [S][groups of 16][K][16] on the host.
  static at::Tensor Lanes(const at::Tensor& outputs) {
    const int64_t groups = NumGroups(outputs.size(1)), missing = groups * kLanes - outputs.size(1);
    return at::constant_pad_nd(outputs, {0, 0, 0, missing})
        .reshape({outputs.size(0), groups, kLanes, outputs.size(2)})
        .transpose(2, 3)
        .contiguous()
        .cpu();
  }

  static constexpr int64_t kMaxGroup = 64;

  const std::shared_ptr<const ServedModel> model_;
  const std::shared_ptr<StackCache> stacks_;
  std::vector<LaneBuffer<float>> scratch_;  // one for each thread
  std::vector<float> changed_;              // rows before normalisation
};

}  // namespace

std::unique_ptr<DrawPass> MakeStackedPass(std::shared_ptr<const ServedModel> model,
                                          std::shared_ptr<StackCache> stacks) {
  return std::make_unique<StackedPass>(std::move(model), std::move(stacks));
}

}  // namespace chainfleet

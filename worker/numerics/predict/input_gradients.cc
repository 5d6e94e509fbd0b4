#include "worker/numerics/predict/input_gradients.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/numerics/dataset/input_rows.h"
#include "worker/numerics/models/stored_network.h"

namespace chainfleet {
namespace {

constexpr int64_t kRowsOfPass = 64;  // bounds the activations that wait for their backward passes

// The outputs [n, K] of one draw for standardised rows [n, input_shape...].
at::Tensor OutputsOf(const ServedModel& model, const at::Tensor& draw, const at::Tensor& x) {
  const std::vector<at::Tensor> parameters = TensorsOfDraw(model.network.parameters, draw);
  const std::vector<at::Tensor> statistics = TensorsOfDraw(model.network.statistics, draw);
  const ForwardMode mode = {.statistics = statistics.empty() ? nullptr : &statistics};
  return LogitsOf(model.network, model.script.get(), parameters, x.unsqueeze(0), mode).squeeze(0);
}

// The derivative of what a network reads by what the caller gave, for each value of a row.
std::vector<float> ScaleOf(const Normalisation& normalisation, int64_t row_size) {
  std::vector<float> scale(static_cast<size_t>(row_size), 1.0f);
  const auto channels = static_cast<int64_t>(normalisation.stddev.size());
  for (int64_t i = 0; channels > 0 && i < row_size; ++i) {
    const double stddev = normalisation.stddev[static_cast<size_t>(i / (row_size / channels))];
    if (stddev > 0) scale[static_cast<size_t>(i)] = static_cast<float>(1 / stddev);
  }
  return scale;
}

// Writes the gradients [n, K, row size] for rows x to `out`.
absl::Status Differentiate(const ServedModel& model, const at::Tensor& draw, at::Tensor x,
                           const std::vector<float>& scale, float* out) {
  x.set_requires_grad(true);
  const at::Tensor predicted = model.likelihood->Predicted(OutputsOf(model, draw, x));
  const int64_t outputs = predicted.size(1), row_size = std::ssize(scale);
  for (int64_t k = 0; k < outputs; ++k) {
    const at::Tensor column = predicted.select(1, k).sum();  // a row depends on no other
    const at::Tensor gradient =
        column.requires_grad()
            ? torch::autograd::grad({column}, {x}, {}, /*retain_graph=*/k + 1 < outputs, false, true).front()
            : at::Tensor();
    if (!gradient.defined()) {
      return absl::InvalidArgumentError(
          absl::StrCat("job ", model.plan->job, ": its predictions have no gradients by the inputs of its network"));
    }
    const at::Tensor rows = gradient.contiguous();
    const float* from = rows.const_data_ptr<float>();
    for (int64_t row = 0; row < rows.size(0); ++row, from += row_size) {
      std::ranges::transform(std::span(from, scale.size()), scale, out + (row * outputs + k) * row_size,
                             std::multiplies<>());
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AddInputGradients(const ServedModel& model, const DrawStack& stack, const InputTensor& inputs,
                               PartialPrediction* sums) {
  const PredictPlan& plan = *model.plan;
  const c10::AutoGradMode autograd(true);
  const InputRows rows(inputs.type, inputs.bytes.data(), plan.input_shape, plan.normalisation);
  const int64_t row_size = NumValues(plan.input_shape), values = GradientValues(plan);
  const int64_t num_rows = inputs.shape.front();
  const std::vector<float> scale = ScaleOf(plan.normalisation, row_size);
  sums->sum_wg.assign(static_cast<size_t>(num_rows * values), 0);
  std::vector<float> of_draw(sums->sum_wg.size());
  if (sums->members) sums->members->gradients.clear();
  for (size_t s = 0; s < stack.theta.size(); ++s) {
    std::vector<float> theta = *stack.theta[s];
    const at::Tensor draw = at::from_blob(theta.data(), {std::ssize(theta)}, at::kFloat);
    for (int64_t start = 0; start < num_rows; start += kRowsOfPass) {
      std::vector<int64_t> shape = {std::min(kRowsOfPass, num_rows - start)};
      shape.insert(shape.end(), plan.input_shape.begin(), plan.input_shape.end());
      at::Tensor x = at::empty(shape, at::kFloat);
      for (int64_t i = 0; i < shape.front(); ++i) rows.Read(start + i, x.mutable_data_ptr<float>() + i * row_size);
      CHAINFLEET_RETURN_IF_ERROR(Differentiate(model, draw, std::move(x), scale, of_draw.data() + start * values));
    }
    for (size_t i = 0; i < of_draw.size(); ++i) sums->sum_wg[i] += stack.weights[s] * static_cast<double>(of_draw[i]);
    if (sums->members) {
      std::vector<float>& all = sums->members->gradients;
      all.insert(all.end(), of_draw.begin(), of_draw.end());
    }
  }
  return absl::OkStatus();
}

}  // namespace chainfleet

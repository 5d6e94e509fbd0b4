#include "worker/numerics/potentials/regression_potential.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>

#include <algorithm>

#include "worker/numerics/arena/tensor_view.h"
#include "worker/numerics/dataset/input_rows.h"
#include "worker/numerics/dataset/resident_dataset.h"
#include "worker/numerics/kernels/square_sum.h"
#include "worker/numerics/likelihoods/likelihood.h"
#include "worker/numerics/likelihoods/scalar_losses.h"
#include "worker/numerics/potentials/batch_ids.h"
#include "worker/numerics/potentials/curvature.h"
#include "worker/numerics/tensors/single_threaded.h"

namespace chainfleet {
namespace {

// Inputs [stored rows, d] and targets, standardised as the plan says.
struct Examples {
  int64_t count, width;  // N and d
  std::vector<float> x, target;
};

Examples ReadExamples(const ResidentDataset& dataset, const JobPlan& plan) {
  const Dataset& data = dataset.description();
  const InputRows rows(data.input_type, dataset.input_bytes().data(), data.input_shape, plan.normalisation);
  Examples examples{data.num_rows, rows.row_size(), {}, dataset.TargetNumbers(plan.target_units)};
  examples.x.resize(dataset.stored_rows() * examples.width);
  for (int64_t i = 0; i < dataset.stored_rows(); ++i) rows.Read(i, examples.x.data() + i * examples.width);
  return examples;
}

template <typename Likelihood>
class Regression final : public Potential {
 public:
  Regression(const Likelihood& likelihood, Examples examples, std::shared_ptr<const Layout> layout,
             double prior_precision, Device device)
      : likelihood_(likelihood),
        examples_(std::move(examples)),
        layout_(std::move(layout)),
        prior_precision_(prior_precision),
        has_intercept_(layout_->spans().size() > 1) {
    if (!device.is_cuda()) return;
    const at::Device where(at::kCUDA, static_cast<c10::DeviceIndex>(device.cuda_index));
    const int64_t stored = std::ssize(examples_.target);
    x_ = at::from_blob(examples_.x.data(), {stored, examples_.width}).to(where);
    target_ = at::from_blob(examples_.target.data(), {stored}).to(where);
  }

  const std::shared_ptr<const Layout>& layout() const override { return layout_; }
  int64_t num_examples() const override { return examples_.count; }
  double prior_precision() const override { return prior_precision_; }

  void Evaluate(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, double* energy) override {
    losses_.resize(theta.rows() * batch.size);
    Run(theta, batch, gradient, losses_.data());
    LogPrior(theta, batch.prior_precisions, energy);
    for (int64_t row = 0; row < theta.rows(); ++row) {
      double sum = 0;
      for (int64_t i = 0; i < batch.size; ++i) sum += losses_[row * batch.size + i];
      energy[row] = Scale(batch) * sum - energy[row];
    }
  }

  void Losses(const ThetaArena& theta, const BatchRows& batch, double* losses) override {
    Run(theta, batch, nullptr, losses);
  }

  bool AddCurvature(const ThetaArena& theta, const CurvatureSlice* slices) override {
    for (int64_t row = 0; row < theta.rows(); ++row) {
      if (slices[row].sum != nullptr && slices[row].sum->structure == CurvatureStructure::kKronecker) return false;
    }
    RunSingleThreaded(theta.rows(), [&](int64_t row) {
      if (slices[row].sum != nullptr) AddCurvatureOfRow(theta.ReadRow(row), slices[row]);
    });
    return true;
  }

  void LogPrior(const ThetaArena& theta, const double* prior_precisions, double* log_prior) override {
    const at::Tensor rows = RowsView(theta).cpu();  // no copy for a CPU arena
    for (int64_t row = 0; row < theta.rows(); ++row) {
      const float* first = rows.const_data_ptr<float>() + row * theta.row_stride();
      const double precision = prior_precisions == nullptr ? prior_precision_ : prior_precisions[row];
      log_prior[row] = -precision / 2 * SquareSum(first, theta.row_stride());
    }
  }

 private:
  double Scale(const BatchRows& batch) const {
    return static_cast<double>(examples_.count) / static_cast<double>(batch.size);
  }

  // Adds X' diag(curvature) X, with a column of ones for the intercept.
  void AddCurvatureOfRow(std::vector<float> theta, const CurvatureSlice& slice) const {
    float* first = const_cast<float*>(examples_.x.data()) + slice.first * examples_.width;  // nothing writes there
    at::Tensor x = at::from_blob(first, {slice.count, examples_.width}).to(at::kDouble);
    if (has_intercept_) x = at::cat({x, at::ones({slice.count, 1}, at::kDouble)}, 1);
    const at::Tensor at = at::from_blob(theta.data(), {static_cast<int64_t>(theta.size())}).to(at::kDouble);
    const at::Tensor weighted = x * likelihood_.Curvature(x.mv(at)).unsqueeze(1);
    const bool full = slice.sum->structure == CurvatureStructure::kFull;
    AddTo(full ? &slice.sum->full : &slice.sum->diagonal, full ? x.t().matmul(weighted) : (x * weighted).sum(0));
  }

  void Run(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, double* losses) const {
    if (theta.device().is_cuda()) return RunOnGpu(theta, batch, gradient, losses);
    const int64_t rows_per_task = std::max<int64_t>(1, 16384 / (batch.size * examples_.width + 1));
    at::parallel_for(0, theta.rows(), rows_per_task, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        RunRow(theta.row(row), batch.row(row), batch.size, Scale(batch),
               gradient == nullptr ? nullptr : gradient->row(row), losses + row * batch.size);
      }
    });
  }

  void RunRow(const float* theta, const int64_t* ids, int64_t n, double scale, float* gradient, double* losses) const {
    const int64_t d = examples_.width, intercept = has_intercept_ ? layout_->spans()[1].padded : 0;
    std::vector<double> sums(d);
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      const float* x = examples_.x.data() + ids[i] * d;
      double prediction = has_intercept_ ? theta[intercept] : 0, slope;
      for (int64_t j = 0; j < d; ++j) prediction += static_cast<double>(x[j]) * theta[j];
      losses[i] = likelihood_.Loss(prediction, examples_.target[ids[i]], &slope);
      if (gradient == nullptr) continue;
      for (int64_t j = 0; j < d; ++j) sums[j] += slope * x[j];
      sum += slope;
    }
    if (gradient == nullptr) return;
    for (int64_t j = 0; j < d; ++j) gradient[j] = static_cast<float>(scale * sums[j]);
    if (has_intercept_) gradient[intercept] = static_cast<float>(scale * sum);
  }

  void RunOnGpu(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, double* losses) const {
    const int64_t chains = theta.rows(), n = batch.size;
    const at::Tensor ids = BatchIds(batch, 0, chains, x_.device());
    const at::Tensor x = x_.index_select(0, ids).view({chains, n, examples_.width});
    at::Tensor prediction = at::bmm(x, ParameterView(theta, 0).unsqueeze(2)).squeeze(2).to(at::kDouble), slope;
    if (has_intercept_) prediction = prediction + ParameterView(theta, 1);
    const at::Tensor loss = likelihood_.Loss(prediction, target_.index_select(0, ids).view({chains, n}), &slope).cpu();
    std::copy_n(loss.const_data_ptr<double>(), chains * n, losses);
    if (gradient == nullptr) return;
    slope = slope * Scale(batch);
    ParameterView(*gradient, 0).copy_(at::bmm(slope.to(at::kFloat).unsqueeze(1), x).squeeze(1));
    if (has_intercept_) ParameterView(*gradient, 1).copy_(slope.sum(1, /*keepdim=*/true));
  }

  const Likelihood likelihood_;
  Examples examples_;
  const std::shared_ptr<const Layout> layout_;
  const double prior_precision_;
  const bool has_intercept_;    // the layout's second tensor
  at::Tensor x_, target_;       // the examples on a GPU
  std::vector<double> losses_;  // [C, n]
};

}  // namespace

absl::StatusOr<std::unique_ptr<Potential>> MakeRegressionPotential(const JobPlan& plan,
                                                                   std::shared_ptr<const ResidentDataset> dataset,
                                                                   Device device) {
  if (dataset == nullptr) {
    return absl::InvalidArgumentError("job " + plan.job + ": a regression needs a data set, the plan has none");
  }
  const Dataset& data = dataset->description();
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(ValidateTargets(plan.spec.model, data)));
  CHAINFLEET_RETURN_IF_ERROR(CheckNormalisation(plan.normalisation, data.input_shape));
  CHAINFLEET_RETURN_IF_ERROR(CheckTargetUnits(plan.target_units));
  CHAINFLEET_ASSIGN_OR_RETURN(std::vector<ParameterShape> parameters,
                              InferParameters(plan.spec.model, data.input_shape, NumClasses(data.targets)));
  auto layout = std::make_shared<const Layout>(std::move(parameters));
  Examples examples = ReadExamples(*dataset, plan);
  const double precision = plan.spec.prior.precision();
  const auto& kind = std::get<PotentialKind>(plan.spec.model.kind);
  if (const auto* linear = std::get_if<LinearRegressionPotential>(&kind)) {
    const double unit = plan.target_units.stddev;
    return std::make_unique<Regression<NormalLoss>>(NormalLoss{linear->noise_variance / (unit * unit), unit},
                                                    std::move(examples), std::move(layout), precision, device);
  }
  return std::make_unique<Regression<LogisticLoss>>(LogisticLoss(), std::move(examples), std::move(layout), precision,
                                                    device);
}

}  // namespace chainfleet

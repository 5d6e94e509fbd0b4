#include "worker/numerics/potentials/gaussian_potential.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>

#include <algorithm>
#include <functional>

#include "core/base/check.h"
#include "core/base/cholesky.h"
#include "worker/numerics/arena/tensor_view.h"
#include "worker/numerics/potentials/curvature.h"

namespace chainfleet {
namespace {

// Number of rows of `layout` that are enough work for a thread.
int64_t RowsPerTask(const Layout& layout) { return std::max<int64_t>(1, 16384 / layout.row_stride()); }

// Calls `of_row` for each row of `theta` on the host. One thread computes a row.
void ForEachRow(const ThetaArena& theta, const std::function<void(int64_t row, const float* x)>& of_row) {
  const at::Tensor rows = RowsView(theta).cpu();  // no copy for a CPU arena
  const float* first = rows.const_data_ptr<float>();
  at::parallel_for(0, theta.rows(), RowsPerTask(theta.layout()), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) of_row(row, first + row * theta.row_stride());
  });
}

// The mean [D], in float32 as theta is.
std::vector<float> MeanOf(const GaussianPotential& density) {
  const int64_t d = density.dimension;
  if (density.mean.size() < 2) {
    return std::vector<float>(d, density.mean.empty() ? 0 : static_cast<float>(density.mean[0]));
  }
  return {density.mean.begin(), density.mean.end()};
}

// Adds `hessian`, whole or its diagonal, to each sum. False if a sum has another structure.
bool AddHessian(const ThetaArena& theta, const CurvatureSlice* slices,
                const std::function<at::Tensor(bool full)>& hessian) {
  for (int64_t row = 0; row < theta.rows(); ++row) {
    Curvature* sum = slices[row].sum;
    if (sum == nullptr) continue;
    if (sum->structure == CurvatureStructure::kKronecker) return false;
    const bool full = sum->structure == CurvatureStructure::kFull;
    AddTo(full ? &sum->full : &sum->diagonal, hessian(full));
  }
  return true;
}

class Gaussian final : public Potential {
 public:
  Gaussian(const GaussianPotential& density, std::shared_ptr<const Layout> layout, Device device)
      : precision_(density.precision.value_or(1)), layout_(std::move(layout)), device_(device), mean_(MeanOf(density)) {
    mean_.resize(layout_->row_stride());  // padding is zero
  }

  const std::shared_ptr<const Layout>& layout() const override { return layout_; }
  int64_t num_examples() const override { return 1; }

  void Evaluate(const ThetaArena& theta, const BatchRows&, ThetaArena* gradient, double* energy) override {
    if (device_.is_cuda()) {
      at::Tensor gradients = RowsView(*gradient);
      gradients.copy_(RowsView(theta) - Uploaded(mean_.data(), {theta.row_stride()}, gradients.device()));
      gradients.mul_(precision_);
    } else {
      const float precision = static_cast<float>(precision_);
      ForEachRow(theta, [&](int64_t row, const float* x) {
        std::transform(x, x + theta.row_stride(), mean_.data(), gradient->row(row),
                       [precision](float value, float mean) { return precision * (value - mean); });
      });
    }
    LogPrior(theta, nullptr, energy);
    for (int64_t r = 0; r < theta.rows(); ++r) energy[r] = -energy[r];
  }

  bool AddCurvature(const ThetaArena& theta, const CurvatureSlice* slices) override {
    const at::Tensor diagonal = at::full({layout_->num_parameters()}, precision_, at::kDouble);
    return AddHessian(theta, slices, [&](bool full) { return full ? diagonal.diag() : diagonal; });
  }

  void Losses(const ThetaArena& theta, const BatchRows& batch, double* losses) override {
    std::fill_n(losses, theta.rows() * batch.size, 0.0);
  }

  void LogPrior(const ThetaArena& theta, const double*, double* log_prior) override {
    ForEachRow(theta, [&](int64_t row, const float* x) {
      double sum = 0;
      for (int64_t i = 0; i < theta.row_stride(); ++i) {
        const double gap = static_cast<double>(x[i]) - mean_[i];
        sum += gap * gap;
      }
      log_prior[row] = -0.5 * precision_ * sum;
    });
  }

 private:
  const double precision_;
  const std::shared_ptr<const Layout> layout_;
  const Device device_;
  std::vector<float> mean_;  // [row_stride]
};

class CorrelatedGaussian final : public Potential {
 public:
  CorrelatedGaussian(const GaussianPotential& density, std::shared_ptr<const Layout> layout, Device device)
      : layout_(std::move(layout)), device_(device), mean_(MeanOf(density)) {
    const auto factor = CholeskyFactor(density.covariance, density.dimension);
    CHAINFLEET_CHECK(factor.has_value()) << "a covariance that is not positive definite";
    precision_ = InverseFromCholesky(*factor, density.dimension);
  }

  const std::shared_ptr<const Layout>& layout() const override { return layout_; }
  int64_t num_examples() const override { return 1; }

  void Evaluate(const ThetaArena& theta, const BatchRows&, ThetaArena* gradient, double* energy) override {
    if (!device_.is_cuda()) return Energies(theta, gradient, energy);
    const int64_t d = dimension();
    at::Tensor slopes = RowsView(*gradient).narrow(1, 0, d);
    const at::Tensor precision = Uploaded(precision_.data(), {d, d}, slopes.device());
    const at::Tensor gap = RowsView(theta).narrow(1, 0, d) - Uploaded(mean_.data(), {d}, slopes.device());
    slopes.copy_(at::matmul(gap.to(at::kDouble), precision));
    Energies(theta, nullptr, energy);
  }

  bool AddCurvature(const ThetaArena& theta, const CurvatureSlice* slices) override {
    const at::Tensor precision = at::from_blob(precision_.data(), {dimension(), dimension()}, at::dtype(at::kDouble));
    return AddHessian(theta, slices, [&](bool full) { return full ? precision : precision.diag(); });
  }

  void Losses(const ThetaArena& theta, const BatchRows& batch, double* losses) override {
    std::fill_n(losses, theta.rows() * batch.size, 0.0);
  }

  void LogPrior(const ThetaArena& theta, const double*, double* log_prior) override {
    Energies(theta, nullptr, log_prior);
    for (int64_t r = 0; r < theta.rows(); ++r) log_prior[r] = -log_prior[r];
  }

 private:
  int64_t dimension() const { return static_cast<int64_t>(mean_.size()); }

  // Also computes the gradient on the host, unless null.
  void Energies(const ThetaArena& theta, ThetaArena* gradient, double* energy) const {
    const int64_t d = dimension();
    ForEachRow(theta, [&](int64_t row, const float* x) {
      std::vector<double> gap(d);
      for (int64_t i = 0; i < d; ++i) gap[i] = static_cast<double>(x[i]) - mean_[i];
      double sum = 0;
      for (int64_t i = 0; i < d; ++i) {
        double slope = 0;
        for (int64_t j = 0; j < d; ++j) slope += precision_[i * d + j] * gap[j];
        if (gradient != nullptr) gradient->row(row)[i] = static_cast<float>(slope);
        sum += gap[i] * slope;
      }
      energy[row] = sum / 2;
    });
  }

  const std::shared_ptr<const Layout> layout_;
  const Device device_;
  std::vector<float> mean_;        // [D]
  std::vector<double> precision_;  // [D, D]
};

}  // namespace

std::unique_ptr<Potential> MakeGaussianPotential(const GaussianPotential& density, std::shared_ptr<const Layout> layout,
                                                 Device device) {
  if (!density.covariance.empty()) {
    return std::make_unique<CorrelatedGaussian>(density, std::move(layout), device);
  }
  return std::make_unique<Gaussian>(density, std::move(layout), device);
}

}  // namespace chainfleet

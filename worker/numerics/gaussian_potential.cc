#include "worker/numerics/gaussian_potential.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "worker/numerics/tensor_view.h"

namespace chainfleet {
namespace {

class Gaussian final : public Potential {
 public:
  Gaussian(const GaussianPotential& density, std::shared_ptr<const Layout> layout, Device device)
      : precision_(density.precision), layout_(std::move(layout)), device_(device) {}

  const std::shared_ptr<const Layout>& layout() const override { return layout_; }
  int64_t num_examples() const override { return 1; }

  void Evaluate(const ThetaArena& theta, const BatchRows&, ThetaArena* gradient, double* energy) override {
    if (device_.is_cuda()) {
      at::Tensor gradients = RowsView(*gradient);
      at::mul_out(gradients, RowsView(theta), precision_);
    } else {
      const float precision = static_cast<float>(precision_);
      at::parallel_for(0, theta.rows(), RowsPerTask(), [&](int64_t first, int64_t last) {
        for (int64_t r = first; r < last; ++r) {
          std::transform(theta.row(r), theta.row(r) + theta.row_stride(), gradient->row(r),
                         [precision](float value) { return precision * value; });
        }
      });
    }
    LogPrior(theta, energy);
    for (int64_t r = 0; r < theta.rows(); ++r) energy[r] = -energy[r];
  }

  void Losses(const ThetaArena& theta, const BatchRows& batch, double* losses) override {
    std::fill_n(losses, theta.rows() * batch.size, 0.0);
  }

  void LogPrior(const ThetaArena& theta, double* log_prior) override {
    const auto sum_row = [this](const float* row) {
      double sum = 0;
      for (int64_t i = 0; i < layout_->row_stride(); ++i) sum += static_cast<double>(row[i]) * row[i];
      return -0.5 * precision_ * sum;
    };
    const at::Tensor rows = RowsView(theta).cpu();  // of a CPU arena: itself
    at::parallel_for(0, theta.rows(), RowsPerTask(), [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        log_prior[r] = sum_row(rows.const_data_ptr<float>() + r * layout_->row_stride());
      }
    });
  }

 private:
  // Rows that are worth a thread.
  int64_t RowsPerTask() const { return std::max<int64_t>(1, 16384 / layout_->row_stride()); }

  const double precision_;
  const std::shared_ptr<const Layout> layout_;
  const Device device_;
};

}  // namespace

std::unique_ptr<Potential> MakeGaussianPotential(const GaussianPotential& density, std::shared_ptr<const Layout> layout,
                                                 Device device) {
  return std::make_unique<Gaussian>(density, std::move(layout), device);
}

}  // namespace chainfleet

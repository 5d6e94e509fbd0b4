#include "worker/numerics/potentials/prior_potential.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "core/base/check.h"
#include "worker/numerics/arena/tensor_view.h"

namespace chainfleet {
namespace {

// The part of a row that one task takes. The layout alone decides the parts, so no sum depends on the threads.
struct Stretch {
  const PriorDensity* density;
  int64_t first, count;  // padded positions, multiples of 16
};

std::vector<Stretch> Cut(const std::vector<PriorDensity>& of_tensor, const Layout& layout) {
  constexpr int64_t kMost = 32768;
  std::vector<Stretch> stretches;
  for (size_t k = 0; k < of_tensor.size(); ++k) {
    const TensorSpan& span = layout.spans()[k];
    const int64_t end = k + 1 < of_tensor.size() ? layout.spans()[k + 1].padded : layout.row_stride();
    for (int64_t first = span.padded; first < end; first += kMost) {
      stretches.push_back({&of_tensor[k], first, std::min(kMost, end - first)});
    }
  }
  return stretches;
}

// -log density [C] of x [C, ...] in double; its gradient is added to `gradient` if that is defined.
at::Tensor AddDensity(const NormalDensity& density, const at::Tensor& x, at::Tensor gradient) {
  if (gradient.defined()) gradient.add_(x, density.precision);
  return x.to(at::kDouble).square().flatten(1).sum(1) * (density.precision / 2);
}

at::Tensor AddDensity(const LaplacePrior& density, const at::Tensor& x, at::Tensor gradient) {
  if (gradient.defined()) gradient.add_(at::sign(x), 1 / density.scale);
  return x.to(at::kDouble).abs().flatten(1).sum(1) / density.scale;
}

at::Tensor AddDensity(const StudentTPrior& density, const at::Tensor& x, at::Tensor gradient) {
  const double spread = density.degrees_of_freedom * density.scale * density.scale;
  const at::Tensor wide = x.to(at::kDouble), square = wide.square();
  if (gradient.defined()) gradient.add_(wide * (density.degrees_of_freedom + 1) / (square + spread));
  return at::log1p(square / spread).flatten(1).sum(1) * ((density.degrees_of_freedom + 1) / 2);
}

class PriorPotential final : public Potential {
 public:
  PriorPotential(const PriorSpec& prior, std::unique_ptr<Potential> likelihood)
      : likelihood_(std::move(likelihood)), of_tensor_(DensitiesOf(prior, *likelihood_->layout())) {
    CHAINFLEET_CHECK(likelihood_->prior_precision() == 0) << "two priors";
  }

  const std::shared_ptr<const Layout>& layout() const override { return likelihood_->layout(); }
  int64_t num_examples() const override { return likelihood_->num_examples(); }

  void Evaluate(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, double* energy) override {
    likelihood_->Evaluate(theta, batch, gradient, energy);
    AddPriors(of_tensor_, theta, gradient, energy);
  }

  void Losses(const ThetaArena& theta, const BatchRows& batch, double* losses) override {
    likelihood_->Losses(theta, batch, losses);
  }

  void LogPrior(const ThetaArena& theta, const double*, double* log_prior) override {
    std::fill_n(log_prior, theta.rows(), 0.0);
    AddPriors(of_tensor_, theta, nullptr, log_prior);
    for (int64_t row = 0; row < theta.rows(); ++row) log_prior[row] = -log_prior[row];
  }

  bool AddCurvature(const ThetaArena& theta, const CurvatureSlice* slices) override {
    return likelihood_->AddCurvature(theta, slices);
  }

  std::vector<double> PriorPrecisions() const override {
    std::vector<double> precisions;
    for (const PriorDensity& density : of_tensor_) {
      const auto* normal = std::get_if<NormalDensity>(&density);
      precisions.push_back(normal != nullptr ? normal->precision : 0);
    }
    return precisions;
  }

  const std::vector<ParameterShape>& statistics() const override { return likelihood_->statistics(); }
  std::vector<std::vector<float>> DrawStatistics(const ThetaArena& theta, int64_t first, int64_t count) override {
    return likelihood_->DrawStatistics(theta, first, count);
  }

 private:
  const std::unique_ptr<Potential> likelihood_;
  const std::vector<PriorDensity> of_tensor_;
};

}  // namespace

std::vector<PriorDensity> DensitiesOf(const PriorSpec& prior, const Layout& layout) {
  std::vector<PriorDensity> densities;
  for (const ParameterShape& parameter : layout.parameters()) {
    if (const auto* gaussian = std::get_if<GaussianPrior>(&prior.kind)) {
      const auto own = gaussian->layers.find(LayerOf(parameter.name));
      densities.push_back(NormalDensity{own != gaussian->layers.end() ? own->second : gaussian->precision});
    } else if (const auto* laplace = std::get_if<LaplacePrior>(&prior.kind)) {
      densities.push_back(*laplace);
    } else {
      densities.push_back(std::get<StudentTPrior>(prior.kind));
    }
  }
  return densities;
}

void AddPriors(const std::vector<PriorDensity>& of_tensor, const ThetaArena& theta, ThetaArena* gradient,
               double* energy) {
  if (theta.device().is_cuda()) return AddPriorsByTensor(of_tensor, theta, gradient, energy);
  const std::vector<Stretch> stretches = Cut(of_tensor, theta.layout());
  const int64_t per_row = static_cast<int64_t>(stretches.size());
  std::vector<double> sums(theta.rows() * per_row);
  const int64_t stretches_per_task = std::max<int64_t>(1, 16384 * per_row / theta.row_stride());
  at::parallel_for(0, theta.rows() * per_row, stretches_per_task, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Stretch& stretch = stretches[i % per_row];
      const int64_t row = i / per_row;
      float* slope = gradient == nullptr ? nullptr : gradient->row(row) + stretch.first;
      sums[i] = AddPrior(*stretch.density, theta.row(row) + stretch.first, stretch.count, slope);
    }
  });
  for (size_t i = 0; i < sums.size(); ++i) energy[i / per_row] += sums[i];
}

void AddPriorsByTensor(const std::vector<PriorDensity>& of_tensor, const ThetaArena& theta, ThetaArena* gradient,
                       double* energy) {
  at::Tensor sums;
  for (size_t k = 0; k < of_tensor.size(); ++k) {
    const int64_t tensor = static_cast<int64_t>(k);
    const at::Tensor x = ParameterView(theta, tensor);
    const at::Tensor slope = gradient == nullptr ? at::Tensor() : ParameterView(*gradient, tensor);
    const at::Tensor sum = std::visit([&](const auto& density) { return AddDensity(density, x, slope); }, of_tensor[k]);
    sums = sums.defined() ? sums + sum : sum;
  }
  const at::Tensor host = sums.cpu();
  for (int64_t row = 0; row < theta.rows(); ++row) energy[row] += host.const_data_ptr<double>()[row];
}

std::unique_ptr<Potential> WithPrior(const PriorSpec& prior, std::unique_ptr<Potential> likelihood) {
  const auto* gaussian = std::get_if<GaussianPrior>(&prior.kind);
  if (gaussian != nullptr && gaussian->layers.empty()) return likelihood;
  return std::make_unique<PriorPotential>(prior, std::move(likelihood));
}

}  // namespace chainfleet

#include "worker/numerics/potentials/mixture_potential.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>

#include "worker/numerics/arena/tensor_view.h"

namespace chainfleet {
namespace {

// Returns log sum exp of `logs` [k], which become the components' shares. NaN for NaN.
double Normalise(std::vector<double>* logs) {
  const double largest = *std::max_element(logs->begin(), logs->end());
  double sum = 0;
  for (double& log : *logs) sum += log = std::exp(log - largest);
  for (double& share : *logs) share /= sum;
  return largest + std::log(sum);
}

// On a GPU theta is copied to the host and the gradient back: mixtures are small, and they are sampled to test
// distributions, not speed.
class Mixture final : public Potential {
 public:
  Mixture(const GaussianMixturePotential& density, std::shared_ptr<const Layout> layout)
      : joint_(density.joint()), means_(density.means), layout_(std::move(layout)) {
    double sum = 0;
    for (const double weight : density.weights) sum += weight;
    for (size_t k = 0; k < density.weights.size(); ++k) {
      const double stddev = density.stddev[density.stddev.size() == 1 ? 0 : k];
      precisions_.push_back(1 / (stddev * stddev));
      log_heights_.push_back(std::log(density.weights[k] / sum) -
                             static_cast<double>(joint_ ? density.dimension : 1) * std::log(stddev));
    }
  }

  const std::shared_ptr<const Layout>& layout() const override { return layout_; }
  int64_t num_examples() const override { return 1; }

  void Evaluate(const ThetaArena& theta, const BatchRows&, ThetaArena* gradient, double* energy) override {
    if (!theta.device().is_cuda()) return Energies(RowsView(theta), gradient->data(), energy);
    const at::Tensor rows = RowsView(theta).cpu(), slopes = rows.clone();
    Energies(rows, slopes.mutable_data_ptr<float>(), energy);
    RowsView(*gradient).copy_(slopes);
  }

  void Losses(const ThetaArena& theta, const BatchRows& batch, double* losses) override {
    std::fill_n(losses, theta.rows() * batch.size, 0.0);
  }

  void LogPrior(const ThetaArena& theta, const double*, double* log_prior) override {
    Energies(RowsView(theta).cpu(), nullptr, log_prior);
    for (int64_t r = 0; r < theta.rows(); ++r) log_prior[r] = -log_prior[r];
  }

 private:
  // `rows` [C, row_stride] are on the host; `gradient` has the same shape or is null, and its padding is not changed.
  void Energies(const at::Tensor& rows, float* gradient, double* energy) const {
    const int64_t stride = layout_->row_stride();
    at::parallel_for(0, rows.size(0), std::max<int64_t>(1, 4096 / stride), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const float* x = rows.const_data_ptr<float>() + row * stride;
        float* slope = gradient == nullptr ? nullptr : gradient + row * stride;
        energy[row] = joint_ ? JointRow(x, slope) : IndependentRow(x, slope);
      }
    });
  }

  double IndependentRow(const float* x, float* gradient) const {
    std::vector<double> shares(means_.size());
    double energy = 0;
    for (int64_t i = 0; i < layout_->num_parameters(); ++i) {
      for (size_t k = 0; k < shares.size(); ++k) {
        const double gap = x[i] - means_[k];
        shares[k] = log_heights_[k] - precisions_[k] * gap * gap / 2;
      }
      energy -= Normalise(&shares);
      double slope = 0;
      for (size_t k = 0; k < shares.size(); ++k) slope += shares[k] * precisions_[k] * (x[i] - means_[k]);
      if (gradient != nullptr) gradient[i] = static_cast<float>(slope);
    }
    return energy;
  }

  double JointRow(const float* x, float* gradient) const {
    const int64_t d = layout_->num_parameters();
    std::vector<double> shares(log_heights_.size());
    for (size_t k = 0; k < shares.size(); ++k) {
      double square = 0;
      for (int64_t i = 0; i < d; ++i) square += std::pow(x[i] - means_[k * d + i], 2);
      shares[k] = log_heights_[k] - precisions_[k] * square / 2;
    }
    const double energy = -Normalise(&shares);
    for (int64_t i = 0; gradient != nullptr && i < d; ++i) {
      double slope = 0;
      for (size_t k = 0; k < shares.size(); ++k) slope += shares[k] * precisions_[k] * (x[i] - means_[k * d + i]);
      gradient[i] = static_cast<float>(slope);
    }
    return energy;
  }

  const bool joint_;                              // else independent coordinates
  const std::vector<double> means_;               // [K, D] if joint, else [K]
  std::vector<double> precisions_, log_heights_;  // [K]
  const std::shared_ptr<const Layout> layout_;
};

}  // namespace

std::unique_ptr<Potential> MakeMixturePotential(const GaussianMixturePotential& density,
                                                std::shared_ptr<const Layout> layout) {
  return std::make_unique<Mixture>(density, std::move(layout));
}

}  // namespace chainfleet

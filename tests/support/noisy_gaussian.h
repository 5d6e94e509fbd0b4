// A Gaussian density whose mini-batch gradients have noise of a known covariance.
#pragma once

#include <cmath>
#include <memory>
#include <numbers>
#include <vector>

#include "core/base/rng_key.h"
#include "worker/numerics/potentials/potential.h"

namespace chainfleet::testing {

// U_batch(x) = sum_i lambda_i x_i^2 / 2 + xi_i x_i, xi_i = shift_i + sigma_i z_i: one z for each chain and step.
class NoisyGaussian : public Potential {
 public:
  NoisyGaussian(std::vector<double> precision, std::vector<double> deviation, std::vector<double> shift = {})
      : precision_(std::move(precision)),
        deviation_(std::move(deviation)),
        shift_(std::move(shift)),
        layout_(std::make_shared<const Layout>(
            std::vector<ParameterShape>{{"x", {static_cast<int64_t>(precision_.size())}, 0, 0}})) {
    shift_.resize(precision_.size());
  }

  const std::shared_ptr<const Layout>& layout() const override { return layout_; }
  int64_t num_examples() const override { return 1; }
  void Evaluate(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, double* energy) override {
    drawn_.resize(theta.rows());
    for (int64_t row = 0; row < theta.rows(); ++row) {
      const Drawn& noise = NoiseOf(row, batch.keys[row]);
      energy[row] = 0;
      for (size_t i = 0; i < precision_.size(); ++i) {
        const double x = theta.row(row)[i], xi = noise.values[i];
        gradient->row(row)[i] = static_cast<float>(precision_[i] * x + xi);
        energy[row] += precision_[i] * x * x / 2 + xi * x;
      }
    }
  }
  void Losses(const ThetaArena& theta, const BatchRows& batch, double* losses) override {
    std::fill_n(losses, theta.rows() * batch.size, 0.0);
  }
  void LogPrior(const ThetaArena& theta, const double*, double* log_prior) override {
    std::fill_n(log_prior, theta.rows(), 0.0);
  }

 private:
  struct Drawn {
    StepKey at{};
    std::vector<double> values;
  };

  // The noise of a step is drawn once, because tests spend most of their time here.
  const Drawn& NoiseOf(int64_t row, const StepKey& at) {
    Drawn& drawn = drawn_[row];
    if (!drawn.values.empty() && drawn.at.step == at.step && drawn.at.key == at.key) return drawn;
    drawn.at = at;
    drawn.values = shift_;
    for (size_t i = 0; i < shift_.size(); i += 2) {
      const PhiloxBlock block = RandomBlock(at.key, RngStream::kProbe, at.step, static_cast<uint32_t>(i));
      const float radius = std::sqrt(-2 * std::log(UniformFloat(block.word[0])));
      const float angle = 2 * std::numbers::pi_v<float> * UniformFloat(block.word[1]);
      drawn.values[i] += deviation_[i] * radius * std::cos(angle);
      if (i + 1 < shift_.size()) drawn.values[i + 1] += deviation_[i + 1] * radius * std::sin(angle);
    }
    return drawn;
  }

  const std::vector<double> precision_, deviation_;
  std::vector<double> shift_;
  const std::shared_ptr<const Layout> layout_;
  std::vector<Drawn> drawn_;
};

}  // namespace chainfleet::testing

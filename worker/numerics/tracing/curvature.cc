#include "worker/numerics/tracing/curvature.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "worker/numerics/samplers/full_data.h"
#include "worker/numerics/samplers/stochastic_gradient.h"

namespace chainfleet {
namespace {

constexpr double kTolerance = 0.005;  // relative change of the eigenvalue between iterates
constexpr int kLeastSteps = 3;
// Relative to |theta|: large compared to the float32 ulp of a coordinate, small compared to the distance over which a
// network's curvature changes.
constexpr double kReach = 1e-3;

// The Lanczos recursion of all rows. Finished rows become inactive.
class Iteration {
 public:
  Iteration(const StepInputs& inputs, ThetaArena* theta)
      : inputs_(inputs),
        theta_(theta),
        chains_(inputs.chains),
        own_{inputs.potential, inputs.batches, inputs.plan, chains_, inputs.scratch},
        rows_(theta->rows()) {
    StepScratch& scratch = *inputs.scratch;
    scratch.Arena(4, *theta);  // create the last arena first: creating one may move the others
    shifted_ = &scratch.Arena(0, *theta);
    image_ = &scratch.Arena(1, *theta);
    other_ = &scratch.Arena(2, *theta);
    direction_ = &scratch.Arena(3, *theta);
    previous_ = &scratch.Arena(4, *theta);
    for (const PassOutcome& square : Dot(theta_, theta_))
      reach_.push_back(kReach * std::max(1.0, std::sqrt(square.sum)));
  }

  std::vector<double> Run() {
    Start();
    std::vector<double> largest(rows_, std::numeric_limits<double>::quiet_NaN());
    std::vector<std::vector<double>> diagonal(rows_), beside(rows_);
    for (int step = 0; step < kMaxCurvatureSteps; ++step) {
      ApplyHessian();
      const auto along = Dot(image_, direction_);
      Orthogonalise(step, along, beside);
      const auto left = Dot(image_, image_);
      bool any_left = false;
      for (int64_t row = 0; row < rows_; ++row) {
        if (!chains_[row].active) continue;
        const double before = largest[row];
        diagonal[row].push_back(along[row].sum / (2 * reach_[row]));
        largest[row] = LargestEigenvalue(diagonal[row], beside[row]);
        beside[row].push_back(std::sqrt(left[row].sum));
        const bool closed = !(beside[row].back() > kTolerance * std::abs(largest[row]));
        const bool settled = step + 1 >= kLeastSteps && std::abs(largest[row] - before) < kTolerance * std::abs(before);
        chains_[row].active = std::isfinite(largest[row]) && !closed && !settled;
        any_left |= chains_[row].active;
      }
      if (!any_left) break;
      std::swap(previous_, direction_);
      Accumulate(
          direction_, image_, [&](int64_t row) { return 1 / beside[row].back(); }, false);
    }
    return largest;
  }

 private:
  std::vector<PassOutcome> Dot(ThetaArena* a, ThetaArena* b) {
    return RunPass(Pass::kDot, {a, b}, chains_, [](int64_t, float*) {});
  }

  // `to` += weight(row) * `from`; without `keep` the old `to` counts as 0.
  template <typename Weight>
  void Accumulate(ThetaArena* to, ThetaArena* from, const Weight& weight, bool keep) {
    RunPass(Pass::kAccumulate, {to, from}, chains_, [&](int64_t row, float* s) {
      s[0] = static_cast<float>(weight(row));
      s[1] = keep ? 1 : 0;
    });
  }

  void Start() {
    Accumulate(
        image_, theta_, [](int64_t) { return 0; }, false);
    const auto made = RunPass(
        Pass::kNormalAround, {previous_, image_}, chains_, [](int64_t, float* s) { s[0] = 1; }, RngStream::kInit);
    Accumulate(
        direction_, previous_, [&](int64_t row) { return 1 / std::sqrt(made[row].sum); }, false);
  }

  // The gradient at theta + sign e v, without the prior's share that the caller of a potential adds.
  void GradientBeside(double sign, ThetaArena* gradient) {
    RunPass(Pass::kPerturb, {shifted_, theta_, direction_}, chains_,
            [&](int64_t row, float* s) { s[0] = static_cast<float>(sign * reach_[row]); });
    for (int64_t row = 0; row < rows_; ++row) {
      if (!chains_[row].active) shifted_->CopyRow(row, *theta_);
    }
    const int64_t n = inputs_.batches->batch_size(), all = inputs_.potential->num_examples();
    if (n > 0 && all <= std::max(n, kCurvatureExamples)) {
      GradientOverAllData(own_, *shifted_, gradient);
      return;
    }
    EvaluateBatches(own_, *shifted_);
    Accumulate(
        gradient, &inputs_.scratch->gradient, [](int64_t) { return 1; }, false);
  }

  // image = 2 e H v.
  void ApplyHessian() {
    GradientBeside(1, image_);
    GradientBeside(-1, other_);
    Accumulate(
        image_, other_, [](int64_t) { return -1; }, true);
    Accumulate(
        image_, direction_, [&](int64_t row) { return 2 * reach_[row] * PriorPrecision(inputs_, row); }, true);
  }

  // image = H v minus its components along v and the previous iterate.
  void Orthogonalise(int step, const std::vector<PassOutcome>& along, const std::vector<std::vector<double>>& beside) {
    RunPass(Pass::kBlend, {image_, direction_}, chains_, [&](int64_t row, float* s) {
      s[0] = static_cast<float>(1 / (2 * reach_[row]));
      s[1] = static_cast<float>(-along[row].sum / (2 * reach_[row]));
    });
    if (step > 0)
      Accumulate(
          image_, previous_, [&](int64_t row) { return -beside[row].back(); }, true);
  }

  const StepInputs& inputs_;
  ThetaArena* const theta_;
  std::vector<ChainStep> chains_;
  const StepInputs own_;
  const int64_t rows_;
  ThetaArena *shifted_, *image_, *other_, *direction_, *previous_;
  std::vector<double> reach_;  // e of each row
};

}  // namespace

std::vector<double> MeasureCurvature(const StepInputs& inputs, ThetaArena* theta) {
  return Iteration(inputs, theta).Run();
}

double LargestEigenvalue(const std::vector<double>& diagonal, const std::vector<double>& beside) {
  const auto between = [&](size_t i) { return i < diagonal.size() - 1 ? std::abs(beside[i]) : 0.0; };
  double least = diagonal[0], most = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < diagonal.size(); ++i) {
    if (!std::isfinite(diagonal[i]) || !std::isfinite(between(i))) return std::numeric_limits<double>::quiet_NaN();
    least = std::max(least, diagonal[i]);
    most = std::max(most, diagonal[i] + between(i) + (i > 0 ? between(i - 1) : 0));
  }
  // The matrix minus x is negative definite (all pivots negative) iff x is above every eigenvalue.
  const auto above_all = [&](double x) {
    double pivot = diagonal[0] - x;
    for (size_t i = 1; i < diagonal.size() && pivot < 0; ++i) {
      pivot = diagonal[i] - x - between(i - 1) * between(i - 1) / pivot;
    }
    return pivot < 0;
  };
  for (int i = 0; i < 60; ++i) {
    const double middle = least + (most - least) / 2;
    (above_all(middle) ? most : least) = middle;
  }
  return least;
}

}  // namespace chainfleet

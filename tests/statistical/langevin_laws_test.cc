// SGLD and EMCMC on quadratics against their exact finite-step laws, and the proof that the check can fail: noise 2 %
// too strong, N/n dropped, theta updated before theta_a.
//
// A law holds if each second moment lies within 4 standard errors, themselves at most 0.4 % of the value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/update_reference.h"
#include "worker/numerics/chain_batch.h"
#include "worker/numerics/samplers/kernel.h"

namespace chainfleet {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;

// Second moments of (theta, theta_a) about `mean`, with standard errors from the samples' own fourth moments.
struct Moment {
  double value = 0, error = 0;
};
Moment SecondMoment(const std::vector<float>& a, const std::vector<float>& b, double mean) {
  double sum = 0, sum2 = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double product = (a[i] - mean) * (b[i] - mean);
    sum += product;
    sum2 += product * product;
  }
  const double n = static_cast<double>(a.size()), value = sum / n;
  return {value, std::sqrt((sum2 / n - value * value) / n)};
}

struct Samples {
  std::vector<float> theta, theta_a;
  double mean = 0;
};

// var theta, cov(theta, theta_a), var theta_a; the last two are not looked at without an anchor.
struct Law {
  double var = 0, cov = 0, var_a = 0;
};

// What does not fit, in words; empty if the law holds.
std::vector<std::string> Misfits(const Samples& samples, const Law& law) {
  std::vector<std::string> misfits;
  const auto check = [&](const char* name, Moment moment, double expected) {
    if (std::abs(moment.value - expected) > 4 * moment.error) {
      misfits.push_back(std::string(name) + " is " + std::to_string(moment.value) + " +- " +
                        std::to_string(moment.error) + ", law says " + std::to_string(expected));
    } else {
      EXPECT_LE(moment.error, 0.004 * std::abs(expected)) << name << " fits, but is measured too roughly to mean it";
    }
  };
  check("var theta", SecondMoment(samples.theta, samples.theta, samples.mean), law.var);
  if (!samples.theta_a.empty()) {
    check("cov", SecondMoment(samples.theta, samples.theta_a, samples.mean), law.cov);
    check("var theta_a", SecondMoment(samples.theta_a, samples.theta_a, samples.mean), law.var_a);
  }
  return misfits;
}

// T / (k (1 - alpha k / 2)).
Law SgldLaw(double k, double alpha, double temperature, double gradient_variance = 0) {
  return {(temperature + alpha * gradient_variance / 2) / (k * (1 - alpha * k / 2)), 0, 0};
}

// Fixed point of Sigma = B Sigma B' + 2 alpha T I + alpha^2 V e1 e1', B = I - alpha A, A = [[k+g, -g], [-g, g]].
Law EmcmcLaw(double k, double g, double alpha, double temperature, double gradient_variance = 0) {
  const double b11 = 1 - alpha * (k + g), b12 = alpha * g, b22 = 1 - alpha * g;
  Law s;
  for (int i = 0; i < 100000; ++i) {
    const Law old = s;
    s.var = b11 * b11 * old.var + 2 * b11 * b12 * old.cov + b12 * b12 * old.var_a + 2 * alpha * temperature +
            alpha * alpha * gradient_variance;
    s.cov = b11 * b12 * old.var + (b11 * b22 + b12 * b12) * old.cov + b12 * b22 * old.var_a;
    s.var_a = b12 * b12 * old.var + 2 * b12 * b22 * old.cov + b22 * b22 * old.var_a + 2 * alpha * temperature;
  }
  return s;
}

constexpr double kPrecision = 2, kAlpha = 0.2, kTemperature = 0.7, kCoupling = 2.5;
constexpr int64_t kDimension = 250000;
constexpr int kChains = 2, kSteps = 50;

// Through the public interface: a Gaussian job of independent coordinates, run to stationarity.
Samples RunJob(const SamplerSpec& sampler, double temperature) {
  auto plan = std::make_shared<JobPlan>();
  plan->job = "law-aaaaaa";
  plan->spec.name = "law";
  plan->spec.model.kind = GaussianPotential{kDimension, kPrecision};
  plan->spec.sampler = sampler;
  plan->spec.schedule = {StepScale::kStepSize, ConstantSchedule{kAlpha}};
  plan->spec.temperature = temperature;
  plan->spec.num_steps = kSteps;
  plan->spec.chains = kChains;
  plan->spec.seed = 20240607;
  const auto batch = ChainBatch::Create(plan, nullptr, "cpu");
  EXPECT_TRUE(batch.ok()) << batch.status();
  for (int chain = 0; chain < kChains; ++chain) EXPECT_TRUE((*batch)->AddChain(chain, std::nullopt).ok());
  for (int step = 0; step < kSteps; ++step) EXPECT_TRUE((*batch)->Step().ok());
  Samples samples;
  for (int chain = 0; chain < kChains; ++chain) {
    const DrawTensors draw = (*batch)->TakeDraw(chain);
    samples.theta.insert(samples.theta.end(), draw.kinds[0].begin(), draw.kinds[0].end());
    if (draw.kinds.size() > 1) {
      samples.theta_a.insert(samples.theta_a.end(), draw.kinds[1].begin(), draw.kinds[1].end());
    }
  }
  return samples;
}

TEST(SgldLaws, GaussianVarianceIsThatOfTheFiniteStep) {
  EXPECT_THAT(Misfits(RunJob({SgldSpec{}}, kTemperature), SgldLaw(kPrecision, kAlpha, kTemperature)), IsEmpty());
}

TEST(SgldLaws, FailWhenTheNoiseIsTwoPercentTooStrong) {
  EXPECT_THAT(Misfits(RunJob({SgldSpec{}}, 1.02 * kTemperature), SgldLaw(kPrecision, kAlpha, kTemperature)),
              Not(IsEmpty()));
}

TEST(EmcmcLaws, GaussianCovarianceIsThatOfTheFiniteStep) {
  EXPECT_THAT(
      Misfits(RunJob({EmcmcSpec{1 / kCoupling}}, kTemperature), EmcmcLaw(kPrecision, kCoupling, kAlpha, kTemperature)),
      IsEmpty());
}

TEST(EmcmcLaws, FailWhenTheNoiseIsTwoPercentTooStrong) {
  EXPECT_THAT(Misfits(RunJob({EmcmcSpec{1 / kCoupling}}, 1.02 * kTemperature),
                      EmcmcLaw(kPrecision, kCoupling, kAlpha, kTemperature)),
              Not(IsEmpty()));
}

// The closed form of the law the recursion above finds: T (A - alpha A^2 / 2)^-1.
TEST(EmcmcLaws, RecursionAndClosedFormAgree) {
  const double a11 = kPrecision + kCoupling, a12 = -kCoupling, a22 = kCoupling;
  const double m11 = a11 - kAlpha / 2 * (a11 * a11 + a12 * a12), m12 = a12 - kAlpha / 2 * a12 * (a11 + a22),
               m22 = a22 - kAlpha / 2 * (a22 * a22 + a12 * a12);
  const double determinant = m11 * m22 - m12 * m12;
  const Law law = EmcmcLaw(kPrecision, kCoupling, kAlpha, kTemperature);
  EXPECT_NEAR(law.var, kTemperature * m22 / determinant, 1e-9);
  EXPECT_NEAR(law.cov, -kTemperature * m12 / determinant, 1e-9);
  EXPECT_NEAR(law.var_a, kTemperature * m11 / determinant, 1e-9);
}

// The plain reference, theta_a stepped from the old theta or, as a mutation, from the new one.
Samples RunReference(bool theta_first, int64_t dimension) {
  std::vector<double> theta(dimension), theta_a(dimension), gradient(dimension);
  RowStep step;
  step.key = RngKey{5};
  step.step_size = kAlpha;
  step.noise = static_cast<float>(std::sqrt(2 * kAlpha * kTemperature));
  step.coupling = kCoupling;
  for (; step.t < kSteps; ++step.t) {
    for (int64_t p = 0; p < dimension; ++p) gradient[p] = kPrecision * theta[p];
    if (!theta_first) {
      testing::ReferenceUpdate(step, theta, &theta_a, gradient);
      continue;
    }
    std::vector<double> anchor = theta_a;
    testing::ReferenceUpdate(step, theta, &anchor, gradient);
    for (int64_t p = 0; p < dimension; ++p) {
      theta_a[p] += kAlpha * kCoupling * (theta[p] - theta_a[p]) +
                    step.noise * testing::ReferenceNormal(step.key, RngStream::kThetaANoise, step.t, p);
    }
  }
  return {{theta.begin(), theta.end()}, {theta_a.begin(), theta_a.end()}, 0};
}

TEST(EmcmcLaws, FailWhenThetaIsUpdatedBeforeItsAnchor) {
  const Law law = EmcmcLaw(kPrecision, kCoupling, kAlpha, kTemperature);
  EXPECT_THAT(Misfits(RunReference(false, 350000), law), IsEmpty());
  EXPECT_THAT(Misfits(RunReference(true, 50000), law), Not(IsEmpty()));
}

// The mean of a normal law, one parameter, from N data in mini-batches: likelihood precision w, Gaussian prior.
class MeanPotential final : public Potential {
 public:
  MeanPotential(std::vector<double> data, bool scaled) : data_(std::move(data)), scaled_(scaled) {}
  static constexpr double kPrior = 0.5, kWeight = 0.02;

  const std::shared_ptr<const Layout>& layout() const override { return layout_; }
  int64_t num_examples() const override { return static_cast<int64_t>(data_.size()); }
  double prior_precision() const override { return kPrior; }
  void Evaluate(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, double* energy) override {
    const double scale = scaled_ ? static_cast<double>(num_examples()) / batch.size : 1;
    for (int64_t r = 0; r < theta.rows(); ++r) {
      double sum = 0;
      for (int64_t i = 0; i < batch.size; ++i) sum += kWeight * (theta.row(r)[0] - data_[batch.row(r)[i]]);
      gradient->row(r)[0] = static_cast<float>(scale * sum);
      energy[r] = 0;
    }
  }
  void Losses(const ThetaArena&, const BatchRows&, double*) override {}
  void LogPrior(const ThetaArena&, double*) override {}

 private:
  const std::vector<double> data_;
  const bool scaled_;
  const std::shared_ptr<const Layout> layout_ =
      std::make_shared<const Layout>(std::vector<ParameterShape>{{"mean", {1}, 0, 0}});
};

struct Posterior {
  double precision = 0, mean = 0, gradient_variance = 0;
};

constexpr int64_t kData = 64, kBatch = 8;
constexpr double kNoisyAlpha = 0.2, kNoisyTemperature = 0.1;

std::vector<double> Data() {
  std::vector<double> data;
  for (int64_t i = 0; i < kData; ++i) data.push_back(1 + testing::ReferenceNormal(RngKey{3}, RngStream::kInit, 0, i));
  return data;
}

Posterior PosteriorOf(const std::vector<double>& data) {
  double sum = 0, sum2 = 0;
  for (const double x : data) {
    sum += x;
    sum2 += x * x;
  }
  const double n = static_cast<double>(data.size()), w = MeanPotential::kWeight, k = MeanPotential::kPrior + n * w;
  const double variance = sum2 / n - sum * sum / n / n;
  return {k, w * sum / k, n * n * w * w * variance / kBatch};
}

// Many chains of one parameter, each with batches of its own; every chain is looked at when it has forgotten the last
// look.
Samples RunMinibatches(const Kernel& kernel, bool scaled, int looks) {
  constexpr int kRows = 2500, kStepsBetween = 16;
  MeanPotential potential(Data(), scaled);
  const MinibatchPlan batches(Minibatches::kIndependent, kData, kBatch);
  SamplerState state;
  for (size_t i = 0; i < ArenaNames(kernel).size(); ++i) state.arenas.emplace_back(potential.layout(), Device{});
  for (ThetaArena& arena : state.arenas) {
    for (int r = 0; r < kRows; ++r) arena.AddRow();
  }
  StepScratch scratch(ThetaArena(potential.layout(), Device{}));
  const StepPlan steps;
  std::vector<ChainStep> chains(kRows);
  for (int r = 0; r < kRows; ++r) chains[r] = {Fold(RngKey{77}, r), 0, kNoisyAlpha, kNoisyTemperature, true};
  Samples samples;
  samples.mean = PosteriorOf(Data()).mean;
  for (int look = -3; look < looks; ++look) {  // the first three are burn-in
    for (int step = 0; step < kStepsBetween; ++step) {
      const StepInputs inputs = {&potential, &batches, &steps, chains, &scratch};
      std::visit([&](const auto& k) { k.Step(inputs, &state); }, kernel);
      for (ChainStep& chain : chains) ++chain.t;
    }
    if (look < 0) continue;
    for (int r = 0; r < kRows; ++r) {
      samples.theta.push_back(state.theta().row(r)[0]);
      if (state.arenas.size() > 1) samples.theta_a.push_back(state.arenas[1].row(r)[0]);
    }
  }
  return samples;
}

TEST(SgldLaws, MinibatchNoiseHeatsAsTheLawSays) {
  const Posterior p = PosteriorOf(Data());
  const Law law = SgldLaw(p.precision, kNoisyAlpha, kNoisyTemperature, p.gradient_variance);
  EXPECT_GT(law.var, 1.2 * SgldLaw(p.precision, kNoisyAlpha, kNoisyTemperature).var);  // the noise matters here
  EXPECT_THAT(Misfits(RunMinibatches(Sgld{}, true, 130), law), IsEmpty());
  EXPECT_THAT(Misfits(RunMinibatches(Sgld{}, false, 10), law), Not(IsEmpty())) << "N/n dropped";
}

TEST(EmcmcLaws, MinibatchNoiseHeatsAsTheLawSays) {
  const Posterior p = PosteriorOf(Data());
  const Law law = EmcmcLaw(p.precision, kCoupling, kNoisyAlpha, kNoisyTemperature, p.gradient_variance);
  EXPECT_THAT(Misfits(RunMinibatches(Emcmc{1 / kCoupling}, true, 130), law), IsEmpty());
  EXPECT_THAT(Misfits(RunMinibatches(Emcmc{1 / kCoupling}, false, 10), law), Not(IsEmpty())) << "N/n dropped";
}

}  // namespace
}  // namespace chainfleet

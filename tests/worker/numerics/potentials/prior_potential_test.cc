// Tests priors other than one Gaussian precision: closed forms, numeric differences, and identities of densities.
#include "worker/numerics/potentials/prior_potential.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/network_fixture.h"
#include "worker/numerics/batch/potential_factory.h"

namespace chainfleet {
namespace {

// Five tensors of two layers and one alone; the last is longer than one stretch of the pass.
std::shared_ptr<const Layout> SomeLayout() {
  std::vector<ParameterShape> parameters = {{"conv1.weight", {3, 5}, 0, 5},
                                            {"conv1.bias", {3}, 15, 5},
                                            {"fc2.weight", {2, 17}, 18, 17},
                                            {"fc2.bias", {2}, 52, 17},
                                            {"alone", {40000}, 54, 0}};
  return std::make_shared<const Layout>(std::move(parameters));
}

const PriorSpec kPriors[] = {{GaussianPrior{2, {{"conv1", 30}, {"alone", 0.5}}}},
                             {LaplacePrior{0.3}},
                             {StudentTPrior{3, 0.05}},
                             {StudentTPrior{30, 2}}};

struct Sum {
  std::vector<double> energy;
  ThetaArena gradient;
};
Sum Add(const PriorSpec& prior, const ThetaArena& theta, bool by_tensor = false) {
  Sum sum{std::vector<double>(theta.rows()), ThetaArena(theta.shared_layout(), Device())};
  for (int64_t row = 0; row < theta.rows(); ++row) sum.gradient.AddRow();
  const auto densities = DensitiesOf(prior, theta.layout());
  (by_tensor ? AddPriorsByTensor : AddPriors)(densities, theta, &sum.gradient, sum.energy.data());
  return sum;
}

// The plain formula, parameter by parameter.
double Energy(const PriorSpec& prior, const std::string& parameter, double x) {
  if (const auto* laplace = std::get_if<LaplacePrior>(&prior.kind)) return std::abs(x) / laplace->scale;
  if (const auto* t = std::get_if<StudentTPrior>(&prior.kind)) {
    return (t->degrees_of_freedom + 1) / 2 * std::log1p(x * x / (t->degrees_of_freedom * t->scale * t->scale));
  }
  const auto& gaussian = std::get<GaussianPrior>(prior.kind);
  const auto own = gaussian.layers.find(parameter.substr(0, parameter.find('.')));
  return (own == gaussian.layers.end() ? gaussian.precision : own->second) / 2 * x * x;
}

TEST(PriorPotential, EnergyAndGradientMatchTheClosedForm) {
  const auto layout = SomeLayout();
  const ThetaArena theta = RandomTheta(layout, 2);
  for (const PriorSpec& prior : kPriors) {
    const Sum sum = Add(prior, theta);
    for (int64_t row = 0; row < 2; ++row) {
      const std::vector<float> x = theta.ReadRow(row), slope = sum.gradient.ReadRow(row);
      double energy = 0;
      for (const ParameterShape& parameter : layout->parameters()) {
        const int64_t size = parameter.shape[0] * (parameter.shape.size() > 1 ? parameter.shape[1] : 1);
        for (int64_t p = parameter.offset; p < parameter.offset + size; ++p) {
          energy += Energy(prior, parameter.name, x[p]);
          const double h = 1e-6;
          const double numeric =
              (Energy(prior, parameter.name, x[p] + h) - Energy(prior, parameter.name, x[p] - h)) / (2 * h);
          ASSERT_GT(std::abs(x[p]), h);
          EXPECT_NEAR(slope[p], numeric, 2e-6 * (1 + std::abs(numeric))) << parameter.name;
        }
      }
      EXPECT_NEAR(sum.energy[row], energy, 1e-12 * energy);
    }
  }
}

TEST(PriorPotential, TensorOperationsAgreeWithTheHostsPass) {
  const ThetaArena theta = RandomTheta(SomeLayout(), 3);
  for (const PriorSpec& prior : kPriors) {
    const Sum pass = Add(prior, theta), operations = Add(prior, theta, true);
    for (int64_t row = 0; row < 3; ++row) {
      EXPECT_NEAR(operations.energy[row], pass.energy[row], 1e-12 * pass.energy[row]);
      for (int64_t i = 0; i < theta.row_stride(); ++i) {
        EXPECT_FLOAT_EQ(operations.gradient.row(row)[i], pass.gradient.row(row)[i]);
      }
    }
  }
}

TEST(PriorPotential, LeavesPaddingAndZerosAlone) {
  ThetaArena theta(SomeLayout(), Device());
  theta.AddRow();
  for (const PriorSpec& prior : kPriors) {
    const Sum sum = Add(prior, theta);
    EXPECT_EQ(sum.energy[0], 0);
    for (int64_t i = 0; i < theta.row_stride(); ++i) ASSERT_EQ(sum.gradient.row(0)[i], 0);
  }
}

TEST(PriorPotential, ARowHasTheSameBitsAloneAndWithAnyNumberOfThreads) {
  const ThetaArena five = RandomTheta(SomeLayout(), 5), one = RandomTheta(SomeLayout(), 1, 5 + 4);
  for (const PriorSpec& prior : kPriors) {
    const int threads = at::get_num_threads();
    at::set_num_threads(1);
    const Sum alone = Add(prior, one);
    at::set_num_threads(3);
    const Sum together = Add(prior, five);
    at::set_num_threads(threads);
    EXPECT_EQ(alone.energy[0], together.energy[4]);
    EXPECT_EQ(alone.gradient.ReadRow(0), together.gradient.ReadRow(4));
  }
}

TEST(PriorPotential, ANonFiniteRowAffectsNoOther) {
  ThetaArena theta = RandomTheta(SomeLayout(), 2);
  for (const PriorSpec& prior : kPriors) {
    const double before = Add(prior, theta).energy[1];
    ThetaArena broken = theta.Clone();
    broken.row(0)[3] = std::nanf("");
    const Sum sum = Add(prior, broken);
    EXPECT_TRUE(std::isnan(sum.energy[0]));
    EXPECT_EQ(sum.energy[1], before);
  }
}

// Integrals over one parameter's density exp(-U): E[x U'(x)] = 1 (by parts), so a wrong scale of U or U' shows. The
// second moment must be that of the named law.
TEST(PriorPotential, DensitiesHaveTheMomentsOfTheirLaws) {
  const struct {
    PriorSpec prior;
    double variance, width;
  } laws[] = {{{GaussianPrior{4, {{"alone", 25}}}}, 1.0 / 25, 2},
              {{LaplacePrior{0.3}}, 2 * 0.3 * 0.3, 12},
              {{StudentTPrior{7, 0.5}}, 0.25 * 7 / 5, 60}};
  constexpr int64_t kPoints = 20001;
  const auto layout = std::make_shared<const Layout>(std::vector<ParameterShape>{{"alone", {1}, 0, 0}});
  ThetaArena theta(layout, Device());
  for (int64_t i = 0; i < kPoints; ++i) theta.AddRow();
  for (const auto& law : laws) {
    const auto x = [&](int64_t i) { return law.width * (2.0 * static_cast<double>(i) / (kPoints - 1) - 1); };
    for (int64_t i = 0; i < kPoints; ++i) theta.row(i)[0] = static_cast<float>(x(i));
    const Sum sum = Add(law.prior, theta);
    double mass = 0, square = 0, virial = 0;
    for (int64_t i = 0; i < kPoints; ++i) {
      const double density = std::exp(-sum.energy[i]);
      mass += density;
      square += density * x(i) * x(i);
      virial += density * x(i) * sum.gradient.row(i)[0];
    }
    EXPECT_NEAR(square / mass, law.variance, 1e-4 * law.variance);
    EXPECT_NEAR(virial / mass, 1, 1e-4);
  }
}

JobPlan NetworkPlan(const PriorSpec& prior, const ResidentDataset& data) {
  JobPlan plan;
  plan.spec.model.kind = BuiltinModel{"softmax_regression", {}};
  plan.spec.prior = prior;
  plan.dataset = data.description();
  plan.normalisation = data.description().normalisation;
  return plan;
}

TEST(MakePotential, AddsEveryPriorToTheNetworksLikelihood) {
  const auto data = SyntheticImages(32, {2, 3}, 4);
  const auto flat = *MakePotential(NetworkPlan({}, *data), data, Device());
  const ThetaArena theta = RandomTheta(flat->layout(), 2);
  const std::vector<int64_t> ids = SomeIds(2, 8, 32);
  ThetaArena slope(flat->layout(), Device());
  for (int row = 0; row < 2; ++row) slope.AddRow();
  std::vector<double> bare(2), energy(2), log_prior(2);
  flat->Evaluate(theta, {ids.data(), 8}, &slope, bare.data());
  const std::vector<float> bare_slope = slope.ReadRow(1);
  const PriorSpec priors[] = {{GaussianPrior{2, {{"fc1", 30}}}}, {LaplacePrior{0.3}}, {StudentTPrior{3, 0.05}}};
  for (const PriorSpec& prior : priors) {
    const auto potential = *MakePotential(NetworkPlan(prior, *data), data, Device());
    const Sum sum = Add(prior, theta);
    potential->Evaluate(theta, {ids.data(), 8}, &slope, energy.data());
    potential->LogPrior(theta, nullptr, log_prior.data());
    EXPECT_EQ(potential->prior_precision(), 0);
    EXPECT_DOUBLE_EQ(energy[1], bare[1] + sum.energy[1]);
    EXPECT_EQ(log_prior[1], -sum.energy[1]);
    for (int64_t p = 0; p < flat->layout()->num_parameters(); ++p) {
      EXPECT_FLOAT_EQ(slope.ReadRow(1)[p], bare_slope[p] + sum.gradient.ReadRow(1)[p]);
    }
  }
}

TEST(MakePotential, RefusesAPriorOfALayerThatTheModelLacks) {
  const auto data = SyntheticImages(32, {2, 3}, 4);
  const auto potential =
      MakePotential(NetworkPlan({GaussianPrior{1, {{"fc1", 2}, {"fc9", 3}}}}, *data), data, Device());
  const auto violations = FieldViolationsOf(potential.status());
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].path, "prior.gaussian.layers.fc9");
  EXPECT_EQ(violations[0].message, "the model has no such layer; it has fc1");
}

}  // namespace
}  // namespace chainfleet

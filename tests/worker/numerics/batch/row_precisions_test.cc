// Chains whose priors differ only in precision: every potential with a Gaussian prior takes the precision by row.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/network_fixture.h"
#include "tests/support/regression_dataset.h"
#include "worker/numerics/batch/potential_factory.h"

namespace chainfleet {
namespace {

struct Case {
  const char* name;
  ModelSpec model;
  std::shared_ptr<const ResidentDataset> data;
};

class RowPrecisions : public ::testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<Potential> Make(double precision) const {
    JobPlan plan;
    plan.spec.model = GetParam().model;
    plan.spec.prior.kind = GaussianPrior{precision};
    plan.dataset = GetParam().data->description();
    plan.normalisation = plan.dataset->normalisation;
    auto potential = MakePotential(plan, GetParam().data, Device());
    EXPECT_TRUE(potential.ok()) << potential.status();
    return std::move(*potential);
  }
};

TEST_P(RowPrecisions, GiveTheEnergiesOfPotentialsOfEachPrecision) {
  constexpr int64_t kRows = 3, kBatch = 6;
  const double precisions[kRows] = {40, 0, 7};
  const auto potential = Make(25);
  const ThetaArena theta = RandomTheta(potential->layout(), kRows);
  const std::vector<int64_t> ids = SomeIds(kRows, kBatch, potential->num_examples());
  ThetaArena gradient = theta.Clone(), expected_gradient = theta.Clone();
  std::vector<double> energy(kRows), log_prior(kRows), expected(kRows), expected_prior(kRows);
  potential->Evaluate(theta, {ids.data(), kBatch, nullptr, precisions}, &gradient, energy.data());
  potential->LogPrior(theta, precisions, log_prior.data());
  for (int64_t row = 0; row < kRows; ++row) {
    const auto own = Make(precisions[row]);
    own->Evaluate(theta, {ids.data(), kBatch}, &expected_gradient, expected.data());
    own->LogPrior(theta, nullptr, expected_prior.data());
    EXPECT_EQ(energy[row], expected[row]) << row;
    EXPECT_EQ(log_prior[row], expected_prior[row]) << row;
    EXPECT_EQ(gradient.ReadRow(row), expected_gradient.ReadRow(row)) << row;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Potentials, RowPrecisions,
    ::testing::Values(Case{"fused", {BuiltinModel{"mlp", {8}}}, SyntheticImages(48)},
                      Case{
                          "eager", {LayeredModel{{{FlattenLayer{}}, {LinearLayer{}}}}}, SyntheticImages(48, {1, 2, 3})},
                      Case{"linear", {LinearRegressionPotential{2}}, Resident(MakeTable(24, 2, false))},
                      Case{"logistic", {LogisticRegressionPotential{}}, Resident(MakeTable(24, 2, true))}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace chainfleet

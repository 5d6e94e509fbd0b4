// Compares Gaussians, mixtures and regressions with plain formulas and numeric differences, through the factory.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/network_fixture.h"
#include "tests/support/regression_dataset.h"
#include "worker/numerics/batch/potential_factory.h"

namespace chainfleet {
namespace {

std::unique_ptr<Potential> Make(const PotentialKind& kind, const PriorSpec& prior = {},
                                std::shared_ptr<const ResidentDataset> data = nullptr) {
  JobPlan plan;
  plan.spec.model.kind = kind;
  plan.spec.prior = prior;
  if (data != nullptr) plan.normalisation = data->description().normalisation;
  auto potential = MakePotential(plan, data, Device());
  CHAINFLEET_CHECK(potential.ok()) << potential.status().ToString();
  return std::move(*potential);
}

struct Seen {
  std::vector<double> energy;
  ThetaArena gradient;
};
// Returns the gradient with the prior's part, which the caller must add.
Seen Look(Potential* potential, const ThetaArena& theta, const std::vector<int64_t>& ids = {}) {
  Seen seen{std::vector<double>(theta.rows()), ThetaArena(theta.shared_layout(), Device())};
  for (int64_t row = 0; row < theta.rows(); ++row) seen.gradient.AddRow();
  const BatchRows batch{ids.data(), static_cast<int64_t>(ids.size()) / theta.rows()};
  potential->Evaluate(theta, batch, &seen.gradient, seen.energy.data());
  for (int64_t row = 0; row < theta.rows(); ++row) {
    for (int64_t i = 0; i < theta.row_stride(); ++i) {
      seen.gradient.row(row)[i] += static_cast<float>(potential->prior_precision()) * theta.row(row)[i];
    }
  }
  return seen;
}

// Every coordinate's slope is the difference quotient of the energy; padding has none.
void ExpectGradientOfEnergy(Potential* potential, const ThetaArena& theta, const std::vector<int64_t>& ids = {}) {
  const Seen seen = Look(potential, theta, ids);
  for (const TensorSpan& span : theta.layout().spans()) {
    for (int64_t i = span.padded; i < span.padded + span.size; ++i) {
      ThetaArena above = theta.Clone(), below = theta.Clone();
      constexpr float kStep = 1.0f / 8192;
      for (int64_t row = 0; row < theta.rows(); ++row) {
        above.row(row)[i] += kStep;
        below.row(row)[i] -= kStep;
      }
      const Seen up = Look(potential, above, ids), down = Look(potential, below, ids);
      for (int64_t row = 0; row < theta.rows(); ++row) {
        const double width = static_cast<double>(above.row(row)[i]) - below.row(row)[i];
        const double slope = (up.energy[row] - down.energy[row]) / width;
        EXPECT_NEAR(seen.gradient.row(row)[i], slope, 2e-4 * (1 + std::abs(slope))) << i;
      }
    }
    const int64_t end = (span.padded + span.size + 15) / 16 * 16;
    for (int64_t i = span.padded + span.size; i < end; ++i) EXPECT_EQ(seen.gradient.row(0)[i], 0);
  }
}

const PotentialKind kWholeLaws[] = {GaussianPotential{5, 3.0, {}, {1, 2, 3, 4, 5}},
                                    GaussianPotential{3, {}, {2, 0.5, 0, 0.5, 1, -0.3, 0, -0.3, 0.7}, {1, -1, 2}},
                                    GaussianMixturePotential{{1, 3}, {-0.2, 0.1}, {0.05, 0.1}, 20},
                                    GaussianMixturePotential{{1, 3}, {-0.1, 0.1, 0.2, 0.1, 0, -0.1}, {0.2}, 3}};

TEST(AnalyticPotentials, GradientsMatchTheEnergy) {
  for (const PotentialKind& kind : kWholeLaws) {
    const auto potential = Make(kind);
    ExpectGradientOfEnergy(potential.get(), RandomTheta(potential->layout(), 2));
  }
}

TEST(AnalyticPotentials, EnergiesMatchTheDensities) {
  const auto independent = Make(kWholeLaws[0]);
  const ThetaArena five = RandomTheta(independent->layout(), 1);
  double expected = 0;
  for (int i = 0; i < 5; ++i) expected += 1.5 * std::pow(five.row(0)[i] - (i + 1.0), 2);
  EXPECT_NEAR(Look(independent.get(), five).energy[0], expected, 1e-12 * expected);

  // Precision of [[4, 2], [2, 3]] is [[3, -2], [-2, 4]] / 8.
  const auto correlated = Make(GaussianPotential{2, {}, {4, 2, 2, 3}, {1}});
  const ThetaArena two = RandomTheta(correlated->layout(), 1);
  const double a = two.row(0)[0] - 1.0, b = two.row(0)[1] - 1.0;
  EXPECT_NEAR(Look(correlated.get(), two).energy[0], (3 * a * a - 4 * a * b + 4 * b * b) / 16, 1e-12);

  const auto mixture = Make(GaussianMixturePotential{{1, 3}, {-1, 2}, {0.5, 2}, 2});
  const ThetaArena x = RandomTheta(mixture->layout(), 1);
  expected = 0;
  for (int i = 0; i < 2; ++i) {
    const double v = x.row(0)[i];
    expected -= std::log(0.25 / 0.5 * std::exp(-2 * (v + 1) * (v + 1)) + 0.75 / 2 * std::exp(-(v - 2) * (v - 2) / 8));
  }
  EXPECT_NEAR(Look(mixture.get(), x).energy[0], expected, 1e-12);
}

TEST(AnalyticPotentials, AMixtureFarOutIsItsWidestComponentAndNotInfinite) {
  const auto mixture = Make(GaussianMixturePotential{{1, 1}, {0, 0}, {0.1, 1}, 1});
  ThetaArena far(mixture->layout(), Device());
  far.AddRow();
  far.row(0)[0] = 1e4f;
  const Seen seen = Look(mixture.get(), far);
  EXPECT_NEAR(seen.energy[0], 5e7 + std::log(2), 1);
  EXPECT_FLOAT_EQ(seen.gradient.row(0)[0], 1e4f);
}

TEST(AnalyticPotentials, RowsDependOnNoOtherRowOrThread) {
  const auto table = Resident(MakeTable(40, 3, false));
  std::vector<std::unique_ptr<Potential>> potentials;
  for (const PotentialKind& kind : kWholeLaws) potentials.push_back(Make(kind));
  potentials.push_back(Make(LinearRegressionPotential{0.5}, {GaussianPrior{2}}, table));
  for (const auto& potential : potentials) {
    ThetaArena many = RandomTheta(potential->layout(), 5);
    const ThetaArena one = RandomTheta(potential->layout(), 1, 5 + 4);
    many.row(0)[0] = std::nanf("");
    const bool has_data = potential->num_examples() > 1;
    const std::vector<int64_t> ids = SomeIds(has_data ? 5 : 0, 8, 40);
    const std::vector<int64_t> own(ids.end() - (has_data ? 8 : 0), ids.end());
    const int threads = at::get_num_threads();
    at::set_num_threads(1);
    const Seen alone = Look(potential.get(), one, own);
    at::set_num_threads(3);
    const Seen together = Look(potential.get(), many, ids);
    at::set_num_threads(threads);
    EXPECT_TRUE(std::isnan(together.energy[0]));
    EXPECT_EQ(together.energy[4], alone.energy[0]);
    EXPECT_EQ(together.gradient.ReadRow(4), alone.gradient.ReadRow(0));
  }
}

TEST(RegressionPotential, LossesArePlainNegativeLogLikelihoods) {
  for (const bool labels : {false, true}) {
    const Table table = MakeTable(40, 3, labels);
    const PotentialKind kind =
        labels ? PotentialKind(LogisticRegressionPotential{}) : PotentialKind(LinearRegressionPotential{0.5});
    const auto potential = Make(kind, {}, Resident(table));
    const ThetaArena theta = RandomTheta(potential->layout(), 1);
    std::vector<int64_t> ids(40);
    for (int i = 0; i < 40; ++i) ids[i] = 39 - i;
    std::vector<double> losses(40);
    potential->Losses(theta, {ids.data(), 40}, losses.data());
    const std::vector<float> w = theta.ReadRow(0);
    double sum = 0;
    for (int i = 0; i < 40; ++i) {
      double z = w[3];
      for (int j = 0; j < 3; ++j) z += w[j] * (table.inputs[ids[i] * 3 + j] - 0.3) / 1.7;
      double expected;
      if (labels) {
        expected = -std::log(table.labels[ids[i]] == 1 ? 1 / (1 + std::exp(-z)) : 1 / (1 + std::exp(z)));
      } else {
        expected = std::pow(table.targets[ids[i]] - z, 2) + std::log(2 * M_PI * 0.5) / 2;
      }
      EXPECT_NEAR(losses[i], expected, 1e-5 * expected);
      sum += losses[i];
    }
    EXPECT_NEAR(Look(potential.get(), theta, ids).energy[0], sum, 1e-12 * std::abs(sum));
  }
}

// A standardised target is learned as if the prediction were mean + stddev (weights . x + intercept).
TEST(RegressionPotential, StandardisedTargetsHaveTheDensityOfTheTargetsAsStored) {
  const Table table = MakeTable(40, 3, /*labels=*/false);
  JobPlan plan;
  plan.spec.model.kind = PotentialKind(LinearRegressionPotential{0.5});
  plan.spec.prior.kind = GaussianPrior{2};
  plan.target_units = {4, 2.5};
  auto potential = MakePotential(plan, Resident(table), Device());
  ASSERT_TRUE(potential.ok()) << potential.status();
  const ThetaArena theta = RandomTheta((*potential)->layout(), 2);
  const std::vector<int64_t> ids = SomeIds(2, 8, 40);
  std::vector<double> losses(16);
  (*potential)->Losses(theta, {ids.data(), 8}, losses.data());
  for (int i = 0; i < 16; ++i) {
    const std::vector<float> w = theta.ReadRow(i / 8);
    double f = w[3];
    for (int j = 0; j < 3; ++j) f += w[j] * static_cast<double>(table.inputs[ids[i] * 3 + j]);
    const double expected = std::pow(table.targets[ids[i]] - (4 + 2.5 * f), 2) + std::log(2 * M_PI * 0.5) / 2;
    EXPECT_NEAR(losses[i], expected, 1e-5 * expected);
  }
  ExpectGradientOfEnergy(potential->get(), theta, ids);
  plan.target_units.stddev = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(MakePotential(plan, Resident(table), Device()).status()));
}

TEST(RegressionPotential, AMiniBatchCountsAsManyTimesAsItIsSmaller) {
  const auto potential = Make(LinearRegressionPotential{0.5}, {}, Resident(MakeTable(40, 3, false)));
  const ThetaArena theta = RandomTheta(potential->layout(), 1);
  const Seen four = Look(potential.get(), theta, {1, 5, 7, 30}),
             doubled = Look(potential.get(), theta, {1, 5, 7, 30, 1, 5, 7, 30});
  EXPECT_NEAR(four.energy[0], doubled.energy[0], 1e-9);
  std::vector<double> losses(4);
  const std::vector<int64_t> ids = {1, 5, 7, 30};
  potential->Losses(theta, {ids.data(), 4}, losses.data());
  EXPECT_NEAR(four.energy[0], 10 * (losses[0] + losses[1] + losses[2] + losses[3]), 1e-9);
}

TEST(RegressionPotential, GradientsMatchTheEnergyForEveryPrior) {
  for (const bool labels : {false, true}) {
    const auto table = Resident(MakeTable(40, 3, labels));
    for (const bool intercept : {false, true}) {
      const PotentialKind kind = labels ? PotentialKind(LogisticRegressionPotential{intercept})
                                        : PotentialKind(LinearRegressionPotential{0.5, intercept});
      for (const PriorSpec& prior : {PriorSpec{}, PriorSpec{GaussianPrior{2}},
                                     PriorSpec{GaussianPrior{2, {{"weights", 9}}}}, PriorSpec{StudentTPrior{3, 0.1}}}) {
        const auto potential = Make(kind, prior, table);
        ExpectGradientOfEnergy(potential.get(), RandomTheta(potential->layout(), 2), SomeIds(2, 8, 40));
      }
    }
  }
}

TEST(RegressionPotential, RefusesTargetsThatItDoesNotLearn) {
  JobPlan plan;
  const auto path = [&](const PotentialKind& kind, std::shared_ptr<const ResidentDataset> data) {
    plan.spec.model.kind = kind;
    return FieldViolationsOf(MakePotential(plan, std::move(data), Device()).status()).at(0).path;
  };
  EXPECT_EQ(path(LinearRegressionPotential{}, Resident(MakeTable(8, 2, true))), "dataset.name");
  EXPECT_EQ(path(LogisticRegressionPotential{}, Resident(MakeTable(8, 2, false))), "dataset.name");
  EXPECT_FALSE(MakePotential(plan, nullptr, Device()).ok());
}

}  // namespace
}  // namespace chainfleet

// Runs HMC under the heavy-tailed priors, through the public job interface, on a regression whose design is the
// identity. The posterior is then a product of one-dimensional laws, exp(-(w - y)^2 / (2 sigma^2)) times the prior,
// whose moments are sums on a grid.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "tests/support/kernel_rows.h"
#include "tests/support/regression_dataset.h"
#include "worker/numerics/arena/device.h"

namespace chainfleet {
namespace {

using testing::Estimate;
using testing::EstimateOf;

constexpr int64_t kWeights = 8;
constexpr double kTarget = 2, kNoiseVariance = 0.8;

// Example i has input 1 for weight i and 0 for all others.
std::shared_ptr<const ResidentDataset> IdentityDesign() {
  Table table{.width = kWeights, .normalisation = {{0}, {1}}};
  for (int64_t i = 0; i < kWeights; ++i) {
    for (int64_t j = 0; j < kWeights; ++j) table.inputs.push_back(i == j ? 1.0f : 0.0f);
    table.targets.push_back(static_cast<float>(kTarget));
  }
  return Resident(table);
}

struct Moments {
  Estimate mean, square;
};

// Averages over coordinates and kept steps; chains are independent.
Moments Sample(const PriorSpec& prior) {
  (void)InitializeDevice("cpu", 1);
  constexpr int32_t kChains = 400;
  constexpr int64_t kBurnIn = 30, kSteps = 110;
  const auto data = IdentityDesign();
  auto plan = std::make_shared<JobPlan>();
  plan->job = "prior-aaaaaa";
  JobSpec& spec = plan->spec;
  spec.name = "prior";
  spec.model.kind = PotentialKind(LinearRegressionPotential{kNoiseVariance, false});
  spec.dataset = "table";
  spec.prior = prior;
  spec.sampler.kind = HmcSpec{6};
  spec.schedule = {StepScale::kStepSize, ConstantSchedule{0.18}};
  spec.batch_size = kWeights;
  spec.num_steps = kBurnIn + kSteps;
  spec.burn_in.steps = kBurnIn;
  spec.chains = kChains;
  spec.seed = 5;
  plan->dataset = data->description();
  plan->normalisation = data->description().normalisation;
  const auto batch = ChainBatch::Create(plan, data, "cpu");
  EXPECT_TRUE(batch.ok()) << batch.status();
  for (int32_t chain = 0; chain < kChains; ++chain) EXPECT_TRUE((*batch)->AddChain(chain, std::nullopt).ok());
  std::vector<double> sum(kChains), square(kChains);
  const auto add = [&](int32_t chain, const Draw& draw) {
    for (const double w : draw.theta[0]) {
      sum[chain] += draw.weight * w / (kSteps * kWeights);
      square[chain] += draw.weight * w * w / (kSteps * kWeights);
    }
  };
  for (int64_t step = 0; step < kBurnIn + kSteps; ++step) {
    const auto reports = (*batch)->Step();
    EXPECT_TRUE(reports.ok()) << reports.status();
    for (const RowReport& report : *reports) {
      if (report.draw_due) add(report.chain, (*batch)->TakeDraw(report.chain));
      if (report.done) add(report.chain, *(*batch)->GiveUpHeld(report.chain));
    }
  }
  return {EstimateOf(sum), EstimateOf(square)};
}

// `energy`: -log prior density of one parameter.
void ExpectPosterior(const PriorSpec& prior, const std::function<double(double)>& energy) {
  double mass = 0, mean = 0, square = 0;
  for (double w = -9; w < 11; w += 1e-4) {
    const double density = std::exp(-(w - kTarget) * (w - kTarget) / (2 * kNoiseVariance) - energy(w));
    mass += density;
    mean += density * w;
    square += density * w * w;
  }
  const Moments found = Sample(prior);
  for (const auto& [estimate, law] : {std::pair(found.mean, mean / mass), {found.square, square / mass}}) {
    EXPECT_NEAR(estimate.value, law, 4 * estimate.error) << "+- " << estimate.error;
    EXPECT_LE(estimate.error, 0.004 * law) << "measured too roughly to mean it";
  }
}

TEST(PriorLaws, HmcUnderALaplacePriorHasTheExactPosterior) {
  ExpectPosterior({LaplacePrior{0.9}}, [](double w) { return std::abs(w) / 0.9; });
}

TEST(PriorLaws, HmcUnderAStudentTPriorHasTheExactPosterior) {
  ExpectPosterior({StudentTPrior{3, 0.7}}, [](double w) { return 2 * std::log1p(w * w / (3 * 0.49)); });
}

}  // namespace
}  // namespace chainfleet

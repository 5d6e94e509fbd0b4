// Simulation-based calibration through the job interface: the share of traced values below the true one is uniform over
// chains if the sampler is right, and not if its temperature or its step is wrong (Talts et al. 2018, theorem 1).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/support/kolmogorov_smirnov.h"
#include "tests/support/regression_dataset.h"
#include "worker/numerics/arena/device.h"
#include "worker/numerics/batch/chain_batch.h"

namespace chainfleet {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::Gt;
using ::testing::Lt;
using ::testing::Pair;

constexpr int kChains = 1000;

JobSpec SpecOf(const ModelSpec& model, const PriorSpec& prior, const SamplerSpec& sampler, double step_size) {
  JobSpec spec;
  spec.kind = JobKind::kSbc;
  spec.name = "calibrated";
  spec.model = model;
  spec.dataset = "table";
  spec.prior = prior;
  spec.sampler = sampler;
  spec.schedule = {StepScale::kStepSize, ConstantSchedule{step_size}};
  spec.batch_size = 12;
  spec.num_steps = 250;
  spec.burn_in.steps = 60;
  spec.trace_every = 10;
  spec.chains = kChains;
  spec.seed = 20180418;
  return spec;
}

// The distance of each quantity's shares from the uniform law, in units of that which a right sampler exceeds with
// probability 1e-4. Traced values must be nearly independent: trajectories of HMC may not be half a period of a
// direction, after which its square is what it was.
std::map<std::string, double> DistancesOf(const JobSpec& spec, bool labels) {
  EXPECT_TRUE(InitializeDevice("cpu", 1).ok());
  const auto data = Resident(MakeTable(12, 2, labels));
  auto plan = std::make_shared<JobPlan>();
  static int jobs = 0;  // a batch may take the data of an earlier one of its job
  plan->job = "calibrated-" + std::to_string(++jobs);
  plan->spec = spec;
  plan->dataset = data->description();
  plan->normalisation = data->description().normalisation;
  const auto batch = ChainBatch::Create(plan, data, "cpu");
  EXPECT_TRUE(batch.ok()) << batch.status();
  for (int chain = 0; chain < kChains; ++chain) EXPECT_TRUE((*batch)->AddChain(chain, std::nullopt).ok());
  const std::vector<std::string>& names = (*batch)->trace_quantities();
  std::vector<std::vector<double>> below(names.size(), std::vector<double>(kChains));
  double looks = 0;
  for (int64_t step = 0; step < spec.num_steps; ++step) {
    const auto reports = (*batch)->Step();
    EXPECT_TRUE(reports.ok()) << reports.status();
    looks += reports->front().trace.empty() ? 0 : 1;
    for (const RowReport& report : *reports) {
      for (size_t q = 0; q < report.trace.size(); ++q) below[q][report.chain] += report.trace[q] < 0 ? 1 : 0;
    }
  }
  EXPECT_GT(looks, 15);
  std::map<std::string, double> distances;
  for (size_t q = 0; q < names.size(); ++q) {
    std::vector<testing::WeightedValue> shares;
    for (int chain = 0; chain < kChains; ++chain) {
      const PhiloxBlock random = RandomBlock(RngKey{q}, RngStream::kProbe, 0, static_cast<uint32_t>(chain));
      shares.push_back({static_cast<float>((below[q][chain] + UniformFloat(random.word[0])) / (looks + 1))});
    }
    const double distance = testing::KolmogorovDistance(shares, [](double u) { return u; });
    distances[names[q]] = distance / testing::CriticalDistance(kChains);
  }
  return distances;
}

const ModelSpec kLinear = {PotentialKind(LinearRegressionPotential{1.5})};

TEST(CalibrationLaws, RanksOfLinearRegressionAreUniformUnderHmc) {
  const auto distances = DistancesOf(SpecOf(kLinear, {GaussianPrior{1}}, {HmcSpec{6}}, 0.08), false);
  EXPECT_EQ(distances.size(), 8u);
  EXPECT_THAT(distances, Each(Pair(::testing::_, Lt(1))));
}

// theta_a has the law of the posterior plus N(0, eta T), so its ranks would not be level: they are not taken. EMCMC
// forgets more slowly than SGLD, so its looks are further apart.
TEST(CalibrationLaws, RanksOfLinearRegressionAreUniformUnderEmcmc) {
  JobSpec spec = SpecOf(kLinear, {GaussianPrior{1}}, {EmcmcSpec{.eta = 0.4}}, 0.02);
  spec.num_steps = 900;
  spec.burn_in.steps = 90;
  spec.trace_every = 45;
  const auto distances = DistancesOf(spec, false);
  EXPECT_EQ(distances.size(), 8u);
  EXPECT_THAT(distances, Each(Pair(::testing::_, Lt(1))));
}

TEST(CalibrationLaws, RanksOfASoftmaxWithAHeavyPriorAreUniformUnderHmc) {
  const ModelSpec softmax = {BuiltinModel{"softmax_regression", {}}};
  for (const PriorSpec& prior : {PriorSpec{LaplacePrior{0.7}}, PriorSpec{StudentTPrior{5, 0.8}}}) {
    const auto distances = DistancesOf(SpecOf(softmax, prior, {HmcSpec{6}}, 0.08), true);
    EXPECT_EQ(distances.size(), 5u);
    EXPECT_THAT(distances, Each(Pair(::testing::_, Lt(1))));
  }
}

TEST(CalibrationLaws, RanksShowAWrongTemperature) {
  JobSpec spec = SpecOf(kLinear, {GaussianPrior{1}}, {HmcSpec{6}}, 0.08);
  spec.temperature = 4;
  EXPECT_THAT(DistancesOf(spec, false), Contains(Pair("theta.weights[0]", Gt(1.2))));
}

TEST(CalibrationLaws, RanksShowTheErrorOfALargeStep) {
  const auto error_at = [](double step_size) {
    JobSpec spec = SpecOf(kLinear, {GaussianPrior{1}}, {SgldSpec{}}, step_size);
    return DistancesOf(spec, false).at("theta.norm");
  };
  EXPECT_LT(error_at(0.02), 1);
  EXPECT_GT(error_at(0.12), 1.2);
}

}  // namespace
}  // namespace chainfleet

// Tests the true parameters and the simulated targets of jobs of kind sbc, and that each chain samples its own.
#include "worker/numerics/batch/simulated_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <utility>

#include "tests/support/chain_run.h"
#include "tests/support/estimate.h"
#include "tests/support/exported_files.h"
#include "tests/support/kolmogorov_smirnov.h"
#include "tests/support/model_files.h"
#include "worker/numerics/batch/potential_factory.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<JobPlan> PlanOf(const ModelSpec& model, const ResidentDataset& data, const SamplerSpec& sampler) {
  auto plan = std::make_shared<JobPlan>();
  static int jobs = 0;  // a batch may take the data of an earlier one of its job
  plan->job = "calibrated-" + std::to_string(++jobs);
  plan->dataset = data.description();
  plan->normalisation = data.description().normalisation;
  JobSpec& spec = plan->spec;
  spec.kind = JobKind::kSbc;
  spec.name = "calibrated";
  spec.dataset = data.description().name;
  spec.model = model;
  spec.prior.kind = GaussianPrior{2};
  spec.sampler = sampler;
  spec.schedule = {StepScale::kStepSize, ConstantSchedule{1e-3}};
  spec.batch_size = 8;
  spec.num_steps = 6;
  spec.trace_every = 1;
  spec.chains = 3;
  spec.seed = 17;
  return plan;
}

std::shared_ptr<const ResidentDataset> Simulated(const JobPlan& plan,
                                                 const std::shared_ptr<const ResidentDataset>& data,
                                                 const std::shared_ptr<const ModelFile>& module = nullptr) {
  const auto potential = MakePotential(plan, data, Device(), module.get());
  EXPECT_TRUE(potential.ok()) << potential.status();
  auto simulated = SimulateTargets(plan, **potential, data.get(), module);
  EXPECT_TRUE(simulated.ok()) << simulated.status();
  return *std::move(simulated);
}

// The data of one chain, as if a user had stored them.
std::shared_ptr<const ResidentDataset> BlockOf(const ResidentDataset& simulated, const ResidentDataset& data,
                                               int32_t chain) {
  const int64_t rows = data.description().num_rows;
  const auto part = [&](const auto& values) -> TargetValues {
    return std::decay_t<decltype(values)>(values.begin() + chain * rows, values.begin() + (chain + 1) * rows);
  };
  return ResidentDataset::WithTargets(data, std::visit(part, simulated.targets()));
}

TEST(DrawTruth, HasTheLawOfEachTensorsPrior) {
  constexpr int64_t kValues = 20000;
  const Layout layout({{"one", {kValues}, 0, 0}, {"two", {kValues}, kValues, 0}});
  const auto laplace = [](double x) { return x < 0 ? std::exp(x / 0.3) / 2 : 1 - std::exp(-x / 0.3) / 2; };
  const auto cauchy = [](double x) { return 0.5 + std::atan(x / 0.7) / std::numbers::pi; };
  const auto student2 = [](double x) { return 0.5 + x / 2 / std::sqrt(2 + x * x); };
  const struct {
    PriorSpec prior;
    std::function<double(double)> one, two;
  } laws[] = {
      {{GaussianPrior{4, {{"two", 25}}}}, testing::NormalCdf(1.0 / 4), testing::NormalCdf(1.0 / 25)},
      {{LaplacePrior{0.3}}, laplace, laplace},
      {{StudentTPrior{1, 0.7}}, cauchy, cauchy},
      {{StudentTPrior{2, 1}}, student2, student2},
  };
  for (const auto& law : laws) {
    JobSpec spec;
    spec.prior = law.prior;
    const std::vector<float> theta = DrawTruth(spec, layout, 5);
    std::vector<testing::WeightedValue> one, two;
    for (int64_t i = 0; i < kValues; ++i) one.push_back({theta[i]}), two.push_back({theta[kValues + i]});
    EXPECT_LT(testing::KolmogorovDistance(one, law.one), testing::CriticalDistance(kValues));
    EXPECT_LT(testing::KolmogorovDistance(two, law.two), testing::CriticalDistance(kValues));
  }
}

TEST(DrawTruth, IsAFunctionOfSeedAndChain) {
  const Layout layout({{"one", {3}, 0, 0}});
  JobSpec spec;
  spec.prior.kind = GaussianPrior{1};
  const std::vector<float> truth = DrawTruth(spec, layout, 1);
  EXPECT_EQ(DrawTruth(spec, layout, 1), truth);
  EXPECT_NE(DrawTruth(spec, layout, 0), truth);
  spec.seed = 1;
  EXPECT_NE(DrawTruth(spec, layout, 1), truth);
}

TEST(SimulateTargets, NumbersAreNormalAboutTheModelAtTheTruthInTheirUnits) {
  constexpr int32_t kMany = 80;
  const Table table = MakeTable(500, 2, false);
  const auto data = Resident(table);
  const auto plan = PlanOf({PotentialKind(LinearRegressionPotential{0.25})}, *data, {SgldSpec{}});
  plan->target_units = {10, 4};
  plan->spec.chains = kMany;
  const auto simulated = Simulated(*plan, data);
  EXPECT_EQ(simulated->description().num_rows, 500);
  ASSERT_EQ(simulated->stored_rows(), kMany * 500);
  EXPECT_EQ(simulated->input_bytes().substr((kMany - 1) * data->input_bytes().size()), data->input_bytes());
  const Layout layout((*MakePotential(*plan, data, Device()))->layout()->parameters());
  const auto& targets = std::get<std::vector<float>>(simulated->targets());
  std::vector<testing::WeightedValue> residuals;
  for (int32_t chain = 0; chain < kMany; ++chain) {
    const std::vector<float> theta = DrawTruth(plan->spec, layout, chain);
    for (int64_t i = 0; i < 500; ++i) {
      double mean = theta[2];
      for (int64_t j = 0; j < 2; ++j) mean += theta[j] * (table.inputs[2 * i + j] - 0.3) / 1.7;
      residuals.push_back({static_cast<float>((targets[chain * 500 + i] - 10 - 4 * mean) / 0.5)});
    }
  }
  EXPECT_LT(testing::KolmogorovDistance(residuals, testing::NormalCdf(1)), testing::CriticalDistance(kMany * 500));
}

TEST(SimulateTargets, LabelsHaveTheProbabilitiesOfTheModelAtTheTruth) {
  const Table table = MakeTable(500, 2, true);
  const auto data = Resident(table, 3);
  const auto plan = PlanOf({BuiltinModel{"softmax_regression", {}}}, *data, {SgldSpec{}});
  plan->spec.chains = 20;
  const auto simulated = Simulated(*plan, data);
  const Layout layout((*MakePotential(*plan, data, Device()))->layout()->parameters());
  ASSERT_EQ(layout.num_parameters(), 9);
  const auto& labels = std::get<std::vector<int32_t>>(simulated->targets());
  std::vector<std::vector<double>> misses(3), weighted(3);
  for (int32_t chain = 0; chain < 20; ++chain) {
    const std::vector<float> theta = DrawTruth(plan->spec, layout, chain);
    for (int64_t i = 0; i < 500; ++i) {
      double p[3], sum = 0;
      for (int k = 0; k < 3; ++k) {
        double logit = theta[6 + k];
        for (int64_t j = 0; j < 2; ++j) logit += theta[2 * k + j] * (table.inputs[2 * i + j] - 0.3) / 1.7;
        sum += p[k] = std::exp(logit);
      }
      for (int k = 0; k < 3; ++k) {
        const double miss = (labels[chain * 500 + i] == k) - p[k] / sum;
        misses[k].push_back(miss);
        weighted[k].push_back(miss * p[k] / sum);
      }
    }
  }
  for (int k = 0; k < 3; ++k) {
    const testing::Estimate mean = testing::EstimateOf(misses[k]), at_likely = testing::EstimateOf(weighted[k]);
    EXPECT_NEAR(mean.value, 0, 4 * mean.error) << k;
    EXPECT_LT(mean.error, 0.006);
    EXPECT_NEAR(at_likely.value, 0, 4 * at_likely.error) << k;
  }
}

TEST(SimulateTargets, DoNotDependOnTheStoredTargets) {
  Table table = MakeTable(20, 2, true);
  const auto data = Resident(table);
  std::ranges::reverse(table.labels);
  const auto other = Resident(table);
  ASSERT_NE(data->targets(), other->targets());
  const auto plan = PlanOf({BuiltinModel{"softmax_regression", {}}}, *data, {SgldSpec{}});
  EXPECT_EQ(Simulated(*plan, data)->targets(), Simulated(*plan, other)->targets());
}

struct Case {
  std::string name;
  ModelSpec model;
  SamplerSpec sampler;
  std::shared_ptr<const ResidentDataset> data;
  std::string file = {};  // a stored network
};

class Calibration : public ::testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<ChainBatch> BatchOf(const std::shared_ptr<const JobPlan>& plan,
                                      const std::shared_ptr<const ResidentDataset>& data) {
    auto batch = ChainBatch::Create(plan, data, "cpu", module_);
    EXPECT_TRUE(batch.ok()) << batch.status();
    return *std::move(batch);
  }

  // Draws and traces of a chain, from step `first` on.
  struct Run {
    std::vector<float> draws;
    std::vector<std::vector<double>> traces;
  };
  static Run RunToEnd(ChainBatch& batch, int32_t chain) {
    Run run;
    Draws draws;
    for (bool done = false; !done;) {
      const auto reports = batch.Step();
      EXPECT_TRUE(reports.ok()) << reports.status();
      for (const RowReport& report : *reports) {
        if (report.chain != chain) continue;
        run.traces.push_back(report.trace);
        if (report.draw_due) draws.push_back(batch.TakeDraw(chain));
        done = report.done || !report.finite;
      }
    }
    run.draws = Flat(draws);
    return run;
  }

  const std::shared_ptr<const ModelFile> module_ = GetParam().file.empty() ? nullptr : FileOf(GetParam().file);
  const std::shared_ptr<JobPlan> plan_ = PlanOf(GetParam().model, *GetParam().data, GetParam().sampler);
};

// The other chains come and go around it.
TEST_P(Calibration, AChainIsThatOfAJobWithItsTargets) {
  const auto simulated = Simulated(*plan_, GetParam().data, module_);
  auto alone = std::make_shared<JobPlan>(*plan_);
  alone->spec.kind = JobKind::kPosterior;
  for (const int32_t chain : {0, 2}) {
    const auto batch = BatchOf(plan_, GetParam().data);
    for (const int32_t other : {1, 2, 0}) ASSERT_TRUE((*batch).AddChain(other, std::nullopt).ok());
    batch->RemoveChain(1);
    const auto plain = BatchOf(alone, BlockOf(*simulated, *GetParam().data, chain));
    ASSERT_TRUE(plain->AddChain(chain, std::nullopt).ok());
    const Run got = RunToEnd(*batch, chain), wanted = RunToEnd(*plain, chain);
    ASSERT_FALSE(got.draws.empty());
    EXPECT_EQ(got.draws, wanted.draws);
    const auto& names = batch->trace_quantities();
    ASSERT_EQ(plain->trace_quantities().size(), wanted.traces.front().size());
    for (const char* const untrue : {"energy", "anchor_distance"})
      EXPECT_EQ(std::ranges::count(names, std::string(untrue)), 0);
    EXPECT_TRUE(std::ranges::none_of(names, [](const std::string& name) { return name.starts_with("theta_a"); }));
    // The truth is what a trace lacks, at every step.
    for (size_t q = 0; q < names.size(); ++q) {
      const size_t of_plain =
          std::ranges::find(plain->trace_quantities(), names[q]) - plain->trace_quantities().begin();
      const double truth = wanted.traces[0][of_plain] - got.traces[0][q];
      EXPECT_NE(truth, 0) << names[q];
      for (size_t t = 0; t < got.traces.size(); ++t) {
        EXPECT_NEAR(wanted.traces[t][of_plain] - got.traces[t][q], truth, 1e-9 * std::abs(truth) + 1e-9) << names[q];
      }
    }
  }
}

TEST_P(Calibration, AResumedChainGoesOn) {
  const auto whole = BatchOf(plan_, GetParam().data), first = BatchOf(plan_, GetParam().data);
  ASSERT_TRUE(whole->AddChain(1, std::nullopt).ok());
  ASSERT_TRUE(first->AddChain(1, std::nullopt).ok());
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(first->Step().ok() && whole->Step().ok());
  const auto second = BatchOf(plan_, GetParam().data);
  ASSERT_TRUE(second->AddChain(0, std::nullopt).ok());
  ASSERT_TRUE(second->AddChain(1, first->SaveResumePoint(1)).ok());
  const Run resumed = RunToEnd(*second, 1), unbroken = RunToEnd(*whole, 1);
  EXPECT_EQ(resumed.draws, unbroken.draws);
  EXPECT_EQ(resumed.traces, unbroken.traces);
  ASSERT_FALSE(resumed.traces.back().empty());
}

const ModelSpec kStored = {StoredNetworkModel{"mine", ModelFormat::kExported}};
INSTANTIATE_TEST_SUITE_P(
    Models, Calibration,
    ::testing::Values(
        Case{"Linear",
             {PotentialKind(LinearRegressionPotential{0.5})},
             {EmcmcSpec{0.4}},
             Resident(MakeTable(24, 2, false))},
        Case{
            "Logistic", {PotentialKind(LogisticRegressionPotential{})}, {HmcSpec{2}}, Resident(MakeTable(24, 2, true))},
        Case{"Fused", {BuiltinModel{"mlp", {8}}}, {SgldSpec{}}, SyntheticImages(40, {1, 6, 6}, 4)},
        Case{"Numbers",
             {BuiltinModel{"mlp", {8}}, GaussianLikelihood{.learned = true}},
             {SghmcSpec{}},
             Resident(MakeTable(24, 3, false))},
        Case{"Norms",
             {BuiltinModel{"mlp", {8}}},
             {GradientUncertaintySpec{.threshold = 1e9}},
             SyntheticImages(40, {1, 6, 6}, 4)},
        Case{"Penalty",
             {BuiltinModel{"mlp", {8}}},
             {PenaltyMhSpec{.proposal = Proposal::kLangevin, .num_batches = 5}},
             SyntheticImages(40, {1, 6, 6}, 4)},
        Case{"Exported", kStored, {SgldSpec{}}, SyntheticImages(40, {6}, 3), ReadExportedData("mlp.pt2")}),
    [](const auto& info) { return info.param.name; });

TEST(SbcBatch, RefusesChainsWithoutTargetsAndModelsWithoutALawOfTargets) {
  const auto data = Resident(MakeTable(24, 2, false));
  const auto plan = PlanOf({PotentialKind(LinearRegressionPotential{0.5})}, *data, {SgldSpec{}});
  const auto batch = ChainBatch::Create(plan, data, "cpu");
  ASSERT_TRUE(batch.ok()) << batch.status();
  const absl::Status added = (*batch)->AddChain(3, std::nullopt);
  EXPECT_TRUE(absl::IsInvalidArgument(added));
  EXPECT_THAT(std::string(added.message()), HasSubstr("takes no more chains"));
  EXPECT_THAT(
      (*batch)->trace_quantities(),
      ElementsAre("theta.norm", "theta.log_likelihood[3]", "theta.log_likelihood[9]", "theta.log_likelihood[15]",
                  "theta.log_likelihood[21]", "theta.weights[0]", "theta.weights[1]", "theta.intercept"));
  auto density = std::make_shared<JobPlan>(*plan);
  density->dataset.reset();
  density->spec.dataset.clear();
  density->spec.prior = {};
  density->spec.model.kind = PotentialKind(GaussianPotential{3, 2.0});
  EXPECT_TRUE(absl::IsInvalidArgument(ChainBatch::Create(density, nullptr, "cpu").status()));
}

}  // namespace
}  // namespace chainfleet

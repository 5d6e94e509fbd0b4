// Tests a batch of chains through its public interface: bits that depend only on the chain, resume points, bad input.
#include "worker/numerics/batch/chain_batch.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/store/draw_codec/safetensors.h"
#include "tests/support/network_chains.h"
#include "tests/support/synthetic_dataset.h"
#include "worker/numerics/batch/checkpoint_codec.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<JobPlan> GaussianPlan(const SamplerSpec& sampler) {
  auto plan = std::make_shared<JobPlan>();
  plan->job = "gaussian-aaaaaa";
  plan->spec.name = "gaussian";
  plan->spec.model.kind = GaussianPotential{300, 2.0};
  plan->spec.sampler = sampler;
  plan->spec.schedule = {StepScale::kStepSize, CyclicalSchedule{0.2, 0.01, 2}};
  plan->spec.num_steps = 40;
  plan->spec.chains = 8;
  plan->spec.collect.every_steps = 5;
  plan->spec.burn_in.steps = 20;
  plan->spec.seed = 99;
  return plan;
}

std::unique_ptr<ChainBatch> MakeBatch(const std::shared_ptr<JobPlan>& plan) {
  auto batch = ChainBatch::Create(plan, nullptr, "cpu");
  EXPECT_TRUE(batch.ok()) << batch.status();
  return std::move(batch).value();
}

void Advance(ChainBatch& batch, int steps) {
  for (int i = 0; i < steps; ++i) ASSERT_TRUE(batch.Step().ok());
}

bool SameBytes(const Draw& a, const Draw& b) {
  if (a.theta.size() != b.theta.size()) return false;
  for (size_t k = 0; k < a.theta.size(); ++k) {
    if (a.theta[k].size() != b.theta[k].size()) return false;
    if (std::memcmp(a.theta[k].data(), b.theta[k].data(), a.theta[k].size() * sizeof(float)) != 0) return false;
  }
  return true;
}

class ChainBatchTest : public ::testing::TestWithParam<SamplerSpec> {
 protected:
  const std::shared_ptr<JobPlan> plan_ = GaussianPlan(GetParam());
};

TEST_P(ChainBatchTest, HasTheBitsOfChainsRunAlone) {
  const auto together = MakeBatch(plan_);
  for (int chain = 0; chain < 5; ++chain) ASSERT_TRUE(together->AddChain(chain, std::nullopt).ok());
  Advance(*together, 12);
  for (int chain = 0; chain < 5; ++chain) {
    const auto alone = MakeBatch(plan_);
    ASSERT_TRUE(alone->AddChain(chain, std::nullopt).ok());
    Advance(*alone, 12);
    EXPECT_TRUE(SameBytes(together->TakeDraw(chain), alone->TakeDraw(chain))) << chain;
    EXPECT_EQ(together->SaveResumePoint(chain), alone->SaveResumePoint(chain)) << chain;
  }
}

TEST_P(ChainBatchTest, TakesAChainThatWasAddedToTheJobSince) {
  const auto running = MakeBatch(plan_);
  ASSERT_TRUE(running->AddChain(0, std::nullopt).ok());
  Advance(*running, 3);
  ASSERT_TRUE(running->AddChain(plan_->spec.chains, std::nullopt).ok());
  Advance(*running, 12);
  const auto scaled = std::make_shared<JobPlan>(*plan_);
  ++scaled->spec.chains;
  const auto alone = MakeBatch(scaled);
  ASSERT_TRUE(alone->AddChain(plan_->spec.chains, std::nullopt).ok());
  Advance(*alone, 12);
  EXPECT_EQ(running->SaveResumePoint(plan_->spec.chains), alone->SaveResumePoint(plan_->spec.chains));
}

TEST_P(ChainBatchTest, ResumesByteForByteAfterAnyInterruption) {
  const auto whole = MakeBatch(plan_);
  ASSERT_TRUE(whole->AddChain(3, std::nullopt).ok());
  Advance(*whole, 30);
  for (const int cut : {1, 7, 20, 29}) {
    const auto before = MakeBatch(plan_);
    ASSERT_TRUE(before->AddChain(3, std::nullopt).ok());
    Advance(*before, cut);
    const auto after = MakeBatch(plan_);
    ASSERT_TRUE(after->AddChain(0, std::nullopt).ok());  // other chains, another row
    Advance(*after, 2);
    ASSERT_TRUE(after->AddChain(3, before->SaveResumePoint(3)).ok());
    EXPECT_EQ(after->StepsDone(3), cut);
    Advance(*after, 30 - cut);
    EXPECT_EQ(after->StepsDone(3), 30);
    EXPECT_EQ(after->SaveResumePoint(3), whole->SaveResumePoint(3)) << cut;
    EXPECT_TRUE(SameBytes(after->TakeDraw(3), whole->TakeDraw(3))) << cut;
  }
}

TEST_P(ChainBatchTest, ReportsTheSameAfterAnyInterruption) {
  const auto run = [](ChainBatch& batch, int steps) {
    std::optional<RunReport> last;
    for (int i = 0; i < steps; ++i) last = batch.Step()->front().stats.report;
    return last;
  };
  const auto whole = MakeBatch(plan_);
  ASSERT_TRUE(whole->AddChain(3, std::nullopt).ok());
  const std::optional<RunReport> report = run(*whole, 40);
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->step, 39);  // the last of a cycle
  EXPECT_EQ(report->gradient_variance, 0);
  EXPECT_EQ(report->effective_temperature, plan_->spec.temperature);
  EXPECT_NEAR(*report->curvature, 2, 2e-3);
  for (const int cut : {1, 30, 38}) {
    const auto before = MakeBatch(plan_), after = MakeBatch(plan_);
    ASSERT_TRUE(before->AddChain(3, std::nullopt).ok());
    const std::optional<RunReport> at_cut = run(*before, cut);
    ASSERT_TRUE(after->AddChain(3, before->SaveResumePoint(3)).ok());
    EXPECT_EQ(run(*after, 1), at_cut) << cut;
    EXPECT_EQ(run(*after, 39 - cut), report) << cut;
  }
}

TEST_P(ChainBatchTest, ContinuesUnchangedWhenANeighbourLeaves) {
  const auto batch = MakeBatch(plan_), alone = MakeBatch(plan_);
  for (int chain = 0; chain < 3; ++chain) ASSERT_TRUE(batch->AddChain(chain, std::nullopt).ok());
  ASSERT_TRUE(alone->AddChain(2, std::nullopt).ok());
  Advance(*batch, 4);
  batch->RemoveChain(0);
  EXPECT_THAT(batch->chains(), ElementsAre(2, 1));
  Advance(*batch, 4);
  Advance(*alone, 8);
  EXPECT_EQ(batch->SaveResumePoint(2), alone->SaveResumePoint(2));
}

TEST_P(ChainBatchTest, ReportsANonFiniteRowAndAffectsNoOther) {
  for (const float poison : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const auto batch = MakeBatch(plan_), clean = MakeBatch(plan_);
    ASSERT_TRUE(clean->AddChain(0, std::nullopt).ok());
    ASSERT_TRUE(clean->AddChain(2, std::nullopt).ok());
    auto checkpoint = DecodeCheckpoint(clean->SaveResumePoint(0));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    checkpoint->chain = 1;
    checkpoint->arenas[0][17] = poison;
    ASSERT_TRUE(batch->AddChain(0, std::nullopt).ok());
    ASSERT_TRUE(batch->AddChain(1, EncodeCheckpoint(*checkpoint)).ok());
    ASSERT_TRUE(batch->AddChain(2, std::nullopt).ok());
    const auto reports = batch->Step();
    ASSERT_TRUE(reports.ok());
    EXPECT_TRUE((*reports)[0].finite);
    EXPECT_FALSE((*reports)[1].finite);
    EXPECT_FALSE((*reports)[1].draw_due);
    EXPECT_TRUE((*reports)[2].finite);
    Advance(*batch, 5);
    Advance(*clean, 6);
    for (const int chain : {0, 2}) EXPECT_EQ(batch->SaveResumePoint(chain), clean->SaveResumePoint(chain));
  }
}

TEST_P(ChainBatchTest, ReportsStepsDrawsAndTheEnd) {
  const auto batch = MakeBatch(plan_);
  ASSERT_TRUE(batch->AddChain(4, std::nullopt).ok());
  std::vector<int64_t> drawn;
  for (int64_t step = 1; step <= 40; ++step) {
    const auto reports = batch->Step();
    ASSERT_TRUE(reports.ok());
    ASSERT_EQ(reports->size(), 1u);
    const RowReport& report = reports->front();
    EXPECT_EQ(report.chain, 4);
    EXPECT_EQ(report.step, step);
    EXPECT_EQ(report.done, step == 40);
    EXPECT_TRUE(report.finite);
    if (step == 1 || step == 21) {
      EXPECT_DOUBLE_EQ(report.stats.step_size, 0.2);
    }
    if (step > 1 && plan_->spec.sampler.has_anchor()) {
      EXPECT_GT(report.stats.anchor_distance, 0);
    }
    if (report.draw_due) drawn.push_back(step);
  }
  EXPECT_THAT(drawn, ElementsAre(25, 30, 35, 40));
  const auto rest = batch->Step();
  ASSERT_TRUE(rest.ok());
  EXPECT_TRUE(rest->empty());
}

TEST_P(ChainBatchTest, EnergyBelongsToTheStateBeforeTheStep) {
  const auto batch = MakeBatch(plan_);
  ASSERT_TRUE(batch->AddChain(0, std::nullopt).ok());
  Advance(*batch, 3);
  double energy = 0;
  const Draw draw = batch->TakeDraw(0);
  for (const double x : draw.theta[0]) energy += x * x;  // precision 2, halved
  const auto reports = batch->Step();
  ASSERT_TRUE(reports.ok());
  EXPECT_NEAR(reports->front().stats.energy, energy, 1e-9 * energy);
}

TEST_P(ChainBatchTest, RefusesAResumePointThatIsNotItsOwn) {
  const auto batch = MakeBatch(plan_);
  ASSERT_TRUE(batch->AddChain(0, std::nullopt).ok());
  const auto good = DecodeCheckpoint(batch->SaveResumePoint(0));
  ASSERT_TRUE(good.ok());
  Checkpoint other_job = *good, other_chain = *good, too_short = *good, other_kernel = *good;
  other_job.job = "other-bbbbbb";
  other_chain.chain = 5;
  for (auto& arena : too_short.arenas) arena.pop_back();
  other_kernel.names.back() += "_of_another";
  std::vector<Checkpoint> all_wrong = {other_job, other_chain, too_short, other_kernel};
  if (!good->numbers.empty()) all_wrong.emplace_back(*good).numbers.pop_back();
  for (const Checkpoint& wrong : all_wrong) {
    const absl::Status status = batch->AddChain(1, EncodeCheckpoint(wrong));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("gaussian-aaaaaa/1"));
  }
  const std::string bytes = batch->SaveResumePoint(0);
  for (const std::string& broken : {std::string(), std::string("junk"), bytes.substr(0, bytes.size() - 1)}) {
    EXPECT_EQ(batch->AddChain(1, broken).code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(batch->chains(), ElementsAre(0));
}

TEST_P(ChainBatchTest, RefusesAChainItHasOrThatDoesNotExist) {
  const auto batch = MakeBatch(plan_);
  ASSERT_TRUE(batch->AddChain(0, std::nullopt).ok());
  EXPECT_EQ(batch->AddChain(0, std::nullopt).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(batch->AddChain(-1, std::nullopt).code(), absl::StatusCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Kernels, ChainBatchTest,
                         ::testing::Values(SamplerSpec{SgldSpec{}}, SamplerSpec{EmcmcSpec{0.5}}),
                         [](const auto& info) { return info.param.has_anchor() ? "Emcmc" : "Sgld"; });

// For each chain, in its first and its second step.
TEST(ChainBatchOfStoredDraws, GivesThemAfterAnInterruptionToo) {
  const auto plan = GaussianPlan({SgdSpec()});
  plan->spec.model.kind = GaussianPotential{2, 2.0};
  plan->spec.num_steps = 4;
  plan->spec.collect.every_steps = 1;
  plan->spec.burn_in.steps = 0;
  const auto before = MakeBatch(plan), after = MakeBatch(plan);
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const std::vector<double> counts = {7, 8, 9};
  const std::string file =
      WriteSafetensors({{"theta/" + before->parameters()[0].name,
                         TensorType::kFloat32,
                         {3, 2},
                         reinterpret_cast<const char*>(values.data()),
                         24},
                        {"weights", TensorType::kFloat64, {3}, reinterpret_cast<const char*>(counts.data()), 24}},
                       {});
  ASSERT_TRUE(before->AddChain(0, std::nullopt, &file).ok());
  Advance(*before, 1);
  EXPECT_THAT(before->TakeDraw(0).theta[0], ElementsAre(1, 2));
  ASSERT_TRUE(after->AddChain(0, before->SaveResumePoint(0), &file).ok());
  Advance(*after, 2);
  EXPECT_THAT(after->TakeDraw(0).theta[0], ElementsAre(5, 6));
  EXPECT_EQ(after->TakeDraw(0).weight, 9);
  const auto last = after->Step();
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_FALSE(last->front().draw_due) << "the file has three draws";
  EXPECT_TRUE(last->front().done);
  plan->spec.num_steps = 2;
  EXPECT_THAT(std::string(MakeBatch(plan)->AddChain(0, std::nullopt, &file).message()),
              HasSubstr("has 3 draws, the job 2 steps"));
}

// Snapshots of a run of SGD give the Gaussian of a run of SWAG that went through them.
TEST(ChainBatchOfStoredDraws, SwagAveragesThemBeforeItsFirstStep) {
  const auto data = SyntheticImages(16, {1, 2, 2}, 3);
  const auto batch_of = [&](const SamplerSpec& sampler, int64_t steps) {
    const auto plan = NetworkPlan({BuiltinModel{.name = "softmax_regression"}}, sampler, *data);
    plan->spec.schedule = {StepScale::kStepSize, ConstantSchedule{0.01}};
    plan->spec.num_steps = steps;  // a batch is a data epoch
    if (steps == 0) plan->spec.init.weights = {"snapshots"};
    auto batch = ChainBatch::Create(plan, data, "cpu");
    EXPECT_TRUE(batch.ok()) << batch.status();
    return *std::move(batch);
  };
  const auto sgd = batch_of({SgdSpec{.momentum = 0.5}}, 3);
  ASSERT_TRUE(sgd->AddChain(0, std::nullopt).ok());
  std::vector<std::vector<float>> of_tensor(sgd->parameters().size());
  for (int step = 0; step < 3; ++step) {
    Advance(*sgd, 1);
    const std::vector<float> theta = sgd->TakeDraw(0).theta[0];
    for (size_t k = 0; k < of_tensor.size(); ++k) {
      const auto first = theta.begin() + sgd->parameters()[k].offset;
      of_tensor[k].insert(of_tensor[k].end(), first, first + NumValues(sgd->parameters()[k].shape));
    }
  }
  std::vector<TensorView> tensors;
  for (size_t k = 0; k < of_tensor.size(); ++k) {
    std::vector<int64_t> shape = sgd->parameters()[k].shape;
    shape.insert(shape.begin(), 3);
    tensors.push_back({"theta/" + sgd->parameters()[k].name, TensorType::kFloat32, shape,
                       reinterpret_cast<const char*>(of_tensor[k].data()),
                       std::ssize(of_tensor[k]) * static_cast<int64_t>(sizeof(float))});
  }
  const std::string file = WriteSafetensors(tensors, {});
  const SwagSpec swag{.momentum = 0.5, .start_epoch = 0, .max_rank = 2, .draws = 2};
  const auto trained = batch_of({swag}, 3), given = batch_of({swag}, 0);
  ASSERT_TRUE(trained->AddChain(0, std::nullopt).ok());
  ASSERT_TRUE(given->AddChain(0, std::nullopt, &file).ok());
  Advance(*trained, 3);
  const Checkpoint at_end = DecodeCheckpoint(trained->SaveResumePoint(0)).value(),
                   at_start = DecodeCheckpoint(given->SaveResumePoint(0)).value();
  ASSERT_EQ(at_end.arenas.size(), at_start.arenas.size());
  for (size_t arena = 0; arena < at_end.arenas.size(); ++arena) {
    if (at_end.names[arena] == "momentum" || at_end.names[arena] == "draw") continue;
    EXPECT_EQ(at_start.arenas[arena], at_end.arenas[arena]) << at_end.names[arena];
  }
  EXPECT_EQ(at_start.numbers, at_end.numbers);
  // A resumed chain has its snapshots already.
  const auto resumed = batch_of({swag}, 0);
  Advance(*given, 1);
  ASSERT_TRUE(resumed->AddChain(0, given->SaveResumePoint(0), &file).ok());
  Advance(*given, 1);
  Advance(*resumed, 1);
  EXPECT_TRUE(SameBytes(resumed->TakeDraw(0), given->TakeDraw(0)));
}

TEST(ChainBatchReports, CountTheGradientsOfAStepAndTellOfProposals) {
  const auto reports = [](const SamplerSpec& sampler) {
    const auto batch = MakeBatch(GaussianPlan(sampler));
    EXPECT_TRUE(batch->AddChain(0, std::nullopt).ok() && batch->AddChain(1, std::nullopt).ok());
    const std::vector<RowReport> first = batch->Step().value();
    return std::pair(first, batch->Step().value());
  };
  const auto [sgld, later_sgld] = reports({SgldSpec{}});
  ASSERT_EQ(sgld.size(), 2u);
  EXPECT_EQ(sgld[0].gradients, 1);
  EXPECT_EQ(later_sgld[1].gradients, 1);
  EXPECT_EQ(sgld[0].accepted, std::nullopt);
  const auto [hmc, later_hmc] = reports({HmcSpec{3}});
  EXPECT_EQ(hmc[0].gradients, 4) << "where it begins, and after each leapfrog step";
  EXPECT_EQ(later_hmc[0].gradients, 3);
  const auto [walk, later_walk] = reports({RandomWalkSpec{}});
  EXPECT_EQ(walk[0].gradients, 0);
  EXPECT_EQ(walk[0].accepted, walk[0].stats.metropolis->acceptance == 1);
  EXPECT_TRUE(later_walk[1].accepted.has_value());
}

// A whole run of a network; threads and other chains change at the interruption.
TEST(ChainBatchOfNetworks, ResumesByteForByteInOtherCompanyAndOnOtherThreads) {
  const auto data = SyntheticImages(200);
  for (const std::string model : {"softmax_regression", "mlp", "lenet5"}) {
    auto plan = GaussianPlan({EmcmcSpec{4e-4}});
    plan->spec.model.kind = BuiltinModel{model, {}};
    plan->spec.dataset = "synthetic";
    plan->spec.prior.kind = GaussianPrior{25};
    plan->spec.schedule = {StepScale::kLearningRate, CyclicalSchedule{0.1, 0, 2}};
    plan->spec.temperature = 1e-4;
    plan->spec.batch_size = 32;
    plan->dataset = data->description();
    plan->normalisation = data->description().normalisation;
    const auto make = [&] {
      auto batch = ChainBatch::Create(plan, data, "cpu");
      EXPECT_TRUE(batch.ok()) << batch.status();
      return std::move(batch).value();
    };
    at::set_num_threads(1);
    const auto whole = make();
    ASSERT_TRUE(whole->AddChain(3, std::nullopt).ok());
    Advance(*whole, 14);
    const auto before = make();
    for (const int chain : {0, 3, 1}) ASSERT_TRUE(before->AddChain(chain, std::nullopt).ok());
    Advance(*before, 8);
    at::set_num_threads(2);
    const auto after = make();
    for (const int chain : {5, 6, 7}) ASSERT_TRUE(after->AddChain(chain, std::nullopt).ok());
    ASSERT_TRUE(after->AddChain(3, before->SaveResumePoint(3)).ok());
    Advance(*after, 6);
    EXPECT_EQ(after->SaveResumePoint(3), whole->SaveResumePoint(3)) << model;
    EXPECT_TRUE(SameBytes(after->TakeDraw(3), whole->TakeDraw(3))) << model;
    at::set_num_threads(1);
  }
}

TEST(ChainBatchOfNetworks, StartUniformWithinTheFanInBoundEachElsewhere) {
  const auto data = SyntheticImages(50);
  auto plan = GaussianPlan({EmcmcSpec{4e-4}});
  plan->spec.model.kind = BuiltinModel{"softmax_regression", {}};
  plan->spec.dataset = "synthetic";
  plan->spec.batch_size = 10;
  plan->dataset = data->description();
  plan->normalisation = data->description().normalisation;
  const auto batch = ChainBatch::Create(plan, data, "cpu");
  ASSERT_TRUE(batch.ok()) << batch.status();
  ASSERT_TRUE((*batch)->AddChain(0, std::nullopt).ok());
  ASSERT_TRUE((*batch)->AddChain(1, std::nullopt).ok());
  const Draw start = (*batch)->TakeDraw(0);
  const double bound = 1 / std::sqrt(784.0);
  double sum = 0, sum2 = 0;
  for (const double x : start.theta[0]) {
    EXPECT_LE(std::abs(x), bound * (1 + 1e-6));
    sum += x;
    sum2 += x * x;
  }
  const double n = static_cast<double>(start.theta[0].size());
  EXPECT_NEAR(sum / n, 0, 4 * bound / std::sqrt(3 * n));
  EXPECT_NEAR(sum2 / n, bound * bound / 3, 4 * bound * bound * std::sqrt(4 / 45.0 / n));
  EXPECT_EQ(start.theta[0], start.theta[1]);  // theta_a starts at theta
  EXPECT_NE(start.theta[0], (*batch)->TakeDraw(1).theta[0]);
}

TEST(ChainBatchCreate, RefusesABadPlanByItsFields) {
  const auto plan = GaussianPlan({SgldSpec{}});
  plan->spec.temperature = -1;
  const auto batch = ChainBatch::Create(plan, nullptr, "cpu");
  EXPECT_EQ(batch.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(batch.status().message()), HasSubstr("temperature"));
}

// This process never loads the CUDA module, so no GPU is usable on any host.
TEST(ChainBatchCreate, ReportsAMissingDevice) {
  const auto batch = ChainBatch::Create(GaussianPlan({SgldSpec{}}), nullptr, "cuda:0");
  EXPECT_EQ(batch.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(batch.status()), "NO_DEVICE");
  EXPECT_THAT(std::string(batch.status().message()), HasSubstr("--device cpu"));
  EXPECT_EQ(ChainBatch::Create(GaussianPlan({SgldSpec{}}), nullptr, "tpu").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ChainBatchStart, IsZeroForAnAnalyticPotential) {
  auto plan = GaussianPlan({SgldSpec{}});
  const auto batch = MakeBatch(plan);
  ASSERT_TRUE(batch->AddChain(0, std::nullopt).ok());
  EXPECT_EQ(batch->TakeDraw(0).theta[0], std::vector<float>(300, 0.0f));
}

// "start points of chains": chain i starts at row i mod K, at a distance of `perturb`.
TEST(ChainBatchStart, FollowsTheInitOfTheJob) {
  auto plan = GaussianPlan({EmcmcSpec{}});
  std::vector<double>& theta = plan->spec.init.theta;
  for (int i = 0; i < 600; ++i) theta.push_back(i);
  const auto start_of = [&](int chain, size_t kind) {
    const auto batch = MakeBatch(plan);
    EXPECT_TRUE(batch->AddChain(chain, std::nullopt).ok());
    return batch->TakeDraw(chain).theta[kind];
  };
  EXPECT_EQ(start_of(2, 0), std::vector<float>(theta.begin(), theta.begin() + 300));
  EXPECT_EQ(start_of(3, 0), std::vector<float>(theta.begin() + 300, theta.end()));
  EXPECT_EQ(start_of(3, 1), start_of(3, 0));  // theta_a
  plan->spec.init = {.theta = {7}, .perturb = 0.5};
  double sum = 0, squares = 0;
  constexpr int kChains = 8;
  for (int chain = 0; chain < kChains; ++chain) {
    const std::vector<float> start = start_of(chain, 0);
    EXPECT_NE(start, start_of((chain + 1) % kChains, 0));
    for (const float x : start) sum += x - 7, squares += (x - 7) * (x - 7);
  }
  constexpr double kValues = 300 * kChains;
  EXPECT_NEAR(sum / kValues, 0, 4 * 0.5 / std::sqrt(kValues));
  EXPECT_NEAR(squares / kValues, 0.25, 4 * 0.25 * std::sqrt(2 / kValues));
  plan->spec.init.theta = {1, 2};
  EXPECT_THAT(std::string(ChainBatch::Create(plan, nullptr, "cpu").status().message()), HasSubstr("init.theta"));
}

}  // namespace
}  // namespace chainfleet

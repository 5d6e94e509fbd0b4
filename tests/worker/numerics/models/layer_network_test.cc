// A network of layers on its whole way: chains, draws with their statistics in a segment, predictions.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/store/draw_codec/segment_codec.h"
#include "tests/support/one_stack.h"
#include "tests/support/plain_network.h"
#include "tests/support/synthetic_dataset.h"
#include "worker/numerics/batch/chain_batch.h"
#include "worker/numerics/predict/predictor.h"

namespace chainfleet {
namespace {

using ::testing::Each;
using ::testing::Gt;
using ::testing::IsSupersetOf;

LayerList Layers() {
  const LayerList branch = {{ConvLayer{.out_channels = 6, .padding = 1, .bias = false}}, {BatchNormLayer{}}};
  return {{ConvLayer{.out_channels = 6, .stride = 2}},
          {BatchNormLayer{}},
          {ReluLayer{}},
          {ResidualLayer{branch, {}}},
          {FrnLayer{}},
          {DropoutLayer{0.2}},
          {GlobalAvgPoolLayer{}},
          {LinearLayer{}}};
}

std::shared_ptr<const JobPlan> Plan(const std::shared_ptr<const ResidentDataset>& data) {
  auto plan = std::make_shared<JobPlan>();
  plan->job = "layers-aaaaaa";
  plan->spec.name = "layers";
  plan->spec.model.kind = LayeredModel{Layers()};
  plan->spec.dataset = "synthetic";
  plan->spec.prior.kind = GaussianPrior{25};
  plan->spec.sampler.kind = EmcmcSpec{4e-4};
  plan->spec.schedule = {StepScale::kLearningRate, ConstantSchedule{0.1}};
  plan->spec.temperature = 1e-4;
  plan->spec.batch_size = 16;
  plan->spec.num_steps = 8;
  plan->spec.chains = 4;
  plan->dataset = data->description();
  plan->normalisation = data->description().normalisation;
  return plan;
}

std::unique_ptr<ChainBatch> MakeBatch(const std::shared_ptr<const ResidentDataset>& data) {
  auto batch = ChainBatch::Create(Plan(data), data, "cpu");
  CHAINFLEET_CHECK(batch.ok()) << batch.status().ToString();
  return std::move(*batch);
}

void Advance(ChainBatch& batch, int steps) {
  for (int i = 0; i < steps; ++i) CHAINFLEET_CHECK(batch.Step().ok());
}

// The draws of one chain after 3 and 6 steps, by way of a segment object.
SegmentContent TwoDraws(const std::shared_ptr<const ResidentDataset>& data) {
  const auto batch = MakeBatch(data);
  CHAINFLEET_CHECK(batch->AddChain(2, std::nullopt).ok());
  SegmentContent content;
  content.chain = {"layers-aaaaaa", 2};
  content.segment.kinds = {DrawKind::kTheta, DrawKind::kThetaA};
  for (int i = 0; i < 2; ++i) {
    Advance(*batch, 3);
    const Draw draw = batch->TakeDraw(2);
    content.draws.push_back({draw.step, 1.0 + i, draw.theta});
  }
  const auto decoded =
      DecodeSegment(EncodeSegment(content.chain, content.draws, batch->parameters(), &content.segment));
  CHAINFLEET_CHECK(decoded.ok()) << decoded.status().ToString();
  return *decoded;
}

std::unique_ptr<Predictor> MakePredictor(const std::shared_ptr<const ResidentDataset>& data) {
  auto plan = std::make_shared<PredictPlan>();
  plan->job = "layers-aaaaaa";
  plan->model.kind = LayeredModel{Layers()};
  plan->input_shape = data->description().input_shape;
  plan->targets = data->description().targets;
  plan->normalisation = data->description().normalisation;
  return *Predictor::Create(plan, "cpu");
}

DrawStack Stack(const SegmentContent& content, DrawKind kind) {
  DrawStack stack{content.chain, kind, {}, {}};
  for (const Draw& draw : content.draws) {
    stack.weights.push_back(draw.weight);
    const auto& theta = draw.theta[kind == DrawKind::kTheta ? 0 : 1];
    stack.theta.push_back(std::make_shared<const std::vector<float>>(theta));
  }
  return stack;
}

TEST(LayerNetwork, ResumesByteForByteInOtherCompanyAndOnOtherThreads) {
  const auto data = SyntheticImages(200, {3, 9, 9});
  at::set_num_threads(1);
  const auto whole = MakeBatch(data);
  ASSERT_TRUE(whole->AddChain(3, std::nullopt).ok());
  Advance(*whole, 7);
  const auto before = MakeBatch(data);
  for (const int chain : {0, 3, 1}) ASSERT_TRUE(before->AddChain(chain, std::nullopt).ok());
  Advance(*before, 4);
  at::set_num_threads(2);
  const auto after = MakeBatch(data);
  ASSERT_TRUE(after->AddChain(2, std::nullopt).ok());
  ASSERT_TRUE(after->AddChain(3, before->SaveResumePoint(3)).ok());
  Advance(*after, 3);
  EXPECT_EQ(after->SaveResumePoint(3), whole->SaveResumePoint(3));
  EXPECT_EQ(after->TakeDraw(3).theta, whole->TakeDraw(3).theta);
}

TEST(LayerNetwork, ANormStartsAsTheIdentity) {
  const auto data = SyntheticImages(50, {3, 9, 9});
  const auto batch = MakeBatch(data);
  ASSERT_TRUE(batch->AddChain(0, std::nullopt).ok());
  const std::vector<float> start = batch->TakeDraw(0).theta[0];
  for (const ParameterShape& p : batch->parameters()) {
    const std::vector<float> values(start.begin() + p.offset, start.begin() + p.offset + NumValues(p.shape));
    if (p.name.ends_with(".scale")) {
      EXPECT_THAT(values, Each(1)) << p.name;
    }
    if (p.name.ends_with(".shift") || p.name.ends_with(".threshold")) {
      EXPECT_THAT(values, Each(0)) << p.name;
    }
  }
}

TEST(LayerNetwork, EveryKindOfADrawCarriesStatisticsOfItsOwn) {
  const auto data = SyntheticImages(200, {3, 9, 9});
  const auto batch = MakeBatch(data);
  ASSERT_TRUE(batch->AddChain(0, std::nullopt).ok());
  Advance(*batch, 4);
  const Draw draw = batch->TakeDraw(0);
  std::vector<std::string> names;
  for (const ParameterShape& p : batch->parameters()) names.push_back(p.name);
  EXPECT_THAT(names, IsSupersetOf({"bn1.mean", "bn1.var", "residual1.branch.bn1.mean", "residual1.branch.bn1.var"}));
  ASSERT_EQ(draw.theta.size(), 2u);
  for (const auto& kind : draw.theta) {
    ASSERT_EQ(static_cast<int64_t>(kind.size()), NumParameters(batch->parameters()));
    const ParameterShape& variance = batch->parameters().back();
    EXPECT_THAT(std::vector<float>(kind.begin() + variance.offset, kind.end()), Each(Gt(0)));
  }
  EXPECT_NE(draw.theta[0].back(), draw.theta[1].back());
}

// Means over draws of the plain network's probabilities, each draw with its own statistics.
TEST(LayerNetwork, PredictsWithTheStatisticsOfEachDraw) {
  const auto data = SyntheticImages(200, {3, 9, 9});
  const NetworkShape network = *InferNetwork(Layers(), {3, 9, 9}, 10, "layers");
  const SegmentContent content = TwoDraws(data);
  const DrawStack stack = Stack(content, DrawKind::kThetaA);
  const int64_t n = 70;
  const auto sums = PredictRows(MakePredictor(data), stack, *data, 0, n, true, false);
  ASSERT_TRUE(sums.ok()) << sums.status();

  const std::vector<uint8_t> bytes(data->input_bytes().begin(), data->input_bytes().begin() + n * data->row_size());
  const Normalisation& normal = data->description().normalisation;
  const at::Tensor x = (at::tensor(bytes, at::kDouble).view({n, 3, 9, 9}) / 255 - normal.mean[0]) / normal.stddev[0];
  at::Tensor expected = at::zeros({n, 10}, at::kDouble);
  for (size_t s = 0; s < stack.theta.size(); ++s) {
    testing::PlainNetwork plain;
    const at::Tensor draw = at::tensor(*stack.theta[s]).to(at::kDouble);
    for (const auto& p : network.parameters) {
      plain.parameters.push_back(draw.narrow(0, p.offset, NumValues(p.shape)).view(p.shape));
    }
    for (const auto& p : network.statistics) {
      plain.statistics.push_back(draw.narrow(0, p.offset, NumValues(p.shape)).view(p.shape));
    }
    expected += at::softmax(plain.Logits(Layers(), x), 1) * stack.weights[s];
  }
  const at::Tensor got = at::tensor(sums->classes().sum_wp, at::kDouble).view({n, 10});
  EXPECT_LT((got - expected).abs().max().item<double>(), 1e-5);
}

TEST(LayerNetwork, PredictsTheSameBitsHoweverTheRowsAreCut) {
  const auto data = SyntheticImages(200, {3, 9, 9});
  const DrawStack stack = Stack(TwoDraws(data), DrawKind::kTheta);
  at::set_num_threads(2);
  const auto whole = PredictRows(MakePredictor(data), stack, *data, 0, 200, false, false);
  ASSERT_TRUE(whole.ok()) << whole.status();
  at::set_num_threads(1);
  const auto predictor = MakePredictor(data);
  for (int64_t rows = 1; rows <= 200; ++rows) {
    const int64_t first = rows % 7 * (200 - rows) / 7;
    const auto part = PredictRows(predictor, stack, *data, first, rows, false, false);
    ASSERT_TRUE(part.ok()) << part.status();
    const auto expected = whole->classes().sum_wp.begin() + first * 10;
    EXPECT_TRUE(std::equal(part->classes().sum_wp.begin(), part->classes().sum_wp.end(), expected))
        << rows << " rows from " << first;
  }
}

TEST(LayerNetwork, PredictsTheSameBitsWhereverItPauses) {
  const auto data = SyntheticImages(200, {3, 9, 9});
  const SegmentContent content = TwoDraws(data);
  const std::vector<DrawStack> stacks = {Stack(content, DrawKind::kTheta), Stack(content, DrawKind::kThetaA)};
  const Corruption corruption{"gaussian_blur", 3, 0};
  at::set_num_threads(2);
  const auto whole = MakePredictor(data)->PredictRows(stacks, *data, 10, 190, true, true, &corruption);
  ASSERT_TRUE(whole.ok()) << whole.status();
  const auto predictor = MakePredictor(data);
  const auto run = predictor->StartRows(stacks, *data, 10, 190, true, true, &corruption);
  ASSERT_TRUE(run.ok()) << run.status();
  int pauses = 0;
  for (; !(*run)->Advance([] { return true; }).value(); ++pauses) {
    EXPECT_TRUE(PredictRows(predictor, stacks[0], *data, 0, 3, false, false).ok());  // in the buffers it has left
  }
  at::set_num_threads(1);
  EXPECT_GE(pauses, 4);  // three blocks, two stacks of two draws, two threads
  const std::vector<PartialPrediction> parts = (*run)->Take();
  ASSERT_EQ(parts.size(), whole->size());
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(parts[i].classes().sum_wp, (*whole)[i].classes().sum_wp);
    EXPECT_EQ(parts[i].classes().sum_wh, (*whole)[i].classes().sum_wh);
    EXPECT_EQ(parts[i].draw_log_likelihood, (*whole)[i].draw_log_likelihood);
    EXPECT_EQ(parts[i].members->classes().probabilities, (*whole)[i].members->classes().probabilities);
  }
}

TEST(LayerNetwork, RefusesDrawsWithoutTheirStatistics) {
  const auto data = SyntheticImages(50, {3, 9, 9});
  const NetworkShape network = *InferNetwork(Layers(), {3, 9, 9}, 10, "layers");
  DrawStack stack{{"layers-aaaaaa", 0}, DrawKind::kTheta, {1}, {}};
  stack.theta.push_back(std::make_shared<const std::vector<float>>(NumParameters(network.parameters)));
  EXPECT_EQ(PredictRows(MakePredictor(data), stack, *data, 0, 5, false, false).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace chainfleet

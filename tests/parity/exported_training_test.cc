// Compares networks that torch.export wrote in training mode with lists of the same layers.
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/support/device_chains.h"
#include "tests/support/exported_files.h"
#include "tests/support/network_fixture.h"
#include "worker/numerics/models/block_network.h"

namespace chainfleet {
namespace {

struct Case {
  std::string name;
  std::vector<int64_t> input_shape;
  int64_t outputs;
  LayerList layers;
};

std::vector<Case> Cases() {
  return {{"train_dropout",
           {6},
           3,
           {{LinearLayer{.outputs = 16}},
            {ReluLayer{}},
            {DropoutLayer{0.5}},
            {LinearLayer{.outputs = 16}},
            {DropoutLayer{0.25}},
            {TanhLayer{}},
            {LinearLayer{}}}},
          {"train_norm",
           {1, 8, 8},
           10,
           {{ConvLayer{.out_channels = 4, .kernel = 3, .padding = 1}},
            {BatchNormLayer{}},
            {ReluLayer{}},
            {MaxPoolLayer{2}},
            {LinearLayer{.outputs = 12}},
            {BatchNormLayer{}},
            {DropoutLayer{0.25}},
            {LinearLayer{}}}}};
}

class ExportedTraining : public ::testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<Potential> PotentialOf(const ModelSpec& model) const {
    auto made = MakeNetworkPotential(*NetworkPlan(model, {SgldSpec{}}, *data_), data_, Device(), file_.get());
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }

  const Data data_ = SyntheticImages(300, GetParam().input_shape, GetParam().outputs);
  const std::shared_ptr<const ModelFile> file_ = FileOf(ReadExportedData(GetParam().name + ".pt2"));
  const ModelSpec exported_{StoredNetworkModel{"mine"}}, layered_{LayeredModel{GetParam().layers}};
};

constexpr int64_t kBatch = 40, kChains = 3;

TEST_P(ExportedTraining, HasTheMasksEnergiesAndGradientsOfItsLayers) {
  const auto exported = PotentialOf(exported_), layered = PotentialOf(layered_);
  const ThetaArena theta = RandomTheta(layered->layout(), kChains);
  const std::vector<int64_t> ids = SomeIds(kChains, kBatch, 300);
  const StepKey keys[] = {{RngKey{1}, 3}, {RngKey{2}, 3}, {RngKey{1}, 4}};
  ThetaArena here = theta.Clone(), there = theta.Clone();
  std::vector<double> energy(kChains), wanted(kChains), undropped(kChains);
  exported->Evaluate(theta, {ids.data(), kBatch, keys}, &here, energy.data());
  layered->Evaluate(theta, {ids.data(), kBatch, keys}, &there, wanted.data());
  for (int64_t c = 0; c < kChains; ++c) {
    EXPECT_NEAR(energy[c], wanted[c], 1e-6 * std::abs(wanted[c]));
    EXPECT_LT(RelativeDistance(here.ReadRow(c), there.ReadRow(c)), 1e-5);
  }
  exported->Evaluate(theta, {ids.data(), kBatch}, &here, undropped.data());
  EXPECT_NE(undropped, energy);
}

TEST_P(ExportedTraining, DrawsAndPredictionsHaveTheStatisticsOfItsLayers) {
  const auto exported = PotentialOf(exported_), layered = PotentialOf(layered_);
  ASSERT_EQ(exported->statistics().size(), layered->statistics().size());
  const ThetaArena theta = RandomTheta(layered->layout(), kChains);
  const auto found = exported->DrawStatistics(theta, 0, kChains), wanted = layered->DrawStatistics(theta, 0, kChains);
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t c = 0; c < found.size(); ++c) {
    ASSERT_EQ(found[c].size(), wanted[c].size());
    for (size_t i = 0; i < found[c].size(); ++i) EXPECT_NEAR(found[c][i], wanted[c][i], 1e-6 * (1 + wanted[c][i]));
  }
  const auto network = ExportedNetwork::Load(ExportedModelOf(ReadExportedData(GetParam().name + ".pt2")),
                                             GetParam().input_shape, GetParam().outputs, at::kCPU);
  const NetworkShape layers = *InferNetwork(layered_, GetParam().input_shape, GetParam().outputs);
  std::vector<float> draw = theta.ReadRow(1);
  draw.insert(draw.end(), found[1].begin(), found[1].end());
  ASSERT_EQ(std::ssize(draw), (*network)->shape().draw_size());
  const Dataset& data = data_->description();
  const InputRows rows(data.input_type, data_->input_bytes().data(), data.input_shape, data.normalisation);
  const auto outputs = [&](std::shared_ptr<const StoredNetwork> stored) {
    const auto block = MakeBlockNetwork(stored == nullptr ? layers : stored->shape(), stored);
    block->Read(rows, 7, 32);
    const float* const lanes = block->Outputs(draw.data());
    return std::vector<float>(lanes, lanes + 32 * GetParam().outputs);
  };
  EXPECT_LT(RelativeDistance(outputs(*network), outputs(nullptr)), 1e-5);
}

TEST_P(ExportedTraining, DrawsOfMcDropoutAreThoseOfItsLayers) {
  const ThetaArena theta = RandomTheta(PotentialOf(layered_)->layout(), 1);
  const std::vector<float> start = theta.ReadRow(0);
  const auto draws = [&](const ModelSpec& model, const std::shared_ptr<const ModelFile>& file) {
    const auto plan = NetworkPlan(model, {McDropoutSpec{.rate = 0.4, .draws = 3}}, *data_);
    plan->spec.init.theta.assign(start.begin(), start.end());
    const auto batch = ChainBatch::Create(plan, data_, "cpu", file);
    CHAINFLEET_CHECK(batch.ok()) << batch.status().ToString();
    for (const int chain : {0, 1}) CHAINFLEET_CHECK((*batch)->AddChain(chain, std::nullopt).ok());
    std::vector<std::vector<float>> drawn;
    for (int64_t step = 1; step <= *plan->spec.num_steps + 3; ++step) {
      const auto reports = (*batch)->Step();
      CHAINFLEET_CHECK(reports.ok()) << reports.status().ToString();
      for (const RowReport& report : *reports) {
        if (report.draw_due) drawn.push_back((*batch)->TakeDraw(report.chain).theta[0]);
      }
    }
    return drawn;
  };
  const auto found = draws(exported_, file_), wanted = draws(layered_, nullptr);
  ASSERT_EQ(found.size(), wanted.size());
  ASSERT_EQ(found.size(), 2u * 3);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_LT(RelativeDistance(found[i], wanted[i]), 1e-5) << i;
    EXPECT_GT(std::ranges::count(found[i], 0.0f), std::ranges::count(start, 0.0f) + 10) << "dropped units";
    EXPECT_GT(i == 0 ? 1 : RelativeDistance(found[i], found[0]), 0.1) << "each draw has units of its own";
  }
}

TEST_P(ExportedTraining, ResumedChainsAreThoseThatWereNotInterrupted) {
  const auto plan = NetworkPlan(exported_, {EmcmcSpec{1e-4}}, *data_);
  const auto show = [&](const Way& way) { return ChainsOnTheWay(plan, data_, way, file_).Run(); };
  const Shown whole = show({"cpu"}), resumed = show({"cpu", "cpu"}), without = show({"cpu", "cpu", 1});
  EXPECT_EQ(resumed.moved, whole.moved);
  EXPECT_EQ(resumed.beside, whole.beside);
  EXPECT_EQ(resumed.numbers, whole.numbers);
  const size_t left = without.moved.size();
  EXPECT_EQ(without.moved, std::vector<float>(whole.moved.end() - static_cast<int64_t>(left), whole.moved.end()))
      << "chains do not depend on other chains";
}

INSTANTIATE_TEST_SUITE_P(Networks, ExportedTraining, ::testing::ValuesIn(Cases()),
                         [](const auto& of) { return of.param.name; });

TEST(ExportedDropout, McDropoutNamesWhatIsNoWeightOfALayer) {
  const auto why = [](const std::string& name, const std::vector<std::string>& sample) {
    return CheckDroppedInputs(ExportedModelOf(ReadExportedData(name + ".pt2")).program, sample);
  };
  EXPECT_TRUE(why("mlp", {}).ok()) << "in evaluation mode, too";
  EXPECT_TRUE(why("train_norm", {}).ok());
  const absl::Status grouped = why("mobilenet", {}), recurrent = why("gru", {}), embedded = why("causal", {});
  EXPECT_NE(std::string(grouped.message()).find("(aten::conv2d) uses"), std::string::npos) << grouped;
  EXPECT_NE(std::string(recurrent.message()).find("(aten::gru) uses"), std::string::npos) << recurrent;
  EXPECT_TRUE(why("gru", {"nothing"}).ok());
  EXPECT_NE(std::string(embedded.message()).find("(aten::embedding) uses"), std::string::npos) << embedded;
}

TEST(ExportedDropout, WritesToNoConstantOfTheFile) {
  ExportedModel file = ExportedModelOf(ReadExportedData("train_dropout.pt2"));
  ExportedNode node = *std::ranges::find(file.program.nodes, "aten::dropout_", &ExportedNode::op);
  node.arguments[0].second = ExportedValue{0};
  node.outputs = {std::nullopt};
  file.program.nodes.insert(file.program.nodes.begin(), node);
  const at::Tensor before = file.tensors[0].clone();
  const auto network = ExportedNetwork::Load(file, {6}, 3, at::kCPU, {}, {"6.*"});
  ASSERT_TRUE(network.ok()) << network.status();
  const StepKey key{RngKey{1}, 3};
  (*network)->Logits({at::ones({1, 3, 16}), at::ones({1, 3})}, at::ones({1, 5, 6}), {.dropout = &key});
  EXPECT_TRUE(file.tensors[0].equal(before));
}

// A mask belongs to a whole channel of a row; a frozen trunk ends before it.
TEST(ExportedDropout, DropsWholeChannels) {
  const auto file = ExportedModelOf(ReadExportedData("train_channels.pt2"));
  const auto network = ExportedNetwork::Load(file, {1, 8, 8}, 3, at::kCPU, {}, {"3.*"});
  ASSERT_TRUE(network.ok()) << network.status();
  ASSERT_TRUE((*network)->HasFeatures());
  const at::Tensor x = at::ones({16, 1, 8, 8}), weight = at::ones({1, 3, 144}) * (1 / 36.0);
  std::vector<at::Tensor> features = (*network)->Features(x);
  features[0] = at::ones(features[0].unsqueeze(0).sizes());
  const StepKey key{RngKey{1}, 3};
  const at::Tensor y = (*network)->LogitsOf({weight, at::ones({1, 3})}, features, {.dropout = &key}).squeeze(0);
  std::set<int> kept;  // each channel adds 2 if it is kept
  for (int64_t row = 0; row < 16; ++row) kept.insert(static_cast<int>(std::lround(y[row][0].item<float>() * 1000)));
  for (const int sum : kept) EXPECT_EQ((sum - 1000) % 2000, 0) << sum;
  EXPECT_GT(kept.size(), 2u);
}

}  // namespace
}  // namespace chainfleet

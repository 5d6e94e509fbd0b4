// Compares networks of torch.export (tests/support/make_exported.py) with their results in PyTorch.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_replace.h"
#include "core/formats/exported_program.h"
#include "tests/support/exported_files.h"
#include "tests/support/exported_tensors.h"
#include "tests/support/network_chains.h"
#include "tests/support/network_fixture.h"
#include "tests/support/regression_dataset.h"
#include "tests/support/sequence_layers.h"
#include "worker/numerics/batch/start_point.h"
#include "worker/numerics/models/eager_network.h"
#include "worker/numerics/models/exported_steps.h"
#include "worker/numerics/models/network_potential.h"
#include "worker/numerics/models/training_rows.h"

namespace chainfleet {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRows = 5;

nlohmann::json Expected() { return nlohmann::json::parse(ReadExportedData("expected.json")); }

// float32 sin(0.01 i), int64 k = 7 i mod 50 or bool k < 25, for i = `start`, ...
at::Tensor InputOf(const ExportedSignature& input, int64_t start) {
  std::vector<int64_t> shape = {kRows};
  shape.insert(shape.end(), input.shape.begin(), input.shape.end());
  const at::Tensor i = at::arange(start, start + NumValues(shape), at::kLong);
  const at::Tensor whole = (i * 7).remainder(50).view(shape);
  if (input.type == ExportedType::kBool) return whole < 25;
  return input.type == ExportedType::kInt64 ? whole : (i.to(at::kDouble) * 0.01).sin().to(at::kFloat).view(shape);
}

at::Tensor TensorOf(const ExportedTensor& tensor, const std::string& bytes) {
  const at::Tensor made = EmptyFor(tensor);
  std::memcpy(made.mutable_data_ptr(), bytes.data(), bytes.size());
  return made;
}

TEST(LayersOfATransformer, AreThoseOfPyTorch) {
  const std::map<std::string, std::string> names = {
      {"fc1", "embed"},
      {"residual1.branch.layer_norm1", "encoder.layers.0.norm1"},
      {"residual1.branch.attention1", "encoder.layers.0.self_attn"},
      {"residual2.branch.layer_norm1", "encoder.layers.0.norm2"},
      {"residual2.branch.fc1", "encoder.layers.0.linear1"},
      {"residual2.branch.fc2", "encoder.layers.0.linear2"},
      {"fc2", "out"},
      {".scale", ".weight"},
      {".shift", ".bias"},
      {".in_", ".in_proj_"},
      {".out_", ".out_proj."},
  };
  const LayerList block = EncoderBlock(16, 2, 32);
  const auto network = InferNetwork(
      {{ToSequenceLayer{.width = 5}}, {LinearLayer{16}}, block[0], block[1], {GlobalAvgPoolLayer{}}, {LinearLayer{}}},
      {7, 5}, 4, "layers");
  ASSERT_TRUE(network.ok()) << network.status();
  const std::string file = ReadExportedData("transformer.pt2");
  const auto program = ReadExportedProgram(file);
  ASSERT_TRUE(program.ok()) << program.status();
  const auto content = ReadExportedTensors(file, *program);
  ASSERT_TRUE(content.ok()) << content.status();
  std::map<std::string, at::Tensor> values;
  for (size_t i = 0; i < content->size(); ++i) {
    values[program->tensors[i].name] = TensorOf(program->tensors[i], (*content)[i]);
  }
  std::vector<at::Tensor> parameters;
  for (const ParameterShape& parameter : network->parameters) {
    const std::string name = absl::StrReplaceAll(parameter.name, names);
    ASSERT_TRUE(values.contains(name)) << parameter.name << " is not " << name;
    parameters.push_back(values[name].unsqueeze(0));
  }
  const at::Tensor outputs = EagerLogits(*network, parameters, InputOf(program->inputs[0], 0).unsqueeze(0)).squeeze(0);
  const nlohmann::json expected = Expected()["transformer"]["outputs"];
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t k = 0; k < 4; ++k) EXPECT_NEAR(outputs[i][k].item<double>(), expected[i][k].get<double>(), 2e-6);
  }
}

class ExportedNetworkParity : public ::testing::TestWithParam<std::string> {};

TEST_P(ExportedNetworkParity, OutputsLossAndGradientsAreThoseOfPyTorch) {
  const nlohmann::json expected = Expected()[GetParam()];
  const std::string file = ReadExportedData(GetParam() + ".pt2");
  const auto program = ReadExportedProgram(file);
  ASSERT_TRUE(program.ok()) << program.status();
  const auto content = ReadExportedTensors(file, *program);
  ASSERT_TRUE(content.ok()) << content.status();
  const auto steps = ExportedSteps::Compile(*program, at::kCPU);
  ASSERT_TRUE(steps.ok()) << steps.status();

  std::vector<at::Tensor> values;
  std::map<std::string, at::Tensor> parameters;
  for (size_t i = 0; i < content->size(); ++i) {
    const ExportedTensor& tensor = program->tensors[i];
    at::Tensor value = TensorOf(tensor, (*content)[i]);
    if (tensor.is_parameter) parameters[tensor.name] = value.requires_grad_(true);
    values.push_back(value);
  }
  for (size_t i = 0; i < program->inputs.size(); ++i) values.push_back(InputOf(program->inputs[i], 1000 * i));

  std::vector<at::Tensor> statistics;  // a file in training mode is compared in evaluation
  for (const int32_t tensor : program->statistics) statistics.push_back(values[tensor].unsqueeze(0));
  const at::Tensor outputs = steps->Run(values, {.statistics = &statistics});
  ASSERT_EQ(outputs.size(0), kRows);
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t k = 0; k < outputs.size(1); ++k) {
      EXPECT_NEAR(outputs[i][k].item<double>(), expected["outputs"][i][k].get<double>(), 2e-6) << i << ", " << k;
    }
  }
  const at::Tensor labels = at::arange(kRows, at::kLong).remainder(outputs.size(1));
  const at::Tensor loss = at::cross_entropy_loss(outputs, labels);
  EXPECT_NEAR(loss.item<double>(), expected["loss"].get<double>(), 2e-6);
  loss.backward();
  const auto squares = expected["squared_gradients"].get<std::map<std::string, double>>();
  EXPECT_EQ(squares.size(), parameters.size());
  for (const auto& [name, wanted] : squares) {
    ASSERT_TRUE(parameters.contains(name)) << name;
    const at::Tensor gradient = parameters[name].grad().to(at::kDouble).flatten();
    EXPECT_NEAR(gradient.square().sum().item<double>(), wanted, 1e-5 * wanted + 1e-12) << name;
    // Unlike the squares, a sum with weights tells signs and places apart. The bias of an attention's keys has gradient
    // 0, of which processors leave different roundings.
    const auto count = static_cast<double>(gradient.numel());
    EXPECT_NEAR(at::arange(gradient.numel(), at::kDouble).cos().dot(gradient).item<double>(),
                expected["weighted_gradients"][name].get<double>(), 2e-6 * std::sqrt(wanted * count) + 1e-7)
        << name;
  }
}

// The layers of mlp.pt2; its dropout is off, as in evaluation.
TEST(ExportedNetwork, HasTheEnergyAndGradientsOfItsLayers) {
  const auto data = Resident(MakeTable(200, 6, true), 3);
  const LayerList layers = {
      {LinearLayer{.outputs = 16}}, {ReluLayer{}}, {LinearLayer{.outputs = 16}}, {TanhLayer{}}, {LinearLayer{}}};
  const std::string file = ReadExportedData("mlp.pt2");
  const auto make = [&](const ModelSpec& model) {
    JobPlan plan = *NetworkPlan(model, {SgldSpec{}}, *data);
    plan.spec.prior.kind = GaussianPrior{25};
    auto made = MakeNetworkPotential(plan, data, Device(), FileOf(file).get());
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  };
  const auto exported = make({StoredNetworkModel{"mine"}}), layered = make({LayeredModel{layers}});
  ASSERT_EQ(exported->layout()->parameters().size(), layered->layout()->parameters().size());
  constexpr int64_t kBatch = 40, kChains = 3;
  const ThetaArena theta = RandomTheta(layered->layout(), kChains, 5);
  const std::vector<int64_t> ids = SomeIds(kChains, kBatch, 200);
  ThetaArena here = theta.Clone(), there = theta.Clone();
  std::vector<double> energy(kChains), wanted(kChains);
  exported->Evaluate(theta, {ids.data(), kBatch}, &here, energy.data());
  layered->Evaluate(theta, {ids.data(), kBatch}, &there, wanted.data());
  for (int64_t c = 0; c < kChains; ++c) {
    EXPECT_NEAR(energy[c], wanted[c], 1e-5 * std::abs(wanted[c]));
    EXPECT_LT(RelativeDistance(here.ReadRow(c), there.ReadRow(c)), 1e-5);
  }
}

// A data set holds indices as float32.
TEST(ExportedNetwork, ReadsIndicesOfADataSet) {
  const ExportedModel file = ExportedModelOf(ReadExportedData("causal.pt2"));
  const auto network = ExportedNetwork::Load(file, {6}, 5, at::kCPU);
  ASSERT_TRUE(network.ok()) << network.status();
  const auto head = ExportedNetwork::Load(file, {6}, 5, at::kCPU, {}, {"out.*"});
  ASSERT_TRUE(head.ok()) << head.status();
  ASSERT_TRUE((*head)->HasFeatures());
  const at::Tensor indices = InputOf(file.program.inputs[0], 0);
  std::vector<at::Tensor> values = file.tensors, parameters, of_head;
  for (size_t i = 0; i < file.tensors.size(); ++i) {
    const ExportedTensor& tensor = file.program.tensors[i];
    if (tensor.is_parameter) parameters.push_back(file.tensors[i].unsqueeze(0));
    if (tensor.name.starts_with("out.")) of_head.push_back(file.tensors[i].unsqueeze(0));
  }
  values.push_back(indices);
  const at::Tensor wanted = ExportedSteps::Compile(file.program, at::kCPU)->Run(values);
  const at::Tensor x = indices.to(at::kFloat);
  EXPECT_TRUE((*network)->Logits(parameters, x.unsqueeze(0)).squeeze(0).equal(wanted));
  std::vector<at::Tensor> features = (*head)->Features(x);
  for (at::Tensor& feature : features) feature = feature.unsqueeze(0);
  EXPECT_LT(((*head)->LogitsOf(of_head, features).squeeze(0) - wanted).abs().max().item<float>(), 1e-5);
  EXPECT_THROW((*network)->Logits(parameters, x.unsqueeze(0) + 0.5), c10::ValueError);
  EXPECT_THROW((*network)->Logits(parameters, x.unsqueeze(0) + 50), c10::IndexError) << "50 words are known";
  EXPECT_GE((*network)->PassOfRows().size, 1);
}

// Rows have the inputs side by side, each in C order.
TEST(ExportedNetwork, ReadsSeveralInputsOfARow) {
  const ExportedModel file = ExportedModelOf(ReadExportedData("masked.pt2"));
  const auto network = ExportedNetwork::Load(file, {20}, 4, at::kCPU);
  ASSERT_TRUE(network.ok()) << network.status();
  std::vector<at::Tensor> columns, parameters;
  for (size_t i = 0; i < 3; ++i) {
    columns.push_back(InputOf(file.program.inputs[i], 1000 * static_cast<int64_t>(i)).to(at::kFloat).flatten(1));
  }
  for (size_t i = 0; i < file.tensors.size(); ++i) {
    if (file.program.tensors[i].is_parameter) parameters.push_back(file.tensors[i].unsqueeze(0));
  }
  const at::Tensor x = at::cat(columns, 1).unsqueeze(0).requires_grad_(true);
  const at::Tensor outputs = (*network)->Logits(parameters, x).squeeze(0);
  const nlohmann::json expected = Expected()["masked"]["outputs"];
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t k = 0; k < 4; ++k) EXPECT_NEAR(outputs[i][k].item<double>(), expected[i][k].get<double>(), 2e-6);
  }
  outputs.sum().backward();
  EXPECT_EQ(x.grad().narrow(2, 0, 12).abs().max().item<float>(), 0) << "indices and masks have no gradient";
  EXPECT_GT(x.grad().narrow(2, 12, 8).abs().min().item<float>(), 0);

  const auto with = [&](int64_t column, float value) {
    const at::Tensor other = x.detach().clone();
    other.select(2, column).fill_(value);
    return (*network)->Logits(parameters, other);
  };
  EXPECT_THROW(with(5, 50), c10::IndexError) << "50 words are known";
  EXPECT_THROW(with(5, 0.5), c10::ValueError);
  EXPECT_THROW(with(6, 2), c10::ValueError) << "a mask is 0 or 1";
  EXPECT_NO_THROW(with(12, 0.5));
  EXPECT_TRUE((*network)->TakesChains());
  EXPECT_GT((*network)->PassOfRows().size, 1);
}

// The file holds what PyTorch had: a chain that starts there has the outputs of the module.
TEST(ExportedNetwork, BringsTheWeightsOfItsFile) {
  const std::string file = ReadExportedData("mlp.pt2");
  const auto network = ExportedNetwork::Load(ExportedModelOf(file), {6}, 3, at::kCPU);
  ASSERT_TRUE(network.ok()) << network.status();
  const auto start = StartOfChain(Layout((*network)->shape().parameters), {.model = true}, 0, RngKey{1});
  ASSERT_TRUE(start.ok()) << start.status();
  const auto program = ReadExportedProgram(file);
  std::string wanted;
  const auto content = ReadExportedTensors(file, *program);
  for (size_t i = 0; i < content->size(); ++i) {
    if (program->tensors[i].is_parameter) wanted += (*content)[i];
  }
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(start->data()), start->size() * sizeof(float)), wanted);
}

// Parameters [chains, shape...] near those that chains start with, and inputs [chains, rows, input_shape...].
std::vector<at::Tensor> SomeParameters(const NetworkShape& network, int64_t chains) {
  std::vector<at::Tensor> all;
  for (const ParameterShape& parameter : network.parameters) {
    std::vector<int64_t> shape = parameter.shape;
    shape.insert(shape.begin(), chains);
    const at::Tensor i = at::arange(parameter.offset, parameter.offset + NumValues(shape), at::kDouble);
    all.push_back(((i * 2.1).sin() * 0.4 + parameter.initial).to(at::kFloat).view(shape));
  }
  return all;
}

at::Tensor SomeInputs(const NetworkShape& network, int64_t chains, int64_t rows) {
  std::vector<int64_t> shape = network.input_shape;
  shape.insert(shape.begin(), {chains, rows});
  return (at::arange(NumValues(shape), at::kDouble) * 0.37).sin().to(at::kFloat).view(shape);
}

// Parameters that are not sampled are constants of the file: the head has the outputs and gradients that it has in the
// whole network.
TEST(ExportedNetwork, FreezesWhatTheJobDoesNotSample) {
  const std::string file = ReadExportedData("mlp.pt2");
  const auto whole = ExportedNetwork::Load(ExportedModelOf(file), {6}, 3, at::kCPU);
  const auto head = ExportedNetwork::Load(ExportedModelOf(file), {6}, 3, at::kCPU, {}, {"5.*"});
  ASSERT_TRUE(whole.ok() && head.ok()) << head.status();
  const std::vector<ParameterShape>& tensors = (*head)->shape().parameters;
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors.front().name, "5.weight");
  EXPECT_EQ(tensors.front().offset, 0);
  const at::Tensor x = SomeInputs((*whole)->shape(), 1, kRows);
  const auto parameters_of = [](const StoredNetwork& network) {
    const auto start = *StartOfChain(Layout(network.shape().parameters), {.model = true}, 0, RngKey{1});
    const at::Tensor draw = at::empty({static_cast<int64_t>(start.size())}, at::kFloat);
    std::memcpy(draw.mutable_data_ptr(), start.data(), start.size() * sizeof(float));
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& view : TensorsOfDraw(network.shape().parameters, draw)) {
      leaves.push_back(view.clone().requires_grad_(true));
    }
    return leaves;
  };
  std::vector<at::Tensor> all = parameters_of(**whole), some = parameters_of(**head);
  const at::Tensor wanted = (*whole)->Logits(all, x), found = (*head)->Logits(some, x);
  EXPECT_TRUE(found.equal(wanted));
  wanted.square().sum().backward();
  found.square().sum().backward();
  EXPECT_TRUE(some[0].grad().equal(all[4].grad()));
  EXPECT_TRUE(some[1].grad().equal(all[5].grad()));
}

class ExportedChains : public ::testing::TestWithParam<ExportedFile> {
 protected:
  const std::shared_ptr<const StoredNetwork> network_ = GetParam().Load();
  const std::vector<at::Tensor> parameters_ = SomeParameters(network_->shape(), kChains);
  const at::Tensor x_ = GetParam().Possible(SomeInputs(network_->shape(), kChains, kRows));

  static constexpr int64_t kChains = 3;

  // Outputs [count, n, K], then gradients, of chains [first, first + count).
  std::vector<at::Tensor> ResultsOf(int64_t first, int64_t count) const {
    std::vector<at::Tensor> leaves, results;
    for (const at::Tensor& parameter : parameters_) {
      leaves.push_back(parameter.narrow(0, first, count).clone().requires_grad_(true));
    }
    const at::Tensor outputs = network_->Logits(leaves, x_.narrow(0, first, count));
    outputs.square().sum().backward();
    results.push_back(outputs.detach());
    for (const at::Tensor& leaf : leaves) results.push_back(leaf.grad());
    return results;
  }
};

TEST_P(ExportedChains, TogetherAreThoseAlone) {
  EXPECT_EQ(network_->TakesChains(), GetParam().batches);
  const std::vector<at::Tensor> together = ResultsOf(0, kChains);
  EXPECT_EQ(together.front().sizes(), at::IntArrayRef({kChains, kRows, GetParam().outputs}));
  for (int64_t chain = 0; chain < kChains; ++chain) {
    const std::vector<at::Tensor> alone = ResultsOf(chain, 1);
    double size = 0;  // the largest: the gradient of a bias before batch norm is nothing but rounding
    for (const at::Tensor& result : alone) size = std::max(size, result.abs().max().item<double>());
    for (size_t i = 0; i < alone.size(); ++i) {
      const double distance = (together[i].narrow(0, chain, 1) - alone[i]).abs().max().item<double>();
      EXPECT_LE(distance, GetParam().batches ? 2e-5 * (size + 1) : 0) << "chain " << chain << ", tensor " << i;
    }
  }
}

// On a CPU. The chains of a batch are moved from row to row when others end.
TEST_P(ExportedChains, HaveTheSameBitsInABatchAndAlone) {
  const auto data = GetParam().Data(64);
  const std::string file = GetParam().Read();
  const auto plan = NetworkPlan({StoredNetworkModel{"mine"}}, {SgldSpec{}}, *data);
  const auto potential = MakeNetworkPotential(*plan, data, Device(), FileOf(file).get());
  ASSERT_TRUE(potential.ok()) << potential.status();
  constexpr int64_t kBatch = 19;
  const auto results = [&](const std::vector<int64_t>& chains) {
    ThetaArena theta((*potential)->layout(), Device());
    std::vector<int64_t> ids;
    for (const int64_t chain : chains) {
      theta.AddRow();
      theta.WriteRow(theta.rows() - 1, RandomTheta((*potential)->layout(), 1, chain).ReadRow(0));
      for (int64_t i = 0; i < kBatch; ++i) ids.push_back((chain * 5 + i * 3) % 64);
    }
    ThetaArena gradient = theta.Clone();
    std::vector<double> energy(chains.size());
    (*potential)->Evaluate(theta, {ids.data(), kBatch}, &gradient, energy.data());
    std::map<int64_t, std::pair<double, std::vector<float>>> by_chain;
    for (size_t row = 0; row < chains.size(); ++row) {
      by_chain[chains[row]] = {energy[row], gradient.ReadRow(static_cast<int64_t>(row))};
    }
    return by_chain;
  };
  const auto batch = results({0, 1, 2, 3, 4}), moved = results({4, 2, 0});
  for (const int64_t chain : {0, 2, 4}) {
    EXPECT_EQ(moved.at(chain), batch.at(chain)) << chain;
    EXPECT_EQ(results({chain}).at(chain), batch.at(chain)) << chain;
  }
}

// The trunk runs once for each row. A head over its results is the head in the network, up to the order of sums.
TEST_P(ExportedChains, AHeadOverFeaturesOfRowsIsThatInTheNetwork) {
  const std::string pattern = HeadOf(network_->shape());
  const auto loaded = ExportedNetwork::Load(ExportedModelOf(GetParam().Read()), GetParam().input_shape,
                                            GetParam().outputs, at::kCPU, {}, {pattern});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const StoredNetwork& head = **loaded;
  EXPECT_LT(head.shape().parameters.size(), network_->shape().parameters.size());
  ASSERT_TRUE(head.HasFeatures());
  const at::Tensor order = at::tensor({2, 0, 3, 4, 1}, at::kLong);
  std::vector<at::Tensor> features = head.Features(x_.squeeze(0).flatten(0, 1).narrow(0, 0, kRows));
  for (at::Tensor& feature : features) {
    EXPECT_EQ(feature.size(0), kRows);
    feature = feature.index_select(0, order).unsqueeze(0);
  }
  const auto results = [&](const std::function<at::Tensor(const std::vector<at::Tensor>&)>& outputs_of) {
    std::vector<at::Tensor> leaves, found;
    for (const at::Tensor& parameter : SomeParameters(head.shape(), 1)) {
      leaves.push_back(parameter.clone().requires_grad_(true));
    }
    const at::Tensor outputs = outputs_of(leaves);
    outputs.square().sum().backward();
    found.push_back(outputs.detach());
    for (const at::Tensor& leaf : leaves) found.push_back(leaf.grad());
    return found;
  };
  const at::Tensor rows = x_.flatten(0, 1).narrow(0, 0, kRows).index_select(0, order);
  const auto over_features = results([&](const auto& leaves) { return head.LogitsOf(leaves, features).squeeze(0); });
  const auto in_network =
      results([&](const auto& leaves) { return head.Logits(leaves, rows.unsqueeze(0)).squeeze(0); });
  for (size_t i = 0; i < in_network.size(); ++i) {
    const double size = in_network[i].abs().max().item<double>();
    EXPECT_LE((over_features[i] - in_network[i]).abs().max().item<double>(), 2e-5 * (size + 1)) << "tensor " << i;
  }
}

TEST_P(ExportedChains, FeaturesAreKeptWithinABoundOfBytes) {
  const auto data = GetParam().Data(50);
  const auto head = GetParam().LoadHead("cpu");
  NetworkSettings settings{data->description().normalisation};
  const TrainingRows rows(data, GetParam().input_shape, settings, at::kCPU);
  int64_t bytes = 0;
  for (const at::Tensor& feature : rows.Features(*head)) {
    EXPECT_EQ(feature.size(0), 50);
    bytes += static_cast<int64_t>(feature.nbytes());
  }
  ASSERT_GT(bytes, 0);
  EXPECT_FALSE(rows.Features(*head, bytes).empty());
  EXPECT_TRUE(rows.Features(*head, bytes - 1).empty());
  settings.augmentation.flip = true;
  EXPECT_TRUE(TrainingRows(data, GetParam().input_shape, settings, at::kCPU).Features(*head).empty());
}

// The energies of a job that samples the head, whose potential keeps the features of all rows.
class HeadEnergies : public ExportedChains {
 protected:
  void CheckThem(const AugmentationSpec& augmentation) const;
};

TEST_P(HeadEnergies, AreThoseOfTheWholeNetworkWithItsValues) { CheckThem({}); }

TEST_P(HeadEnergies, SeeTheChangesOfImages) {
  if (GetParam().input_shape.size() == 3) CheckThem({.crop_padding = 2, .flip = true});
}

void HeadEnergies::CheckThem(const AugmentationSpec& augmentation) const {
  const auto data = GetParam().Data(300);
  const std::string file = GetParam().Read(), pattern = HeadOf(network_->shape());
  const auto potential_of = [&](const std::vector<std::string>& sample) {
    const auto plan = NetworkPlan({StoredNetworkModel{"mine"}, {}, sample}, {SgldSpec{}}, *data);
    plan->spec.augmentation = augmentation;
    auto made = MakeNetworkPotential(*plan, data, Device(), FileOf(file).get());
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  };
  const auto whole = potential_of({}), head = potential_of({pattern});
  const auto start = *StartOfChain(*whole->layout(), {.model = true}, 0, RngKey{1});
  ThetaArena all(whole->layout(), Device()), some = RandomTheta(head->layout(), 1);
  std::vector<float> theta = start, values = some.ReadRow(0);
  for (const ParameterShape& mine : head->layout()->parameters()) {
    for (const ParameterShape& parameter : whole->layout()->parameters()) {
      if (parameter.name != mine.name) continue;
      std::copy_n(values.begin() + mine.offset, NumValues(mine.shape), theta.begin() + parameter.offset);
    }
  }
  all.AddRow();
  all.WriteRow(0, theta);
  const std::vector<int64_t> ids = SomeIds(1, 40, 300);
  ThetaArena gradient = some.Clone();
  const StepKey key{RngKey{4}, 9};
  const BatchRows batch = {.ids = ids.data(), .size = 40, .keys = &key, .dropout = false};
  double energy = 0, losses[40], wanted[40];
  head->Evaluate(some, batch, &gradient, &energy);
  head->Losses(some, batch, losses);
  whole->Losses(all, batch, wanted);
  double sum = 0;
  for (int i = 0; i < 40; ++i) {
    EXPECT_NEAR(losses[i], wanted[i], 2e-5 * (std::abs(wanted[i]) + 1));
    sum += wanted[i];
  }
  double prior = 0;
  head->LogPrior(some, nullptr, &prior);
  EXPECT_NEAR(energy, sum * 300 / 40 - prior, 1e-4 * std::abs(energy));
}

// An operator without a rule runs chain by chain, in each step, and nothing is printed.
TEST_P(ExportedChains, PrintNothing) {
  testing::internal::CaptureStderr();
  for (int step = 0; step < 3; ++step) ResultsOf(0, kChains);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

INSTANTIATE_TEST_SUITE_P(Networks, ExportedChains, ::testing::ValuesIn(ExportedFiles()),
                         [](const auto& of) { return of.param.name; });
INSTANTIATE_TEST_SUITE_P(Networks, HeadEnergies, ::testing::ValuesIn(ExportedFiles()),
                         [](const auto& of) { return of.param.name; });

// The error of the mlp after `change` of its first node whose operator is `op`.
std::string Refusal(const std::string& op, const std::function<void(ExportedNode*)>& change) {
  ExportedProgram program = *ReadExportedProgram(ReadExportedData("mlp.pt2"));
  change(&*std::ranges::find(program.nodes, op, &ExportedNode::op));
  const auto steps = ExportedSteps::Compile(program, at::kCPU);
  return steps.ok() ? "" : std::string(steps.status().message());
}

TEST(ExportedNetwork, RefusesNodesThatLibTorchDoesNotKnow) {
  const auto set = [](const std::string& name, const ExportedArgument& value) {
    return [=](ExportedNode* node) {
      std::erase_if(node->arguments, [&](const auto& argument) { return argument.first == name; });
      node->arguments.emplace_back(name, value);
    };
  };
  EXPECT_THAT(Refusal("aten::linear", set("colour", int64_t{3})), HasSubstr("has an unknown argument colour"));
  EXPECT_THAT(Refusal("aten::linear", [](ExportedNode* node) { node->overload = "none"; }), HasSubstr("no overload"));
  EXPECT_THAT(Refusal("aten::linear", [](ExportedNode* node) { node->arguments.clear(); }), HasSubstr("lacks the"));
  EXPECT_THAT(Refusal("aten::linear", [](ExportedNode* node) { node->overload = "out"; }), HasSubstr("writes its"));
}

TEST(ExportedNetwork, TakesTheDataThatItWasExportedFor) {
  const auto load = [](const std::string& name, const std::vector<int64_t>& input_shape, int64_t outputs) {
    const auto network =
        ExportedNetwork::Load(ExportedModelOf(ReadExportedData(name + ".pt2")), input_shape, outputs, at::kCPU);
    return network.ok() ? "" : std::string(network.status().message());
  };
  EXPECT_EQ(load("mlp", {6}, 3), "");
  EXPECT_EQ(load("vit", {3, 16, 16}, 10), "");
  EXPECT_THAT(load("mlp", {2, 3}, 3), HasSubstr("takes float32 [n, 6], the data set has float32 [n, 2, 3]"));
  EXPECT_THAT(load("mlp", {6}, 4), HasSubstr("gives Float [3, 3]; the likelihood needs float32 [n, 4]"));
  EXPECT_EQ(load("causal", {6}, 5), "");
  EXPECT_THAT(load("causal", {7}, 5), HasSubstr("takes int64 [n, 6], the data set has float32 [n, 7]"));
  EXPECT_EQ(load("two_inputs", {10}, 4), "");
  EXPECT_THAT(load("two_inputs", {2, 5}, 4), HasSubstr("the data set has float32 [n, 2, 5]"));
  EXPECT_THAT(load("two_inputs", {4}, 4), HasSubstr("takes int64 [n, 4] and float32 [n, 6] in rows float32 [n, 10]"));
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  const nlohmann::json expected = Expected();
  for (const auto& [name, of_network] : expected.items()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Networks, ExportedNetworkParity, ::testing::ValuesIn(Names()), [](const auto& of) {
  return absl::StrReplaceAll(of.param, {{"-", "_"}, {".", "_"}});
});

}  // namespace
}  // namespace chainfleet

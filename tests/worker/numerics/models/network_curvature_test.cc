// Compares the curvature of networks beyond one layer with each example's gradients in double, class by class.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/support/network_fixture.h"
#include "tests/support/plain_network.h"
#include "tests/support/regression_dataset.h"
#include "tests/support/sequence_layers.h"
#include "worker/numerics/arena/tensor_view.h"
#include "worker/numerics/models/eager_potential.h"
#include "worker/numerics/potentials/curvature.h"

namespace chainfleet {
namespace {

constexpr int64_t kExamples = 6, kClasses = 4;

// A network with a job's own layers over small images; the chain under test is row 1 of two.
struct Fixture {
  explicit Fixture(const LayerList& layers) : layers(layers) {
    const auto shape = InferNetwork({LayeredModel{layers}}, data->description().input_shape, kClasses);
    CHAINFLEET_CHECK(shape.ok()) << shape.status().ToString();
    layout = std::make_shared<const Layout>(shape->parameters);
    const Normalisation normalisation = tokens ? Normalisation{{0}, {1.0 / 255}} : data->description().normalisation;
    potential = MakeEagerPotential(*shape, layout, data, {normalisation, {}, 1}, Device(), ChainBatching::kApart);
    theta = std::make_unique<ThetaArena>(RandomTheta(layout, 2));
  }

  Curvature Sum(CurvatureStructure structure) {
    Curvature sum{.structure = structure};
    for (int64_t first = 0; first < kExamples; first += 4) {
      const CurvatureSlice slices[2] = {{}, {&sum, first, std::min<int64_t>(4, kExamples - first)}};
      EXPECT_TRUE(potential->AddCurvature(*theta, slices));
    }
    return sum;
  }

  // Parameters in double that autograd follows.
  std::vector<at::Tensor> Leaves() const {
    std::vector<at::Tensor> leaves;
    for (size_t k = 0; k < layout->spans().size(); ++k) {
      leaves.push_back(ParameterView(*theta, k).select(0, 1).to(at::kDouble).detach().clone().requires_grad_(true));
    }
    return leaves;
  }

  // An image, or 12 bytes as they are stored.
  at::Tensor Image(int64_t i) const {
    std::vector<double> x;
    const int64_t size = data->row_size();
    for (int64_t f = 0; f < size; ++f) {
      const double byte = static_cast<uint8_t>(data->input_bytes()[i * size + f]);
      x.push_back(tokens ? byte : (byte / 255.0 - 0.5) / 0.29);
    }
    std::vector<int64_t> shape = data->description().input_shape;
    shape.insert(shape.begin(), 1);
    return at::tensor(x, at::kDouble).view(shape);
  }

  const LayerList layers;
  const bool tokens = TakesIndices(layers);
  const std::shared_ptr<const ResidentDataset> data =
      SyntheticImages(kExamples, tokens ? std::vector<int64_t>{12} : std::vector<int64_t>{2, 6, 6}, kClasses);
  std::shared_ptr<const Layout> layout;
  std::unique_ptr<Potential> potential;
  std::unique_ptr<ThetaArena> theta;
};

// The columns of a root of diag(p) - p p', as rows.
at::Tensor Root(const at::Tensor& logits) {
  const at::Tensor p = at::softmax(logits.detach(), -1).squeeze(0);
  return (at::eye(kClasses, at::kDouble) - p.unsqueeze(0)) * p.sqrt().unsqueeze(1);
}

void ExpectClose(const at::Tensor& found, const at::Tensor& wanted) {
  ASSERT_EQ(found.sizes(), wanted.sizes());
  EXPECT_LT((found - wanted).abs().max().item<double>(), 1e-5 * wanted.abs().max().item<double>());
}

void ExpectSquaredGradients(const LayerList& layers) {
  Fixture network(layers);
  const int64_t size = network.layout->num_parameters();
  at::Tensor wanted = at::zeros({size, size}, at::kDouble);
  for (int64_t i = 0; i < kExamples; ++i) {
    for (int64_t k = 0; k < kClasses; ++k) {
      testing::PlainNetwork plain;
      plain.parameters = network.Leaves();
      const at::Tensor logits = plain.Logits(network.layers, network.Image(i));
      (logits.squeeze(0) * Root(logits)[k]).sum().backward();
      std::vector<at::Tensor> gradients;
      for (const at::Tensor& leaf : plain.parameters) gradients.push_back(leaf.grad().flatten());
      const at::Tensor gradient = at::cat(gradients);
      wanted += at::outer(gradient, gradient);
    }
  }
  ExpectClose(network.Sum(CurvatureStructure::kFull).full, wanted);
  ExpectClose(network.Sum(CurvatureStructure::kDiagonal).diagonal, wanted.diag());
}

TEST(NetworkCurvature, FullAndDiagonalAreSumsOfSquaredGradients) {
  ExpectSquaredGradients(SequenceLayers());
  ExpectSquaredGradients(TokenLayers());
  ExpectSquaredGradients(
      {{ConvLayer{.out_channels = 3, .padding = 1}},
       {FrnLayer{}},
       {MaxPoolLayer{2}},
       {GroupNormLayer{.groups = 1}},
       {GeluLayer{}},
       {ResidualLayer{{{ConvLayer{.out_channels = 3, .kernel = 1, .bias = false}}, {ReluLayer{}}}, {}}},
       {LinearLayer{}}});
}

TEST(NetworkCurvature, KroneckerFactorsMatchEveryLayer) {
  Fixture network({{ConvLayer{.out_channels = 3, .stride = 2, .padding = 1}},
                   {ReluLayer{}},
                   {LinearLayer{.outputs = 5}},
                   {ReluLayer{}},
                   {LinearLayer{.bias = false}}});
  std::vector<at::Tensor> inputs(3), outputs(3);
  const auto add = [](at::Tensor* sum, const at::Tensor& rows) { AddTo(sum, rows.t().matmul(rows)); };
  for (int64_t i = 0; i < kExamples; ++i) {
    const auto w = network.Leaves();
    const at::Tensor x = network.Image(i), one = at::ones({1, 1}, at::kDouble);
    const at::Tensor y1 = at::conv2d(x, w[0], w[1], 2, 1), h1 = at::relu(y1).flatten(1);
    const at::Tensor y2 = h1.matmul(w[2].t()) + w[3], h2 = at::relu(y2), logits = h2.matmul(w[4].t());
    for (int64_t row = 0; row < 3; ++row) {
      for (int64_t column = 0; column < 3; ++column) {
        const at::Tensor window = at::constant_pad_nd(x, {1, 1, 1, 1}).narrow(2, 2 * row, 3).narrow(3, 2 * column, 3);
        add(&inputs[0], at::cat({window.flatten(1), one}, 1));
      }
    }
    add(&inputs[1], at::cat({h1, one}, 1).detach());
    add(&inputs[2], h2.detach());
    for (const at::Tensor& y : {y1, y2, logits}) y.retain_grad();
    for (int64_t k = 0; k < kClasses; ++k) {
      for (const at::Tensor& y : {y1, y2, logits}) y.mutable_grad() = at::Tensor();
      (logits.squeeze(0) * Root(logits)[k]).sum().backward({}, /*retain_graph=*/true);
      add(&outputs[0], y1.grad().flatten(2).squeeze(0).t());
      add(&outputs[1], y2.grad());
      add(&outputs[2], logits.grad());
    }
  }
  const Curvature sum = network.Sum(CurvatureStructure::kKronecker);
  ASSERT_EQ(sum.layers.size(), 3u);
  for (size_t l = 0; l < 3; ++l) {
    EXPECT_EQ(sum.layers[l].weight, static_cast<int64_t>(2 * l));
    EXPECT_EQ(sum.layers[l].bias, l < 2);
    EXPECT_EQ(sum.layers[l].positions, l == 0 ? 9 * kExamples : kExamples);
    ExpectClose(sum.layers[l].inputs, inputs[l]);
    ExpectClose(sum.layers[l].outputs, outputs[l]);
  }
}

// Every position of a sequence and every window is a row of its layer.
TEST(NetworkCurvature, KroneckerFactorsMatchLayersOfSequences) {
  Fixture network({{ToSequenceLayer{}},
                   {LinearLayer{.outputs = 3}},
                   {TanhLayer{}},
                   {Conv1dLayer{.out_channels = 2, .kernel = 2}},
                   {FlattenLayer{}},
                   {LinearLayer{.bias = false}}});
  std::vector<at::Tensor> inputs(2), outputs(2);
  const auto add = [](at::Tensor* sum, const at::Tensor& rows) { AddTo(sum, rows.t().matmul(rows)); };
  for (int64_t i = 0; i < kExamples; ++i) {
    const auto w = network.Leaves();
    const at::Tensor x = network.Image(i).flatten(2).squeeze(0).t();
    const at::Tensor y1 = x.matmul(w[0].t()) + w[1], windows = y1.tanh().unfold(0, 2, 1).flatten(1);
    const at::Tensor y2 = windows.matmul(w[2].flatten(1).t()) + w[3],
                     logits = y2.flatten().unsqueeze(0).matmul(w[4].t());
    add(&inputs[0], at::cat({x, at::ones({36, 1}, at::kDouble)}, 1));
    add(&inputs[1], at::cat({windows, at::ones({35, 1}, at::kDouble)}, 1).detach());
    for (const at::Tensor& y : {y1, y2}) y.retain_grad();
    for (int64_t k = 0; k < kClasses; ++k) {
      for (const at::Tensor& y : {y1, y2}) y.mutable_grad() = at::Tensor();
      (logits.squeeze(0) * Root(logits)[k]).sum().backward({}, /*retain_graph=*/true);
      add(&outputs[0], y1.grad());
      add(&outputs[1], y2.grad());
    }
  }
  const Curvature sum = network.Sum(CurvatureStructure::kKronecker);
  ASSERT_EQ(sum.layers.size(), 3u);
  for (size_t l = 0; l < 2; ++l) {
    EXPECT_TRUE(sum.layers[l].bias);
    EXPECT_EQ(sum.layers[l].positions, (l == 0 ? 36 : 35) * kExamples);
    ExpectClose(sum.layers[l].inputs, inputs[l]);
    ExpectClose(sum.layers[l].outputs, outputs[l]);
  }
}

// Float32 targets: a table of inputs and an mlp; the chain is row 1 of two. The Fisher information of a normal
// is diag(1/v, 1/2) by its mean and log variance; a learned log variance is the last parameter.
TEST(NetworkCurvature, MatchesTheMeansAndLogVariancesOfNormals) {
  const auto data = Resident(MakeTable(kExamples, 3, false));
  const double variance = 0.3;
  for (const LikelihoodKind& likelihood :
       {LikelihoodKind(GaussianLikelihood{.variance = variance}), LikelihoodKind(HeteroscedasticGaussianLikelihood()),
        LikelihoodKind(HeteroscedasticGaussianLikelihood{DeviationLink::kSoftplus}),
        LikelihoodKind(GaussianLikelihood{.variance = {}, .learned = true})}) {
    SCOPED_TRACE(likelihood.index());
    const LayerList layers = {{LinearLayer{.outputs = 5}}, {ReluLayer{}}, {LinearLayer{}}};
    const NetworkShape shape = *InferNetwork({LayeredModel{layers}, likelihood}, {3}, 0);
    const auto layout = std::make_shared<const Layout>(shape.parameters);
    const auto potential = MakeEagerPotential(
        shape, layout, data, {data->description().normalisation, {}, 1, likelihood}, Device(), ChainBatching::kApart);
    const ThetaArena theta = RandomTheta(layout, 2);
    at::Tensor wanted = at::zeros({layout->num_parameters(), layout->num_parameters()}, at::kDouble);
    for (int64_t i = 0; i < kExamples; ++i) {
      std::vector<at::Tensor> w;
      for (size_t k = 0; k < layout->spans().size(); ++k) {
        w.push_back(ParameterView(theta, k).select(0, 1).to(at::kDouble).detach().clone().requires_grad_(true));
      }
      std::vector<double> x;
      for (int64_t j = 0; j < 3; ++j) {
        x.push_back((reinterpret_cast<const float*>(data->input_bytes().data())[3 * i + j] - 0.3) / 1.7);
      }
      const at::Tensor hidden = at::relu(at::tensor(x, at::kDouble).view({1, 3}).matmul(w[0].t()) + w[1]);
      const at::Tensor outputs = (hidden.matmul(w[2].t()) + w[3]).squeeze(0);
      const bool fixed = std::holds_alternative<GaussianLikelihood>(likelihood) && w.size() == 4;
      at::Tensor log_variance = w.size() == 5 ? w[4].squeeze(0) : fixed ? at::Tensor() : outputs[1];
      if (likelihood == LikelihoodKind(HeteroscedasticGaussianLikelihood{DeviationLink::kSoftplus})) {
        log_variance = 2 * at::log(at::softplus(log_variance) + 1e-6);
      }
      const double v = fixed ? variance : std::exp(log_variance.item<double>());
      const auto add = [&](const at::Tensor& output, double information) {
        std::vector<at::Tensor> flat;
        for (const at::Tensor& leaf : w) leaf.mutable_grad() = at::zeros_like(leaf);
        output.backward({}, /*retain_graph=*/true);
        for (const at::Tensor& leaf : w) flat.push_back(leaf.grad().flatten());
        const at::Tensor gradient = at::cat(flat);
        wanted += information * at::outer(gradient, gradient);
      };
      add(outputs[0], 1 / v);
      if (!fixed) add(log_variance, 0.5);
    }
    for (const CurvatureStructure structure : {CurvatureStructure::kFull, CurvatureStructure::kDiagonal}) {
      Curvature sum{.structure = structure};
      const CurvatureSlice slices[2] = {{}, {&sum, 0, kExamples}};
      EXPECT_TRUE(potential->AddCurvature(theta, slices));
      if (structure == CurvatureStructure::kFull) {
        ExpectClose(sum.full, wanted);
      } else {
        ExpectClose(sum.diagonal, wanted.diag());
      }
    }
  }
}

TEST(NetworkCurvature, FusedNetworksHaveTheSame) {
  const auto data = SyntheticImages(kExamples);
  const auto fused = MakeNetwork("lenet5", data);
  const auto eager =
      MakeEagerPotential(*InferNetwork({BuiltinModel{"lenet5", {}}}, {1, 28, 28}, 10), fused->layout(), data,
                         {data->description().normalisation, {}, 25}, Device(), ChainBatching::kTogether);
  const ThetaArena theta = RandomTheta(fused->layout(), 2);
  Curvature a[2], b[2];
  for (Curvature* sums : {a, b}) sums[0].structure = sums[1].structure = CurvatureStructure::kKronecker;
  const CurvatureSlice of_fused[2] = {{&a[0], 0, 4}, {&a[1], 2, 4}}, of_eager[2] = {{&b[0], 0, 4}, {&b[1], 2, 4}};
  EXPECT_TRUE(fused->AddCurvature(theta, of_fused));
  EXPECT_TRUE(eager->AddCurvature(theta, of_eager));
  for (int row = 0; row < 2; ++row) {
    ASSERT_EQ(a[row].layers.size(), 5u);
    for (size_t l = 0; l < 5; ++l) {
      ExpectClose(a[row].layers[l].inputs, b[row].layers[l].inputs);
      ExpectClose(a[row].layers[l].outputs, b[row].layers[l].outputs);
    }
  }
}

}  // namespace
}  // namespace chainfleet

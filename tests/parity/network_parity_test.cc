// Every network's fused kernels against ATen operations and autograd in double precision.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "tests/support/network_fixture.h"
#include "worker/numerics/arena/tensor_view.h"
#include "worker/numerics/models/eager_network.h"
#include "worker/numerics/models/eager_potential.h"

namespace chainfleet {
namespace {

struct Reference {
  double energy = 0;
  std::vector<at::Tensor> gradients;  // gradients of the likelihood, per parameter tensor, double
};

Reference EvaluateInDouble(const std::string& model, const ResidentDataset& data, const ThetaArena& theta, int64_t row,
                           const int64_t* ids, int64_t n) {
  const Dataset& description = data.description();
  const NetworkShape network =
      *InferNetwork({BuiltinModel{model, {}}}, description.input_shape, NumClasses(description.targets));
  std::vector<double> x;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < n; ++i) {
    labels.push_back(std::get<std::vector<int32_t>>(data.targets())[ids[i]]);
    for (int64_t f = 0; f < data.row_size(); ++f) {
      const double value = static_cast<uint8_t>(data.input_bytes()[ids[i] * data.row_size() + f]);
      x.push_back((value / 255 - description.normalisation.mean[0]) / description.normalisation.stddev[0]);
    }
  }
  std::vector<int64_t> shape = {1, n};
  shape.insert(shape.end(), description.input_shape.begin(), description.input_shape.end());
  std::vector<at::Tensor> parameters;
  at::Tensor squares = at::tensor({0.0}, at::kDouble).sum();
  for (size_t k = 0; k < theta.layout().spans().size(); ++k) {
    parameters.push_back(
        ParameterView(theta, k).narrow(0, row, 1).to(at::kDouble).detach().clone().requires_grad_(true));
    squares = squares + parameters.back().detach().square().sum();
  }
  const at::Tensor logits = EagerLogits(network, parameters, at::tensor(x, at::kDouble).view(shape));
  const at::Tensor loss = -at::log_softmax(logits, -1).gather(-1, at::tensor(labels, at::kLong).view({1, n, 1})).sum() *
                          (static_cast<double>(description.num_rows) / n);
  loss.backward();
  Reference reference;
  reference.energy = loss.item<double>() + 12.5 * squares.item<double>();
  for (const at::Tensor& parameter : parameters) reference.gradients.push_back(parameter.grad());
  return reference;
}

void ExpectParity(const std::string& model, std::vector<int64_t> input_shape, int64_t classes, int64_t n) {
  SCOPED_TRACE(model + " n = " + std::to_string(n));
  at::set_num_threads(1);
  const auto data = SyntheticImages(300, std::move(input_shape), classes);
  const auto potential = MakeNetwork(model, data);
  const ThetaArena theta = RandomTheta(potential->layout(), 2);
  ThetaArena gradient = theta.Clone();
  const std::vector<int64_t> ids = SomeIds(2, n, 300);
  std::vector<double> energy(2);
  potential->Evaluate(theta, {ids.data(), n}, &gradient, energy.data());
  for (int64_t row = 0; row < 2; ++row) {
    const Reference reference = EvaluateInDouble(model, *data, theta, row, ids.data() + row * n, n);
    EXPECT_NEAR(energy[row], reference.energy, 1e-5 * std::abs(reference.energy));
    for (size_t k = 0; k < reference.gradients.size(); ++k) {
      const at::Tensor& expected = reference.gradients[k];
      const at::Tensor difference = ParameterView(gradient, k).narrow(0, row, 1).to(at::kDouble) - expected;
      EXPECT_LT(difference.abs().max().item<double>(), 2e-5 * expected.abs().max().item<double>() + 1e-6)
          << theta.layout().parameters()[k].name;
    }
  }
}

TEST(NetworkParity, SoftmaxRegressionAgreesWithDoublePrecision) {
  for (const int64_t n : {1, 16, 50, 128}) ExpectParity("softmax_regression", {1, 28, 28}, 10, n);
  ExpectParity("softmax_regression", {13}, 3, 20);
}

TEST(NetworkParity, MlpAgreesWithDoublePrecision) {
  for (const int64_t n : {1, 16, 50, 128, 200}) ExpectParity("mlp", {1, 28, 28}, 10, n);
  ExpectParity("mlp", {13}, 3, 20);
}

TEST(NetworkParity, Lenet5AgreesWithDoublePrecision) {
  for (const int64_t n : {1, 16, 50, 128}) ExpectParity("lenet5", {1, 28, 28}, 10, n);
  ExpectParity("lenet5", {3, 32, 32}, 10, 40);
  ExpectParity("lenet5", {2, 15, 18}, 4, 17);
}

// The way of a GPU, tried on the CPU: all chains in one call.
TEST(NetworkParity, EagerPotentialAgreesWithTheFusedOne) {
  for (const std::string model : {"softmax_regression", "mlp", "lenet5"}) {
    SCOPED_TRACE(model);
    const auto data = SyntheticImages(300);
    const auto fused = MakeNetwork(model, data);
    const auto eager =
        MakeEagerPotential(*InferNetwork({BuiltinModel{model, {}}}, {1, 28, 28}, 10), fused->layout(), data,
                           {data->description().normalisation, {}, 25}, Device(), ChainBatching::kTogether);
    const ThetaArena theta = RandomTheta(fused->layout(), 3);
    ThetaArena fused_gradient = theta.Clone(), eager_gradient = theta.Clone();
    const std::vector<int64_t> ids = SomeIds(3, 40, 300);
    std::vector<double> fused_energy(3), eager_energy(3), fused_losses(120), eager_losses(120);
    fused->Evaluate(theta, {ids.data(), 40}, &fused_gradient, fused_energy.data());
    eager->Evaluate(theta, {ids.data(), 40}, &eager_gradient, eager_energy.data());
    fused->Losses(theta, {ids.data(), 40}, fused_losses.data());
    eager->Losses(theta, {ids.data(), 40}, eager_losses.data());
    for (int r = 0; r < 3; ++r) EXPECT_NEAR(fused_energy[r], eager_energy[r], 1e-5 * eager_energy[r]);
    for (int i = 0; i < 120; ++i) EXPECT_NEAR(fused_losses[i], eager_losses[i], 1e-5);
    const at::Tensor difference = (RowsView(fused_gradient) - RowsView(eager_gradient)).abs().max();
    EXPECT_LT(difference.item<float>(), 1e-4f * RowsView(eager_gradient).abs().max().item<float>());
    std::vector<double> fused_prior(3), eager_prior(3);
    fused->LogPrior(theta, nullptr, fused_prior.data());
    eager->LogPrior(theta, nullptr, eager_prior.data());
    for (int r = 0; r < 3; ++r) EXPECT_NEAR(fused_prior[r], eager_prior[r], 1e-10 * std::abs(eager_prior[r]));
  }
}

}  // namespace
}  // namespace chainfleet

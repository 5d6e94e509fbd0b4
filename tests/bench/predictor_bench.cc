// Compares predictions of a worker without the network with a loop over the same members in LibTorch: the mlp
// 784-200-200-10, draws of four chains, rows as float32 images.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <benchmark/benchmark.h>
#include <c10/core/InferenceMode.h>

#include <random>

#include "core/base/check.h"
#include "core/domain/network_shape.h"
#include "tests/bench/in_turn.h"
#include "worker/numerics/predict/predictor.h"

namespace chainfleet {
namespace {

constexpr int kChains = 4;
constexpr float kMean = 0.3f, kStddev = 0.35f;

std::vector<float> RandomFloats(int64_t size, float scale) {
  static std::mt19937 generator(7);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(static_cast<size_t>(size));
  for (float& value : values) value = normal(generator);
  return values;
}

struct Members {
  explicit Members(int64_t draws) {
    plan->job = "bench";
    plan->model.kind = BuiltinModel{"mlp", {}};
    plan->input_shape = {1, 28, 28};
    plan->targets = Classes{10};
    plan->normalisation = {{kMean}, {kStddev}};
    const auto network = InferNetwork(plan->model, plan->input_shape, NumClasses(plan->targets));
    CHAINFLEET_CHECK(network.ok());
    for (int64_t s = 0; s < draws; ++s) {
      DrawStack& chain = chains[static_cast<size_t>(s % kChains)];
      chain.weights.push_back(1);
      int64_t size = 0;
      for (const ParameterShape& parameter : network->parameters) size += NumValues(parameter.shape);
      chain.theta.push_back(std::make_shared<const std::vector<float>>(RandomFloats(size, 0.05f)));
      std::vector<at::Tensor>& member = tensors.emplace_back();
      for (const ParameterShape& parameter : network->parameters) {
        float* values = const_cast<float*>(chain.theta.back()->data()) + parameter.offset;
        member.push_back(at::from_blob(values, parameter.shape, at::kFloat).clone());
      }
    }
  }

  const std::shared_ptr<PredictPlan> plan = std::make_shared<PredictPlan>();
  std::vector<DrawStack> chains = std::vector<DrawStack>(kChains);
  std::vector<std::vector<at::Tensor>> tensors;  // by draw
};

at::Tensor Loop(const Members& members, const at::Tensor& x) {
  const at::Tensor standardised = (x - kMean) / kStddev;
  at::Tensor sum = at::zeros({x.size(0), 10});
  for (const std::vector<at::Tensor>& w : members.tensors) {
    const at::Tensor h = at::relu(at::linear(standardised, w[0], w[1]));
    sum.add_(at::softmax(at::linear(at::relu(at::linear(h, w[2], w[3])), w[4], w[5]), 1));
  }
  return sum / static_cast<double>(members.tensors.size());
}

void PredictMlp(benchmark::State& state) {
  const int64_t rows = state.range(0);
  at::set_num_threads(static_cast<int>(state.range(2)));
  const Members members(state.range(1));
  std::vector<float> values = RandomFloats(rows * 784, 1);
  const InputTensor inputs{InputType::kFloat32,
                           {rows, 1, 28, 28},
                           {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}};
  const auto predictor = Predictor::Create(members.plan, "cpu");
  CHAINFLEET_CHECK(predictor.ok());
  const auto ours = [&] { CHAINFLEET_CHECK((*predictor)->Predict(members.chains, inputs).ok()); };
  const auto loop = [&] {
    const c10::InferenceMode inference;
    benchmark::DoNotOptimize(Loop(members, at::from_blob(values.data(), {rows, 784}, at::kFloat)).const_data_ptr());
  };
  StepInTurn(state, {{"ours", ours}, {"loop", loop}}, state.range(2) == 1 ? StepTime::kThreadCpu : StepTime::kElapsed);
}

BENCHMARK(PredictMlp)
    ->Name("predict_mlp")
    ->ArgNames({"rows", "draws", "threads"})
    ->ArgsProduct({{64, 256, 512, 1024}, {16, 64}, {1, 2}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(21);

}  // namespace
}  // namespace chainfleet

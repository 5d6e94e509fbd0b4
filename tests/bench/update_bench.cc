// Compares the fused Langevin update with the same update in eager LibTorch operations and with a plain copy. Items are
// parameters; bytes are the least bytes that the algorithm must move (SGLD: read theta and gradient, write theta).
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstring>

#include "worker/numerics/kernels/update.h"

namespace chainfleet {
namespace {

constexpr float kStepSize = 1e-6f, kTemperature = 1e-4f, kPrecision = 25, kCoupling = 2500;

struct Tensors {
  explicit Tensors(int64_t n) : theta(at::randn({n})), theta_a(theta.clone()), gradient(at::randn({n})) {}
  at::Tensor theta, theta_a, gradient;
};

void Report(benchmark::State& state, int64_t passes) {
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetBytesProcessed(state.iterations() * state.range(0) * passes * static_cast<int64_t>(sizeof(float)));
}

void Fused(benchmark::State& state, bool anchored) {
  at::set_num_threads(1);
  Tensors tensors(state.range(0));
  const TensorSpan span{0, 0, state.range(0)};
  UpdateBuffers buffers;
  buffers.spans = &span;
  buffers.num_spans = 1;
  buffers.num_parameters = buffers.row_stride = state.range(0);
  buffers.rows = 1;
  buffers.theta = tensors.theta.data_ptr<float>();
  buffers.theta_a = anchored ? tensors.theta_a.data_ptr<float>() : nullptr;
  buffers.gradient = tensors.gradient.data_ptr<float>();
  RowStep step{RngKey{7}, 0, kStepSize, std::sqrt(2 * kStepSize * kTemperature), kPrecision, kCoupling, true};
  RowOutcome outcome;
  for (auto _ : state) {
    LangevinUpdateCpu(buffers, &step, &outcome);
    ++step.t;
    benchmark::DoNotOptimize(outcome);
  }
  Report(state, anchored ? 5 : 3);
}

void Eager(benchmark::State& state, bool anchored) {
  at::set_num_threads(1);
  Tensors tensors(state.range(0));
  const double noise = std::sqrt(2 * kStepSize * kTemperature);
  for (auto _ : state) {
    if (anchored) {
      const at::Tensor force = (tensors.theta - tensors.theta_a).mul_(kCoupling);
      tensors.theta.mul_(1 - kStepSize * kPrecision).add_(tensors.gradient, -kStepSize).add_(force, -kStepSize);
      tensors.theta_a.add_(force, kStepSize).add_(at::randn_like(tensors.theta_a), noise);
    } else {
      tensors.theta.mul_(1 - kStepSize * kPrecision).add_(tensors.gradient, -kStepSize);
    }
    tensors.theta.add_(at::randn_like(tensors.theta), noise);
    benchmark::ClobberMemory();
  }
  Report(state, anchored ? 5 : 3);
}

// memcpy of as many parameters: one read, one write. Compare bytes per second.
void Copy(benchmark::State& state) {
  Tensors tensors(state.range(0));
  for (auto _ : state) {
    std::memcpy(tensors.theta.data_ptr<float>(), tensors.gradient.data_ptr<float>(), state.range(0) * sizeof(float));
    benchmark::ClobberMemory();
  }
  Report(state, 2);
}

// lenet5's 61,706 (first-level caches), a million (second), 64 million (beyond most caches).
void Sizes(benchmark::internal::Benchmark* bench) { bench->Arg(61706)->Arg(1 << 20)->Arg(1 << 26); }

BENCHMARK_CAPTURE(Fused, fused_sgld, false)->Apply(Sizes);
BENCHMARK_CAPTURE(Eager, eager_sgld, false)->Apply(Sizes);
BENCHMARK_CAPTURE(Fused, fused_emcmc, true)->Apply(Sizes);
BENCHMARK_CAPTURE(Eager, eager_emcmc, true)->Apply(Sizes);
BENCHMARK(Copy)->Name("copy")->Apply(Sizes);

}  // namespace
}  // namespace chainfleet

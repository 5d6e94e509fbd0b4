// Compares our GPU kernels with the CPU's, on the layout of a deep network and on awkward layouts. A CPU simulates the
// GPU and runs the kernels thread by thread.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/domain/model_spec.h"
#include "worker/numerics/arena/device.h"
#include "worker/numerics/arena/layout.h"
#include "worker/numerics/kernels/cuda_module.h"
#include "worker/numerics/kernels/pass.h"
#include "worker/numerics/potentials/batch_ids.h"
#include "worker/numerics/potentials/minibatch.h"

namespace chainfleet {
namespace {

constexpr int64_t kAtRest = 3, kNan = 5;  // rows
constexpr float kPadding = 7;

struct Case {
  std::string name;
  std::vector<ParameterShape> parameters;
  int64_t rows;
};

std::vector<ParameterShape> Vectors(const std::vector<int64_t>& sizes) {
  std::vector<ParameterShape> parameters;
  int64_t offset = 0;
  for (const int64_t size : sizes) {
    parameters.push_back({"t" + std::to_string(parameters.size()), {size}, offset});
    offset += size;
  }
  return parameters;
}

std::vector<Case> Cases() {
  std::vector<int64_t> growing;
  for (int64_t size = 1; size <= 1000; size = size * 5 / 4 + 1) growing.push_back(size);
  return {{"Growing", Vectors(growing), 7},
          // Tensors begin at multiples of 4 and between, and end at tiles, before and after them.
          {"Edges", Vectors({4, 2044, 2048, 8, 4096, 2043, 1, 4097, 60, 5000, 3, 2049}), 7},
          {"ManyRows", Vectors({150, 6, 52}), 131},  // three launches
          {"Resnet18", *InferParameters({BuiltinModel{.name = "resnet18", .width = 0.125}}, {3, 32, 32}, 10), 6}};
}

// Rows of parameters in (0.25, 1.25], except one NaN in row kNan of the first two.
std::vector<at::Tensor> Arenas(const Layout& layout, int64_t rows) {
  std::vector<at::Tensor> arenas;
  for (uint64_t a = 0; a < kMaxPassArenas; ++a) {
    arenas.push_back(at::full({rows, layout.row_stride()}, kPadding, at::kFloat));
    float* const data = arenas.back().mutable_data_ptr<float>();
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<float> values(layout.num_parameters());
      for (size_t p = 0; p < values.size(); ++p) {
        const PhiloxBlock random = RandomBlock(RngKey{a}, RngStream::kInit, r, static_cast<uint32_t>(p));
        values[p] = 0.25f + UniformFloat(random.word[0]);
      }
      if (r == kNan && a < 2) values.back() = std::numeric_limits<float>::quiet_NaN();
      layout.Unpack(values.data(), data + r * layout.row_stride());
    }
  }
  return arenas;
}

bool BothNan(double a, double b) { return std::isnan(a) && std::isnan(b); }

void ExpectSameOutcome(double sum, double check, double cpu_sum, double cpu_check) {
  EXPECT_TRUE(BothNan(check, cpu_check) || (check == 0 && cpu_check == 0)) << check << " and " << cpu_check;
  EXPECT_TRUE(BothNan(sum, cpu_sum) || std::abs(sum - cpu_sum) <= 1e-6 * cpu_sum) << sum << " and " << cpu_sum;
}

void ExpectSameOutcome(const RowOutcome& gpu, const RowOutcome& cpu) {
  ExpectSameOutcome(gpu.anchor_distance2, gpu.theta_check, cpu.anchor_distance2, cpu.theta_check);
}
void ExpectSameOutcome(const PassOutcome& gpu, const PassOutcome& cpu) {
  ExpectSameOutcome(gpu.sum, gpu.check, cpu.sum, cpu.check);
}

class KernelParity : public ::testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(InitializeDevice("cuda:0", 1).ok()); }

  template <typename Buffers>
  Buffers BuffersOf() const {
    Buffers buffers;
    buffers.spans = layout_.spans().data();
    buffers.num_spans = static_cast<int64_t>(layout_.spans().size());
    buffers.num_parameters = layout_.num_parameters();
    buffers.row_stride = layout_.row_stride();
    buffers.rows = rows_;
    return buffers;
  }

  // `run(device, arenas, outcomes)` leaves the same arenas, padding included, and outcomes on both devices, and on a
  // GPU the same bits each time.
  template <typename Outcome, typename Run>
  void ExpectParity(Run run) const {
    const auto from = [&](at::Device device, std::vector<Outcome>* outcomes) {
      std::vector<at::Tensor> arenas;
      for (const at::Tensor& arena : before_) arenas.push_back(arena.to(device, /*non_blocking=*/false, /*copy=*/true));
      std::vector<float*> data;
      for (const at::Tensor& arena : arenas) data.push_back(static_cast<float*>(arena.mutable_data_ptr()));
      outcomes->resize(rows_);
      run(device.is_cuda(), data, outcomes->data());
      return at::stack(arenas).cpu();
    };
    std::vector<Outcome> cpu, gpu, again;
    const at::Tensor on_cpu = from(at::kCPU, &cpu), on_gpu = from(at::Device(at::kCUDA, 0), &gpu);
    EXPECT_TRUE(at::allclose(on_gpu, on_cpu, 2e-6, 1e-6, /*equal_nan=*/true));
    for (int64_t r = 0; r < rows_; ++r) {
      SCOPED_TRACE("row " + std::to_string(r));
      ExpectSameOutcome(gpu[r], cpu[r]);
    }
    EXPECT_TRUE(at::allclose(from(at::Device(at::kCUDA, 0), &again), on_gpu, 0, 0, /*equal_nan=*/true));
    EXPECT_EQ(std::memcmp(again.data(), gpu.data(), rows_ * sizeof(Outcome)), 0);
  }

  const Layout layout_{GetParam().parameters};
  const int64_t rows_ = GetParam().rows;
  const std::vector<at::Tensor> before_ = Arenas(layout_, rows_);
};

TEST_P(KernelParity, HoldsForTheUpdate) {
  std::vector<RowStep> steps;
  for (int64_t r = 0; r < rows_; ++r) {
    const float small = 0.001f * static_cast<float>(r);
    steps.push_back({Fold(RngKey{11}, r), (uint64_t{1} << 33) + r, 0.01f + small, 0.1f, 5, 2, 3, r != kAtRest});
  }
  for (const bool anchored : {false, true}) {
    SCOPED_TRACE(anchored ? "anchored" : "plain");
    ExpectParity<RowOutcome>([&](bool on_gpu, const std::vector<float*>& arenas, RowOutcome* outcomes) {
      auto buffers = BuffersOf<UpdateBuffers>();
      buffers.theta = arenas[0];
      buffers.theta_a = anchored ? arenas[1] : nullptr;
      buffers.gradient = arenas[2];
      if (on_gpu) {
        std::ranges::copy(LangevinUpdateCuda(buffers, steps.data(), 0).get(), outcomes);
      } else {
        LangevinUpdateCpu(buffers, steps.data(), outcomes);
      }
    });
  }
}

TEST_P(KernelParity, HoldsForEveryPass) {
  std::vector<PassRow> rows;
  for (int64_t r = 0; r < rows_; ++r) {
    const float more = 0.001f * static_cast<float>(r);
    rows.push_back({Fold(RngKey{12}, r), (uint64_t{1} << 33) + r, {0.1f, 0.2f + more, 0.3f, 0.4f, 0.5f}, r != kAtRest});
  }
#define CHAINFLEET_NAME(Name) {Pass::k##Name, #Name},
  for (const auto& [pass, name] : std::vector<std::pair<Pass, const char*>>{CHAINFLEET_PASSES(CHAINFLEET_NAME)}) {
#undef CHAINFLEET_NAME
    SCOPED_TRACE(name);
    ExpectParity<PassOutcome>([&](bool on_gpu, const std::vector<float*>& arenas, PassOutcome* outcomes) {
      auto buffers = BuffersOf<PassBuffers>();
      std::ranges::copy(arenas, buffers.arena);
      if (on_gpu) {
        std::ranges::copy(RunPassCuda(pass, buffers, rows.data(), 0).get(), outcomes);
      } else {
        RunPassCpu(pass, buffers, rows.data(), outcomes);
      }
    });
  }
}

// The GPU draws the same ids of batches as the CPU.
TEST(BatchParity, HoldsForTheRowIds) {
  ASSERT_TRUE(InitializeDevice("cuda:0", 1).ok());
  for (const Minibatches kind : {Minibatches::kReshuffle, Minibatches::kIndependent}) {
    for (const auto& [examples, n] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {103, 10}, {60000, 131}}) {
      const MinibatchPlan plan(kind, examples, n);
      std::vector<StepKey> keys;
      for (uint64_t step : {uint64_t{0}, uint64_t{1}, uint64_t{457}, uint64_t{1} << 40}) {
        keys.push_back({Fold(RngKey{7}, step), step});
      }
      const auto rows = static_cast<int64_t>(keys.size());
      const BatchRows batch = {.size = n, .keys = keys.data(), .draw = &plan.draw()};
      const at::Tensor drawn = BatchIds(batch, 1, rows - 1, at::Device(at::kCUDA, 0)).cpu();
      std::vector<int64_t> ids(n);
      for (int64_t row = 1; row < rows; ++row) {
        plan.Fill(keys[row].key, static_cast<int64_t>(keys[row].step), ids.data());
        EXPECT_TRUE(std::equal(ids.begin(), ids.end(), drawn.const_data_ptr<int64_t>() + (row - 1) * n))
            << examples << " examples, step " << keys[row].step;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, KernelParity, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace chainfleet

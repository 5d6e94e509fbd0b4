// Compares chains on a GPU, real or fake, with the same chains on the CPU: same keys, same path up to float rounding.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/domain/sweep_points.h"
#include "tests/support/fake_cuda/fake_gpu.h"
#include "tests/support/model_files.h"
#include "tests/support/network_chains.h"
#include "worker/numerics/arena/device.h"
#include "worker/numerics/batch/checkpoint_codec.h"
#include "worker/numerics/tracing/gradient_variance.h"

namespace chainfleet {

using Data = std::shared_ptr<const ResidentDataset>;

class NeedsGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    // Runs once, before the first torch call: LibTorch looks for its CUDA back end only then.
    static const absl::Status status = InitializeDevice("cuda:0", 1);
    if (!status.ok()) GTEST_SKIP() << status;
  }
};

// If there is a second GPU, the test uses that GPU, and a fake first GPU fails every call meanwhile.
class SecondGpu {
 public:
  SecondGpu() { Forbid(0); }
  ~SecondGpu() { Forbid(-1); }
  SecondGpu(const SecondGpu&) = delete;
  SecondGpu& operator=(const SecondGpu&) = delete;

  Device device() const { return {CheckDeviceIsThere(Device{1}).ok() ? 1 : 0}; }
  std::string name() const { return "cuda:" + std::to_string(device().cuda_index); }

 private:
  static void Forbid(int device) {
    static const auto forbid = reinterpret_cast<decltype(&ForbidDevice)>(dlsym(RTLD_DEFAULT, "ForbidDevice"));
    if (forbid != nullptr) forbid(device);
  }
};

struct Way {
  std::string device, then;  // all chains resume there after two steps; empty: they stay
  int removed = 0;           // number of chains, from the first, that leave after two steps
};

// The values by which chains are compared.
struct Shown {
  std::vector<float> moved;       // distance of the draws from the start of their chains: most of a draw is the start
  std::vector<float> beside;      // values of a draw other than parameters
  std::vector<double> numbers;    // traces of all steps; evidence at the end
  std::vector<double> variances;  // variances of gradients, at the end
  std::vector<double> curvatures;
  bool same_batches = true;  // same batches on all devices, for the variances
};

class ChainsOnTheWay {
 public:
  ChainsOnTheWay(std::shared_ptr<const JobPlan> plan, Data data, Way way,
                 std::shared_ptr<const ModelFile> module = nullptr)
      : plan_(std::move(plan)), data_(std::move(data)), way_(std::move(way)), module_(std::move(module)) {}

  Shown Run() {
    Make(way_.device);
    if (batch_ == nullptr) return {};
    const int64_t size = NumParameters(batch_->parameters());
    shown_.same_batches = NumVarianceBatches(size, Device()) == NumVarianceBatches(size, Device{0});
    for (int chain = 0; chain < num_chains(); ++chain) {
      EXPECT_TRUE(batch_->AddChain(chain, std::nullopt).ok());
      starts_.push_back(DecodeCheckpoint(batch_->SaveResumePoint(chain))->arenas[0]);
    }
    const int64_t steps = PlanSteps(plan_->spec, data_ ? data_->description().num_rows : 1).total_steps;
    for (int64_t step = 0; step < steps; ++step) {
      if (step == 2) GoOn();
      Step(step + 1 == steps);
    }
    for (int chain = way_.removed; chain < num_chains(); ++chain) ShowDraw(chain);
    return std::move(shown_);
  }

 private:
  int num_chains() const { return plan_->spec.chains * NumPoints(plan_->spec.sweep); }

  void Make(const std::string& device) {
    auto batch = ChainBatch::Create(plan_, data_, device, module_);
    ASSERT_TRUE(batch.ok()) << batch.status();
    batch_ = *std::move(batch);
  }

  void GoOn() {
    for (int chain = 0; chain < way_.removed; ++chain) batch_->RemoveChain(chain);
    if (way_.then.empty()) return;
    const std::unique_ptr<ChainBatch> before = std::move(batch_);
    Make(way_.then);
    for (int chain = way_.removed; chain < num_chains(); ++chain) {
      EXPECT_TRUE(batch_->AddChain(chain, before->SaveResumePoint(chain)).ok());
    }
  }

  void Step(bool is_last) {
    const auto stepped = batch_->Step();
    ASSERT_TRUE(stepped.ok()) << stepped.status();
    for (const RowReport& row : *stepped) {
      shown_.numbers.insert(shown_.numbers.end(), row.trace.begin(), row.trace.end());
      if (!is_last || !row.stats.report) continue;
      shown_.variances.push_back(row.stats.report->gradient_variance.value_or(0));
      shown_.numbers.push_back(row.stats.report->log_evidence.value_or(0));
      shown_.curvatures.push_back(row.stats.report->curvature.value_or(0));
    }
  }

  void ShowDraw(int chain) {
    const auto held = batch_->GiveUpHeld(chain);
    for (const auto& kind : (held ? *held : batch_->TakeDraw(chain)).theta) {
      std::ranges::transform(kind, starts_[chain], std::back_inserter(shown_.moved), std::minus());
      shown_.beside.insert(shown_.beside.end(), kind.begin() + std::ssize(starts_[chain]), kind.end());
    }
  }

  const std::shared_ptr<const JobPlan> plan_;
  const Data data_;
  const Way way_;
  const std::shared_ptr<const ModelFile> module_;
  std::unique_ptr<ChainBatch> batch_;
  std::vector<std::vector<float>> starts_;
  Shown shown_;
};

template <typename T>
void ExpectNear(const std::vector<T>& here, const std::vector<T>& there, double tolerance, const char* what) {
  ASSERT_EQ(here.size(), there.size()) << what;
  for (size_t i = 0; i < here.size(); ++i) {
    EXPECT_NEAR(here[i], there[i], tolerance * (1e-3 + std::abs(there[i]))) << what << " " << i;
  }
}

inline void ExpectSameWay(const Shown& cpu, const Shown& gpu, double curvature_tolerance = 0.2) {
  EXPECT_LT(RelativeDistance(gpu.moved, cpu.moved), 1e-3);
  ExpectNear(gpu.beside, cpu.beside, 1e-3, "statistic");
  ExpectNear(gpu.numbers, cpu.numbers, 1e-3, "number");
  ExpectNear(gpu.variances, cpu.variances, cpu.same_batches ? 1e-3 : 0.2, "variance");
  // The curvature uses gradients on both sides of theta, and rounding moves ReLU units across.
  ExpectNear(gpu.curvatures, cpu.curvatures, curvature_tolerance, "curvature");
}

}  // namespace chainfleet

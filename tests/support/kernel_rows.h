// Steps many rows of one kernel on one potential together: chains for statistics, below the job interface.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/estimate.h"
#include "worker/numerics/arena/device.h"
#include "worker/numerics/batch/chain_batch.h"
#include "worker/numerics/samplers/kernel.h"

namespace chainfleet::testing {

// A layout of one parameter.
inline std::shared_ptr<const Layout> OneParameter() {
  return std::make_shared<const Layout>(std::vector<ParameterShape>{{"x", {1}, 0, 0}});
}

// Chains with the keys Fold(seed, row), all at step t.
class KernelRows {
 public:
  KernelRows(Kernel kernel, Potential* potential, int64_t batch_size, int64_t rows, uint64_t seed, double step_size,
             double temperature = 1, StepPlan plan = {})
      : kernel_(std::move(kernel)),
        potential_(potential),
        batches_(Minibatches::kReshuffle, potential->num_examples(), batch_size),
        plan_(plan),
        scratch_(ThetaArena(potential->layout(), Device{})) {
    (void)InitializeDevice("cpu", 1);  // threads would only wait for each other on such short rows
    for (size_t i = 0; i < ArenaNames(kernel_).size(); ++i) state_.arenas.emplace_back(potential->layout(), Device{});
    for (int64_t row = 0; row < rows; ++row) {
      state_.AddRow();
      std::visit([&](const auto& k) { k.InitRow(&state_, row); }, kernel_);
      chains_.push_back({Fold(RngKey{seed}, static_cast<uint64_t>(row)), 0, step_size, temperature, true});
    }
  }

  // Sets parameter 0 of every row. REQUIRES, after a step: no arena or number of the kernel depends on theta.
  void Set(const std::function<double(int64_t row)>& start) {
    for (int64_t row = 0; row < rows(); ++row) state_.theta().row(row)[0] = static_cast<float>(start(row));
    ForgetDerived();
  }

  // Leaves the state that a resume point restores.
  void ForgetDerived() { state_.derived.assign(state_.derived.size(), nullptr); }

  std::vector<StepInfo> Step() {
    const StepInputs inputs = {potential_, &batches_, &plan_, chains_, &scratch_};
    const auto info = std::visit([&](const auto& k) -> Late<StepInfo> { return k.Step(inputs, &state_); }, kernel_);
    for (ChainStep& chain : chains_) ++chain.t;
    return info;
  }

  int64_t rows() const { return static_cast<int64_t>(chains_.size()); }
  double theta(int64_t row) const { return state_.theta().row(row)[0]; }
  const SamplerState& state() const { return state_; }
  ChainStep& chain(int64_t row) { return chains_[row]; }

 private:
  const Kernel kernel_;
  Potential* const potential_;
  const MinibatchPlan batches_;
  const StepPlan plan_;
  SamplerState state_;
  StepScratch scratch_;
  std::vector<ChainStep> chains_;
};

}  // namespace chainfleet::testing

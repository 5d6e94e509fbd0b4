// A real ChainBatch on a device with memory for the steps of a given number of chains.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "worker/numerics/batch/chain_batch.h"

namespace chainfleet {

// Passes all other calls to the batch, which it owns.
class TightBatch final : public ChainBatch {
 public:
  // More than `most` chains make `lucky_steps` steps before memory runs out. `refused` records the number of chains
  // each time; may be null.
  TightBatch(std::unique_ptr<ChainBatch> batch, size_t most, int lucky_steps = 0,
             std::vector<size_t>* refused = nullptr)
      : batch_(std::move(batch)), most_(most), lucky_steps_(lucky_steps), refused_(refused) {}

  absl::Status AddChain(int32_t index, const std::optional<std::string>& resume_point,
                        const std::string* weights) override {
    return batch_->AddChain(index, resume_point, weights);
  }
  void RemoveChain(int32_t index) override { batch_->RemoveChain(index); }
  std::vector<int32_t> chains() const override { return batch_->chains(); }
  int64_t StepsDone(int32_t index) const override { return batch_->StepsDone(index); }
  absl::StatusOr<std::vector<RowReport>> Step() override {
    if (chains().size() <= most_ || --lucky_steps_ >= 0) return batch_->Step();
    if (refused_ != nullptr) refused_->push_back(chains().size());
    return absl::ResourceExhaustedError("out of memory");
  }
  Draw TakeDraw(int32_t index) const override { return batch_->TakeDraw(index); }
  std::optional<Draw> GiveUpHeld(int32_t index) override { return batch_->GiveUpHeld(index); }
  bool IsFinite(int32_t index) override { return batch_->IsFinite(index); }
  std::string SaveResumePoint(int32_t index) const override { return batch_->SaveResumePoint(index); }
  const std::vector<ParameterShape>& parameters() const override { return batch_->parameters(); }
  const std::vector<std::string>& trace_quantities() const override { return batch_->trace_quantities(); }

 private:
  const std::unique_ptr<ChainBatch> batch_;
  const size_t most_;
  int lucky_steps_;
  std::vector<size_t>* const refused_;
};

}  // namespace chainfleet

// A ChainBatch on a device with memory for a few chains only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "worker/numerics/chain_batch.h"

namespace chainfleet {

// All else is the batch's own. Owns it.
class SmallBatch final : public ChainBatch {
 public:
  SmallBatch(std::unique_ptr<ChainBatch> batch, size_t max_chains)
      : batch_(std::move(batch)), max_chains_(max_chains) {}

  absl::Status AddChain(int32_t index, const std::optional<std::string>& resume_point) override {
    return batch_->AddChain(index, resume_point);
  }
  void RemoveChain(int32_t index) override { batch_->RemoveChain(index); }
  std::vector<int32_t> chains() const override { return batch_->chains(); }
  absl::StatusOr<std::vector<RowReport>> Step() override {
    if (chains().size() > max_chains_) return absl::ResourceExhaustedError("out of memory");
    return batch_->Step();
  }
  DrawTensors TakeDraw(int32_t index) const override { return batch_->TakeDraw(index); }
  std::optional<DrawTensors> GiveUpHeld(int32_t index) override { return batch_->GiveUpHeld(index); }
  std::string SaveResumePoint(int32_t index) const override { return batch_->SaveResumePoint(index); }
  const std::vector<ParameterShape>& parameters() const override { return batch_->parameters(); }

 private:
  const std::unique_ptr<ChainBatch> batch_;
  const size_t max_chains_;
};

}  // namespace chainfleet

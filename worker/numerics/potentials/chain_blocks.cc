#include "worker/numerics/potentials/chain_blocks.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "worker/numerics/potentials/minibatch.h"

namespace chainfleet {
namespace {

class BlockPotential final : public Potential {
 public:
  BlockPotential(std::unique_ptr<Potential> whole, std::shared_ptr<const std::vector<int32_t>> blocks)
      : whole_(std::move(whole)), blocks_(std::move(blocks)) {}

  const std::shared_ptr<const Layout>& layout() const override { return whole_->layout(); }
  int64_t num_examples() const override { return whole_->num_examples(); }
  double prior_precision() const override { return whole_->prior_precision(); }
  std::vector<double> PriorPrecisions() const override { return whole_->PriorPrecisions(); }

  void Evaluate(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, double* energy) override {
    whole_->Evaluate(theta, InBlocks(theta, batch), gradient, energy);
  }

  Late<double> EvaluateLate(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient) override {
    return whole_->EvaluateLate(theta, InBlocks(theta, batch), gradient);
  }

  bool EvaluateWithNorms(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, double* energy,
                         double* squared_norms) override {
    return whole_->EvaluateWithNorms(theta, InBlocks(theta, batch), gradient, energy, squared_norms);
  }

  void Losses(const ThetaArena& theta, const BatchRows& batch, double* losses) override {
    whole_->Losses(theta, InBlocks(theta, batch), losses);
  }

  void LogPrior(const ThetaArena& theta, const double* prior_precisions, double* log_prior) override {
    whole_->LogPrior(theta, prior_precisions, log_prior);
  }

  // Fisher information depends on inputs only, and those of all blocks are the same.
  bool AddCurvature(const ThetaArena& theta, const CurvatureSlice* slices) override {
    return whole_->AddCurvature(theta, slices);
  }

 private:
  BatchRows InBlocks(const ThetaArena& theta, BatchRows batch) {
    CHAINFLEET_CHECK(std::ssize(*blocks_) == theta.rows()) << "blocks of " << blocks_->size() << " rows";
    ids_.resize(theta.rows() * batch.size);
    for (int64_t r = 0; r < theta.rows(); ++r) {
      int64_t* const ids = ids_.data() + r * batch.size;
      if (const BatchDraw* draw = batch.draw; draw != nullptr) {
        const auto kind = draw->reshuffles ? Minibatches::kReshuffle : Minibatches::kIndependent;
        const auto [key, step] = batch.keys[r];
        MinibatchPlan(kind, draw->num_examples, draw->batch_size).Fill(key, static_cast<int64_t>(step), ids);
      } else {
        std::copy_n(batch.row(r), batch.size, ids);
      }
      for (int64_t i = 0; i < batch.size; ++i) ids[i] += num_examples() * (*blocks_)[static_cast<size_t>(r)];
    }
    batch.ids = ids_.data();
    batch.draw = nullptr;
    return batch;
  }

  const std::unique_ptr<Potential> whole_;
  const std::shared_ptr<const std::vector<int32_t>> blocks_;
  std::vector<int64_t> ids_;  // [C, n]
};

}  // namespace

std::unique_ptr<Potential> WithBlocks(std::unique_ptr<Potential> whole,
                                      std::shared_ptr<const std::vector<int32_t>> blocks) {
  return std::make_unique<BlockPotential>(std::move(whole), std::move(blocks));
}

}  // namespace chainfleet

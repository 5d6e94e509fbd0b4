// Tests that a row of blocks is a row of a data set with its targets. Chains are tested in simulated_data_test.cc.
#include "worker/numerics/potentials/chain_blocks.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "tests/support/network_fixture.h"
#include "worker/numerics/potentials/minibatch.h"

namespace chainfleet {
namespace {

constexpr int64_t kRows = 40, kBatch = 8;

TargetValues Rotated(const ResidentDataset& data, int32_t by) {
  auto labels = std::get<std::vector<int32_t>>(data.targets());
  for (int32_t& label : labels) label = (label + by) % 4;
  return labels;
}

class ChainBlocks : public ::testing::Test {
 protected:
  ChainBlocks() {
    std::vector<int32_t> all;
    for (int32_t block = 0; block < 3; ++block) {
      const auto labels = std::get<std::vector<int32_t>>(Rotated(*data_, block));
      all.insert(all.end(), labels.begin(), labels.end());
    }
    blocks_ = WithBlocks(MakeNetwork("mlp", ResidentDataset::WithTargets(*data_, all)), at_);
    plain_ = MakeNetwork("mlp", ResidentDataset::WithTargets(*data_, Rotated(*data_, 2)));
  }

  const std::shared_ptr<const ResidentDataset> data_ = SyntheticImages(kRows, {1, 6, 6}, 4);
  const std::shared_ptr<std::vector<int32_t>> at_ = std::make_shared<std::vector<int32_t>>(std::vector<int32_t>{0, 2});
  std::unique_ptr<Potential> blocks_, plain_;
};

TEST_F(ChainBlocks, GradientsNormsAndLossesAreThoseOfTheRowsBlock) {
  const ThetaArena theta = RandomTheta(plain_->layout(), 2);
  const std::vector<int64_t> ids = SomeIds(2, kBatch, kRows);
  std::vector<std::vector<double>> numbers;
  std::vector<std::vector<float>> gradients;
  for (Potential* potential : {blocks_.get(), plain_.get()}) {
    ThetaArena gradient(plain_->layout(), Device());
    gradient.AddRow(), gradient.AddRow();
    std::vector<double> energy(2), norms(2 * kBatch), losses(2 * kBatch);
    ASSERT_TRUE(potential->EvaluateWithNorms(theta, {ids.data(), kBatch}, &gradient, energy.data(), norms.data()));
    potential->Losses(theta, {ids.data(), kBatch}, losses.data());
    gradients.push_back(gradient.ReadRow(1));
    norms.erase(norms.begin(), norms.begin() + kBatch);
    norms.insert(norms.end(), losses.begin() + kBatch, losses.end());
    norms.push_back(energy[1]);
    numbers.push_back(norms);
  }
  EXPECT_EQ(numbers[0], numbers[1]);
  EXPECT_EQ(gradients[0], gradients[1]);
  EXPECT_EQ(blocks_->num_examples(), kRows);
  EXPECT_EQ(blocks_->PriorPrecisions(), plain_->PriorPrecisions());
}

// On a GPU a batch names its keys in place of ids.
TEST_F(ChainBlocks, BatchesThatAKeyDrawsAreThoseOfTheirPlan) {
  const ThetaArena theta = RandomTheta(plain_->layout(), 2);
  for (const Minibatches kind : {Minibatches::kReshuffle, Minibatches::kIndependent}) {
    const MinibatchPlan batches(kind, kRows, kBatch);
    const StepKey keys[] = {{RngKey{3}, 7}, {RngKey{4}, 9}};
    std::vector<int64_t> ids(2 * kBatch);
    for (int64_t r = 0; r < 2; ++r) batches.Fill(keys[r].key, static_cast<int64_t>(keys[r].step), &ids[r * kBatch]);
    std::vector<double> drawn(2 * kBatch), named(2 * kBatch);
    blocks_->Losses(theta, {.size = kBatch, .keys = keys, .draw = &batches.draw()}, drawn.data());
    blocks_->Losses(theta, {.ids = ids.data(), .size = kBatch}, named.data());
    EXPECT_EQ(drawn, named);
  }
}

}  // namespace
}  // namespace chainfleet

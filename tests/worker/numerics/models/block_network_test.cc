// Outputs of blocks of images beside the network in double, on both of its paths.
#include "worker/numerics/models/block_network.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/network_fixture.h"
#include "worker/numerics/kernels/lanes.h"
#include "worker/numerics/models/eager_network.h"
#include "worker/numerics/models/single_threaded.h"
#include "worker/numerics/tensor_view.h"

namespace chainfleet {
namespace {

constexpr int64_t kClasses = 10;

class BlockNetworkTest : public ::testing::TestWithParam<const char*> {  // mlp and lenet5 are fused, cnn5 is not
 protected:
  const std::shared_ptr<const ResidentDataset> data_ = SyntheticImages(80);
  const Dataset& description_ = data_->description();
  const NetworkShape network_ = *InferNetwork({BuiltinModel{GetParam(), {}}}, description_.input_shape, kClasses);
  const std::unique_ptr<Potential> potential_ = MakeNetwork(GetParam(), data_);
  const ThetaArena theta_ = RandomTheta(potential_->layout(), 1);
  const std::vector<float> draw_ = theta_.ReadRow(0);
  const InputRows rows_{description_.input_type, data_->input_bytes().data(), description_.input_shape,
                        description_.normalisation};

  // [count, K]
  std::vector<float> Outputs(int64_t first, int64_t count) const {
    const auto block = MakeBlockNetwork(network_);
    std::vector<float> outputs;
    RunSingleThreaded(1, [&](int64_t) {
      block->Read(rows_, first, count);
      const float* lanes = block->Outputs(draw_.data());
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t k = 0; k < kClasses; ++k) {
          outputs.push_back(lanes[(i / kLanes * kClasses + k) * kLanes + i % kLanes]);
        }
      }
    });
    return outputs;
  }
};

TEST_P(BlockNetworkTest, AgreesWithTheNetworkInDouble) {
  constexpr int64_t kFirst = 3, kCount = kMaxBlockRows;
  std::vector<double> x;
  std::vector<float> row(rows_.row_size());
  for (int64_t i = kFirst; i < kFirst + kCount; ++i) {
    rows_.Read(i, row.data());
    x.insert(x.end(), row.begin(), row.end());
  }
  std::vector<int64_t> shape = {1, kCount};
  shape.insert(shape.end(), description_.input_shape.begin(), description_.input_shape.end());
  std::vector<at::Tensor> parameters;
  for (size_t k = 0; k < theta_.layout().spans().size(); ++k) {
    parameters.push_back(ParameterView(theta_, k).to(at::kDouble));
  }
  const at::Tensor expected = EagerLogits(network_, parameters, at::tensor(x, at::kDouble).view(shape)).contiguous();
  const std::vector<float> outputs = Outputs(kFirst, kCount);
  ASSERT_EQ(expected.numel(), static_cast<int64_t>(outputs.size()));
  for (int64_t i = 0; i < expected.numel(); ++i) {
    EXPECT_NEAR(outputs[i], expected.const_data_ptr<double>()[i], 1e-4);
  }
}

TEST_P(BlockNetworkTest, GivesAnImageTheSameNumbersInEveryBlock) {
  const std::vector<float> all = Outputs(0, kMaxBlockRows);
  for (const int64_t image : {0, 17, 63}) {
    const int64_t at = std::min<int64_t>(image, 5);
    const std::vector<float> alone = Outputs(image, 1), last = Outputs(image - at, at + 1);
    for (int64_t k = 0; k < kClasses; ++k) {
      EXPECT_EQ(alone[k], all[image * kClasses + k]);
      EXPECT_EQ(last[at * kClasses + k], all[image * kClasses + k]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, BlockNetworkTest, ::testing::Values("mlp", "lenet5", "cnn5"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace chainfleet

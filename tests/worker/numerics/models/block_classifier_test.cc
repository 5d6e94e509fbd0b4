// Probabilities of blocks of images beside the network in double, on both of its paths.
#include "worker/numerics/models/block_classifier.h"

#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/network_fixture.h"
#include "worker/numerics/models/eager_network.h"
#include "worker/numerics/models/single_threaded.h"
#include "worker/numerics/tensor_view.h"

namespace chainfleet {
namespace {

class BlockClassifierTest : public ::testing::TestWithParam<const char*> {  // mlp and lenet5 are fused, cnn5 is not
 protected:
  const std::shared_ptr<const ResidentDataset> data_ = SyntheticImages(80);
  const Dataset& description_ = data_->description();
  const NetworkShape network_ =
      *InferNetwork({BuiltinModel{GetParam(), {}}}, description_.input_shape, description_.num_classes);
  const std::unique_ptr<Potential> potential_ = MakeNetwork(GetParam(), data_);
  const ThetaArena theta_ = RandomTheta(potential_->layout(), 1);
  const std::vector<float> draw_ = theta_.ReadRow(0);
  const InputRows rows_{description_.input_type, data_->input_bytes().data(), description_.input_shape,
                        description_.normalisation};

  BlockScores Classify(int64_t first, int64_t count) const {
    const auto classifier = MakeBlockClassifier(network_);
    BlockScores scores;
    RunSingleThreaded(1, [&](int64_t) {
      classifier->Read(rows_, first, count);
      scores = classifier->Classify(draw_.data());
    });
    return scores;
  }
};

TEST_P(BlockClassifierTest, AgreesWithTheNetworkInDouble) {
  constexpr int64_t kFirst = 3, kCount = kMaxBlockImages;
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
  const at::Tensor expected =
      at::log_softmax(EagerLogits(network_, parameters, at::tensor(x, at::kDouble).view(shape)), -1).contiguous();
  const BlockScores scores = Classify(kFirst, kCount);
  const double* log_p = expected.const_data_ptr<double>();
  for (int64_t i = 0; i < expected.numel(); ++i) {
    EXPECT_NEAR(std::log(scores.probability[i]), log_p[i], 1e-4);
    EXPECT_NEAR(scores.logit[i] - scores.log_normaliser[i / description_.num_classes], log_p[i], 1e-4);
  }
}

TEST_P(BlockClassifierTest, GivesAnImageTheSameNumbersInEveryBlock) {
  const BlockScores all = Classify(0, kMaxBlockImages);
  const int64_t classes = description_.num_classes;
  for (const int64_t image : {0, 17, 63}) {
    const BlockScores alone = Classify(image, 1),
                      last = Classify(std::max<int64_t>(0, image - 5), std::min<int64_t>(image, 5) + 1);
    const int64_t at = std::min<int64_t>(image, 5);
    EXPECT_EQ(alone.log_normaliser[0], all.log_normaliser[image]);
    EXPECT_EQ(last.log_normaliser[at], all.log_normaliser[image]);
    for (int64_t k = 0; k < classes; ++k) {
      EXPECT_EQ(alone.probability[k], all.probability[image * classes + k]);
      EXPECT_EQ(last.probability[at * classes + k], all.probability[image * classes + k]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, BlockClassifierTest, ::testing::Values("mlp", "lenet5", "cnn5"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace chainfleet

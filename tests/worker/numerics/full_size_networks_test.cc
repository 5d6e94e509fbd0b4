// Every built-in network at full size: a chain of it starts. None steps; tests/parity does so at width 1/8.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/synthetic_dataset.h"
#include "worker/numerics/chain_batch.h"

namespace chainfleet {
namespace {

class FullSizeNetwork : public ::testing::TestWithParam<const char*> {};

TEST_P(FullSizeNetwork, IsBuiltAndItsChainStarts) {
  const auto data = SyntheticImages(8, {3, 32, 32});
  const auto plan = std::make_shared<JobPlan>();
  plan->job = "full-aaaaaa";
  plan->spec.name = "full";
  plan->spec.model.kind = BuiltinModel{GetParam(), {}};
  plan->spec.dataset = data->description().name;
  plan->spec.sampler.kind = SgdSpec{};
  plan->spec.schedule = {StepScale::kStepSize, ConstantSchedule{1e-6}};
  plan->spec.batch_size = 4;
  plan->spec.num_steps = 10;
  plan->spec.augmentation = {.crop_padding = 4, .flip = true};
  plan->dataset = data->description();
  plan->normalisation = data->description().normalisation;
  const auto batch = ChainBatch::Create(plan, data, "cpu");
  ASSERT_TRUE(batch.ok()) << batch.status();
  ASSERT_TRUE((*batch)->AddChain(0, std::nullopt).ok());
  const auto shape = InferNetwork(plan->spec.model, {3, 32, 32}, 10);
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_EQ((*batch)->parameters().size(), shape->parameters.size() + shape->statistics.size());
  EXPECT_GT((*batch)->SaveResumePoint(0).size(), 4u * static_cast<size_t>(NumParameters(shape->parameters)));
}

INSTANTIATE_TEST_SUITE_P(BuiltIn, FullSizeNetwork,
                         ::testing::Values("softmax_regression", "mlp", "lenet5", "cnn5", "resnet18", "resnet20-frn",
                                           "resnet50", "preresnet164", "wideresnet28x10", "vgg16", "vgg16-bn",
                                           "densenet161"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace chainfleet

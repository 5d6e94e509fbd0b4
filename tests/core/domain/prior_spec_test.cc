#include "core/domain/prior_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Paths(const PriorKind& kind) {
  std::vector<std::string> paths;
  for (const FieldViolation& violation : Validate(PriorSpec{kind})) paths.push_back(violation.path);
  return paths;
}

TEST(PriorSpec, NamesEveryFieldOutOfBounds) {
  EXPECT_THAT(Paths(GaussianPrior{0}), IsEmpty());
  EXPECT_THAT(Paths(GaussianPrior{-1, {{"fc1", -1}, {"fc2", 2}}}),
              ElementsAre("prior.gaussian.precision", "prior.gaussian.layers.fc1"));
  EXPECT_THAT(Paths(LaplacePrior{0}), ElementsAre("prior.laplace.scale"));
  EXPECT_THAT(Paths(StudentTPrior{0, std::numeric_limits<double>::infinity()}),
              ElementsAre("prior.student_t.degrees_of_freedom", "prior.student_t.scale"));
}

TEST(PriorSpec, SharesAPrecisionOnlyIfNoLayerHasItsOwn) {
  EXPECT_EQ(PriorSpec{GaussianPrior{25}}.precision(), 25);
  EXPECT_EQ((PriorSpec{GaussianPrior{25, {{"fc1", 1}}}}).precision(), 0);
  EXPECT_EQ(PriorSpec{LaplacePrior{}}.precision(), 0);
}

TEST(PriorSpec, IsFlatUnlessTheJobSaysOtherwise) {
  EXPECT_TRUE(PriorSpec().is_flat());
  EXPECT_FALSE(PriorSpec{GaussianPrior{25}}.is_flat());
  EXPECT_FALSE((PriorSpec{GaussianPrior{0, {{"fc1", 1}}}}).is_flat());
  EXPECT_FALSE(PriorSpec{LaplacePrior{}}.is_flat());
}

TEST(PriorSpec, RefusesALayerTheModelLacksAndListsThoseItHas) {
  const std::vector<ParameterShape> parameters = {
      {"conv1.weight", {6, 1, 5, 5}, 0, 25}, {"conv1.bias", {6}, 150, 25}, {"fc1.weight", {2, 6}, 156, 6}};
  EXPECT_THAT(ValidateForLayers({GaussianPrior{1, {{"conv1", 2}, {"fc1", 3}}}}, parameters), IsEmpty());
  const std::vector<FieldViolation> wrong = ValidateForLayers({GaussianPrior{1, {{"fc9", 2}}}}, parameters);
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_EQ(wrong[0].path, "prior.gaussian.layers.fc9");
  EXPECT_THAT(wrong[0].message, HasSubstr("it has conv1, fc1"));
  EXPECT_THAT(ValidateForLayers({LaplacePrior{}}, parameters), IsEmpty());
}

TEST(LayerOf, IsThePathBeforeTheLastDot) {
  EXPECT_EQ(LayerOf("block1.conv1.weight"), "block1.conv1");
  EXPECT_EQ(LayerOf("theta"), "theta");
}

TEST(PriorSpec, UnknownLayersCostNoMoreThanTheyAndTheModelHave) {
  std::vector<ParameterShape> parameters;
  for (int i = 0; i < 4096; ++i) parameters.push_back({std::string(200, 'a') + std::to_string(i) + ".weight", {1}});
  GaussianPrior prior;
  for (int i = 0; i < 5000; ++i) prior.layers["no" + std::to_string(i)] = 1;
  const absl::Status refused = InvalidFields(ValidateForLayers(PriorSpec{prior}, parameters));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("the model has no such layer; it has aaa"));
  EXPECT_LT(refused.message().size(), size_t{1} << 20);
}

}  // namespace
}  // namespace chainfleet

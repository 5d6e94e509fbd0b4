#include "core/domain/model_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelSpec Builtin(const std::string& name, std::vector<int64_t> hidden = {}) {
  return {BuiltinModel{name, std::move(hidden)}};
}

TEST(ModelSpec, Lenet5HasItsPublishedNumberOfParameters) {
  const auto parameters = InferParameters(Builtin("lenet5"), {1, 28, 28}, 10);
  ASSERT_TRUE(parameters.ok()) << parameters.status();
  EXPECT_EQ(NumParameters(*parameters), 61706);
  EXPECT_EQ((*parameters)[0].name, "conv1.weight");
  EXPECT_EQ((*parameters)[0].fan_in, 25);
  EXPECT_THAT((*parameters)[4].shape, ElementsAre(120, 400));
}

TEST(ModelSpec, OffsetsAreGapless) {
  const auto parameters = InferParameters(Builtin("mlp", {5, 4}), {1, 2, 3}, 3);
  ASSERT_TRUE(parameters.ok());
  int64_t offset = 0;
  for (const ParameterShape& p : *parameters) {
    EXPECT_EQ(p.offset, offset) << p.name;
    int64_t size = 1;
    for (const int64_t s : p.shape) size *= s;
    offset += size;
  }
  EXPECT_EQ(offset, 6 * 5 + 5 + 5 * 4 + 4 + 4 * 3 + 3);
}

TEST(ModelSpec, MlpDefaultsToTwoLayersOfTwoHundred) {
  EXPECT_EQ(NumParameters(*InferParameters(Builtin("mlp"), {1, 28, 28}, 10)),
            784 * 200 + 200 + 200 * 200 + 200 + 2000 + 10);
}

TEST(ModelSpec, SoftmaxRegressionAndGaussian) {
  EXPECT_EQ(NumParameters(*InferParameters(Builtin("softmax_regression"), {784}, 10)), 7850);
  EXPECT_EQ(NumParameters(*InferParameters({GaussianPotential{.dimension = 7}}, {}, 0)), 7);
}

TEST(ModelSpec, RefusesShapesThatDoNotFit) {
  const absl::Status small = InferParameters(Builtin("lenet5"), {1, 8, 8}, 10).status();
  EXPECT_EQ(small.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldViolationsOf(small)[0].path, "model.builtin");
  EXPECT_THAT(std::string(small.message()), HasSubstr("[1, 8, 8]"));
  EXPECT_FALSE(InferParameters(Builtin("lenet5"), {784}, 10).ok());
  EXPECT_FALSE(InferParameters(Builtin("mlp"), {784}, 1).ok()) << "one class";
}

TEST(ModelSpec, AnUnknownModelIsToldTheKnownOnes) {
  const auto violations = Validate(Builtin("lenet6"));
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].path, "model.builtin");
  EXPECT_THAT(violations[0].message, HasSubstr("softmax_regression, linear, mlp, lenet5, cnn5"));
  EXPECT_EQ(Validate(Builtin("lenet5", {10}))[0].path, "model.hidden");
  EXPECT_EQ(Validate(Builtin("mlp", {10, 0}))[0].path, "model.hidden[1]");
}

}  // namespace
}  // namespace chainfleet

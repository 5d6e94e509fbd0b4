#include "server/predict/draw_selection.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr DrawKind kTheta = DrawKind::kTheta, kThetaA = DrawKind::kThetaA;

PinnedDraws DrawsOf(std::vector<DrawKind> kinds, const std::vector<int64_t>& draws_of_chain = {2, 3}) {
  auto plan = std::make_shared<PredictPlan>();
  plan->job = "job-aaaaaa";
  plan->model.kind = BuiltinModel{"softmax_regression", {}};
  plan->input_shape = {2, 3};
  plan->num_classes = 4;
  PinnedDraws draws{.plan = plan, .version = 7, .draws_in_version = 0, .chains = {}, .kinds = std::move(kinds)};
  for (const int64_t count : draws_of_chain) draws.chains.push_back({.num_draws = count});
  return draws;
}

InputTensor Floats(std::vector<int64_t> shape, const std::vector<float>& values) {
  return {InputType::kFloat32, std::move(shape),
          std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float))};
}

TEST(ChooseKinds, GivesAllTheJobKeepsUnlessAsked) {
  EXPECT_THAT(*ChooseKinds(DrawsOf({kTheta, kThetaA}), {}), ElementsAre(kTheta, kThetaA));
  EXPECT_THAT(*ChooseKinds(DrawsOf({kTheta, kThetaA}), {kThetaA}), ElementsAre(kThetaA));
}

TEST(ChooseKinds, SortsWhatIsAskedAndTakesItOnce) {
  EXPECT_THAT(*ChooseKinds(DrawsOf({kTheta, kThetaA}), {kThetaA, kTheta, kThetaA}), ElementsAre(kTheta, kThetaA));
}

TEST(ChooseKinds, NamesAKindTheJobDoesNotKeepAndThoseItDoes) {
  const absl::Status status = ChooseKinds(DrawsOf({kTheta}), {kTheta, kThetaA}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("keeps no theta_a"), HasSubstr("its kinds are theta")));
}

TEST(ChooseKinds, RefusesAJobThatPredictsNothing) {
  PinnedDraws draws = DrawsOf({kTheta});
  auto plan = std::make_shared<PredictPlan>(*draws.plan);
  plan->model.kind = GaussianPotential{};
  draws.plan = plan;
  EXPECT_TRUE(absl::IsInvalidArgument(ChooseKinds(draws, {}).status()));
}

TEST(CheckInputs, TakesRowsOfTheJobsShapeInEitherType) {
  const PinnedDraws draws = DrawsOf({kTheta});
  EXPECT_TRUE(CheckInputs(Floats({1, 2, 3}, std::vector<float>(6)), *draws.plan).ok());
  EXPECT_TRUE(CheckInputs({InputType::kUint8, {2, 2, 3}, std::string(12, '\xff')}, *draws.plan).ok());
}

TEST(CheckInputs, RefusesEveryOtherShapeWithBoth) {
  const PinnedDraws draws = DrawsOf({kTheta});
  const std::vector<std::vector<int64_t>> shapes = {{}, {0, 2, 3}, {-1, 2, 3}, {2, 3}, {1, 3, 2}, {1, 2, 3, 1}, {6}};
  for (const std::vector<int64_t>& shape : shapes) {
    const absl::Status status = CheckInputs(Floats(shape, std::vector<float>(6)), *draws.plan);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << ::testing::PrintToString(shape);
    EXPECT_THAT(std::string(status.message()), HasSubstr("takes [n, 2, 3]"));
  }
}

TEST(CheckInputs, RefusesBytesThatAreNotThoseOfTheShape) {
  const PinnedDraws draws = DrawsOf({kTheta});
  for (const size_t count : {0, 5, 7, 12}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckInputs(Floats({1, 2, 3}, std::vector<float>(count)), *draws.plan)))
        << count;
  }
  // 24 (2^61 + 1) bytes are 24 modulo 2^64.
  EXPECT_TRUE(
      absl::IsInvalidArgument(CheckInputs(Floats({(int64_t{1} << 61) + 1, 2, 3}, std::vector<float>(6)), *draws.plan)));
}

TEST(CheckInputs, NamesTheRowThatIsNotFinite) {
  const PinnedDraws draws = DrawsOf({kTheta});
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    std::vector<float> values(18);
    values[12] = bad;  // the first of row 2
    const absl::Status status = CheckInputs(Floats({3, 2, 3}, values), *draws.plan);
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("row 2 "));
  }
}

TEST(CheckDataset, TakesTheJobsShapeWithRowsAlone) {
  const PinnedDraws draws = DrawsOf({kTheta});
  Dataset dataset;
  dataset.name = "digits";
  dataset.input_shape = {2, 3};
  dataset.num_rows = 1;
  EXPECT_TRUE(CheckDataset(dataset, *draws.plan).ok());
  dataset.num_rows = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(CheckDataset(dataset, *draws.plan)));
  dataset.num_rows = 1;
  dataset.input_shape = {3, 2};
  const absl::Status status = CheckDataset(dataset, *draws.plan);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("digits"), HasSubstr("[3, 2]"), HasSubstr("[2, 3]")));
}

TEST(CheckEnough, NeedsWhatIsAskedAndAtLeastOne) {
  const PinnedDraws draws = DrawsOf({kTheta});
  EXPECT_TRUE(CheckEnough(draws, 3, 3).ok());
  EXPECT_TRUE(CheckEnough(draws, 1, 0).ok());
  for (const auto& [readable, needed] : {std::pair{2, 3}, {0, 0}}) {
    const absl::Status status = CheckEnough(draws, readable, needed);
    EXPECT_TRUE(absl::IsFailedPrecondition(status));
    EXPECT_EQ(ReasonOf(status), "TOO_FEW_DRAWS");
  }
}

TEST(NumDraws, AddsUpTheChains) {
  EXPECT_EQ(NumDraws(DrawsOf({kTheta, kThetaA}, {2, 0, 3})), 5);
  EXPECT_EQ(NumDraws(DrawsOf({kTheta}, {})), 0);
}

}  // namespace
}  // namespace chainfleet

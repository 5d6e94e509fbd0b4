#include "server/predict/serving/draw_selection.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
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
  plan->targets = Classes{4};
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

// "The scale belongs to the data set: convert rightly or refuse."
TEST(CheckScale, TakesWhatTheJobLearnsFromAndRefusesTheOtherScale) {
  const InputTensor bytes{InputType::kUint8, {1, 2}, std::string("\0\xff", 2)};
  EXPECT_TRUE(CheckScale(bytes, InputType::kUint8, "job-a").ok());
  EXPECT_TRUE(CheckScale(Floats({1, 2}, {-0.5F, 1.5F}), InputType::kUint8, "job-a").ok());
  EXPECT_TRUE(CheckScale(Floats({1, 2}, {-300, 255}), InputType::kFloat32, "job-a").ok());
  const absl::Status unscaled = CheckScale(Floats({2, 1}, {0, 255}), InputType::kUint8, "job-a");
  EXPECT_TRUE(absl::IsInvalidArgument(unscaled));
  EXPECT_THAT(std::string(unscaled.message()), AllOf(HasSubstr("job-a"), HasSubstr("divide by 255")));
  const absl::Status scaled = CheckScale(bytes, InputType::kFloat32, "job-a");
  EXPECT_TRUE(absl::IsInvalidArgument(scaled));
  EXPECT_THAT(std::string(scaled.message()), AllOf(HasSubstr("job-a"), HasSubstr("give float32")));
}

TEST(CheckDataset, RefusesAnotherScale) {
  PinnedDraws draws = DrawsOf({kTheta});
  Dataset dataset{.name = "digits", .input_type = InputType::kFloat32, .input_shape = {2, 3}, .num_rows = 1};
  dataset.normalisation = {{0.5}, {0.25}};
  EXPECT_TRUE(CheckDataset(dataset, draws).ok()) << "float32 from 0 to 1";
  dataset.normalisation = {{1.5}, {14}};
  EXPECT_FALSE(CheckDataset(dataset, draws).ok()) << "dark images from 0 to 255";
  dataset.normalisation.mean = {72.9};
  EXPECT_THAT(std::string(CheckDataset(dataset, draws).message()), AllOf(HasSubstr("digits"), HasSubstr("255")));
  draws.learned = InputType::kFloat32;
  EXPECT_TRUE(CheckDataset(dataset, draws).ok());
  dataset.input_type = InputType::kUint8;
  EXPECT_TRUE(absl::IsInvalidArgument(CheckDataset(dataset, draws)));
}

TEST(CheckDataset, TakesTheJobsShapeWithRowsAlone) {
  const PinnedDraws draws = DrawsOf({kTheta});
  Dataset dataset;
  dataset.name = "digits";
  dataset.input_shape = {2, 3};
  dataset.num_rows = 1;
  EXPECT_TRUE(CheckDataset(dataset, draws).ok());
  dataset.num_rows = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(CheckDataset(dataset, draws)));
  dataset.num_rows = 1;
  dataset.input_shape = {3, 2};
  const absl::Status status = CheckDataset(dataset, draws);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("digits"), HasSubstr("[3, 2]"), HasSubstr("[2, 3]")));
}

TEST(CheckShares, NeedsDrawsOfEachChainWithAWeight) {
  PinnedDraws draws = DrawsOf({kTheta});
  draws.chains[1].chain.index = 4;
  EXPECT_TRUE(CheckShares(draws, {}).ok());
  EXPECT_TRUE(CheckShares(draws, {{0, 0.5}, {4, 0.5}}).ok());
  const absl::Status status = CheckShares(draws, {{0, 0.5}, {1, 0.5}});
  EXPECT_EQ(ReasonOf(status), "TOO_FEW_DRAWS");
  EXPECT_THAT(std::string(status.message()), HasSubstr("chain 1 of job job-aaaaaa has weight 0.5"));
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

// Chains in segments of two draws, the last of one if there is an odd one.
std::vector<ChainDraws> Chains(const std::vector<int64_t>& draws_of_chain) {
  std::vector<ChainDraws> chains;
  for (const int64_t count : draws_of_chain) {
    ChainDraws& chain = chains.emplace_back(ChainDraws{.chain = {"job", static_cast<int32_t>(chains.size())}});
    chain.num_draws = count;
    for (int64_t first = 0; first < count; first += 2) {
      Segment& segment = chain.segments.emplace_back();
      segment.first_index = first;
      segment.steps.resize(static_cast<size_t>(std::min<int64_t>(2, count - first)), 1);
      segment.weights.resize(segment.steps.size(), 1);
    }
  }
  return chains;
}

// Returns the indices that a worker averages, by chain.
std::map<int32_t, std::vector<int64_t>> Indices(const std::vector<ChainDraws>& chains) {
  std::map<int32_t, std::vector<int64_t>> indices;
  for (const ChainDraws& chain : chains) {
    int64_t position = 0;
    for (const Segment& segment : chain.segments) {
      for (int64_t i = 0; i < segment.num_draws(); ++i, ++position) {
        const int64_t newer = chain.skip_draws + chain.num_draws - 1 - position;
        if (position < chain.skip_draws || newer < 0 || newer % std::max<int64_t>(chain.every, 1) != 0) continue;
        indices[chain.chain.index].push_back(segment.first_index + i);
      }
    }
    EXPECT_EQ(static_cast<int64_t>(indices[chain.chain.index].size()), NumDraws(chain));
  }
  return indices;
}

std::vector<ChainDraws> Select(const DrawQuery& query, const std::vector<ChainDraws>& chains) {
  std::vector<const ChainDraws*> readable;
  for (const ChainDraws& chain : chains) readable.push_back(&chain);
  return SelectDraws(query, readable);
}

std::map<int32_t, std::vector<int64_t>> Selected(const DrawQuery& query, const std::vector<int64_t>& draws_of_chain) {
  return Indices(Select(query, Chains(draws_of_chain)));
}

using Selection = std::map<int32_t, std::vector<int64_t>>;

TEST(SelectDraws, TakesAllUnlessAsked) {
  EXPECT_EQ(Selected({}, {3, 2}), (Selection{{0, {0, 1, 2}}, {1, {0, 1}}}));
  EXPECT_EQ(Selected({.every = 1}, {3}), (Selection{{0, {0, 1, 2}}}));
}

TEST(SelectDraws, TakesTheNewestOfEachChain) {
  EXPECT_EQ(Selected({.members = 2}, {5, 1, 2}), (Selection{{0, {3, 4}}, {1, {0}}, {2, {0, 1}}}));
}

TEST(SelectDraws, CountsEveryKthBackFromTheNewest) {
  EXPECT_EQ(Selected({.every = 3}, {8, 7, 1}), (Selection{{0, {1, 4, 7}}, {1, {0, 3, 6}}, {2, {0}}}));
  EXPECT_EQ(Selected({.members = 5, .every = 3}, {8}), (Selection{{0, {4, 7}}}));
  EXPECT_EQ(Selected({.every = 100}, {8}), (Selection{{0, {7}}}));
}

TEST(SelectDraws, SharesABudgetOutEvenlyNewestFirst) {
  EXPECT_EQ(Selected({.max_draws = 6}, {9, 9, 9}), (Selection{{0, {7, 8}}, {1, {7, 8}}, {2, {7, 8}}}));
  EXPECT_EQ(Selected({.max_draws = 5}, {9, 9, 9}), (Selection{{0, {7, 8}}, {1, {7, 8}}, {2, {8}}}));
  EXPECT_EQ(Selected({.max_draws = 2}, {9, 9, 9}), (Selection{{0, {8}}, {1, {8}}}));
  EXPECT_EQ(Selected({.max_draws = 8}, {9, 1, 9}), (Selection{{0, {5, 6, 7, 8}}, {1, {0}}, {2, {6, 7, 8}}}));
  EXPECT_EQ(Selected({.max_draws = 100}, {2, 1}), (Selection{{0, {0, 1}}, {1, {0}}}));
  EXPECT_EQ(Selected({.every = 3, .max_draws = 3}, {8, 8}), (Selection{{0, {4, 7}}, {1, {7}}}));
}

// Tests every extreme value of every number of a query; the expected result uses arithmetic that cannot overflow.
TEST(SelectDraws, KeepsItsWordForExtremeNumbers) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();
  const std::vector<int64_t> extremes = {kLeast,    kLeast + 1,    -1,        0,         1,    2, 8,
                                         kMost / 2, kMost / 2 + 1, kMost - 8, kMost - 1, kMost};
  const std::vector<int64_t> draws_of_chain = {9, 1, 4};
  for (const int64_t members : extremes) {
    for (const int64_t every : extremes) {
      for (const int64_t max_draws : extremes) {
        const std::vector<ChainDraws> chains =
            Select({.members = members, .every = every, .max_draws = max_draws}, Chains(draws_of_chain));
        __int128 available = 0;
        for (const int64_t count : draws_of_chain) {
          const __int128 newest = members > 0 ? std::min<__int128>(members, count) : count;
          const __int128 step = std::max<__int128>(every, 1);
          available += (newest + step - 1) / step;
        }
        const auto wanted = static_cast<int64_t>(max_draws > 0 ? std::min<__int128>(max_draws, available) : available);
        EXPECT_EQ(NumDraws(chains), wanted) << members << " " << every << " " << max_draws;
        int64_t covered = 0, longest = 0;
        for (const ChainDraws& chain : chains) longest = std::max(longest, NumDraws(chain));
        for (auto& [chain, indices] : Indices(chains)) {
          EXPECT_EQ(indices.back(), draws_of_chain[static_cast<size_t>(chain)] - 1) << "the newest is always there";
        }
        for (int64_t first = 0; first < longest; ++first) covered += NumDraws(DrawsOfWave(chains, first, 1));
        EXPECT_EQ(covered, wanted) << members << " " << every << " " << max_draws;
      }
    }
  }
}

TEST(NumDraws, IsOneForAHugeStep) {
  for (const int64_t every : {int64_t{3}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(NumDraws(ChainDraws{.num_draws = 3, .every = every}), 1);
    EXPECT_EQ(NumDraws(ChainDraws{.num_draws = 0, .every = every}), 0);
  }
}

TEST(SelectDraws, DropsTheSegmentsThatHoldNoneAtEitherEnd) {
  const std::vector<ChainDraws> chains = Select({.members = 3}, Chains({9}));
  ASSERT_EQ(chains.size(), 1u);
  EXPECT_EQ(chains[0].segments.size(), 2u);
  EXPECT_EQ(chains[0].segments[0].first_index, 6);
  EXPECT_EQ(chains[0].skip_draws, 0);
}

TEST(DrawsOfWave, CoverEachDrawOnceFromTheNewestBack) {
  for (const int64_t every : {1, 2, 3}) {
    const std::vector<ChainDraws> all = Select({.every = every}, Chains({9, 4, 1}));
    Selection covered;
    for (int64_t first = 0, count = 1; first < 9; first += count, count *= 2) {
      const std::vector<ChainDraws> wave = DrawsOfWave(all, first, count);
      for (auto& [chain, indices] : Indices(wave)) {
        EXPECT_LE(indices.size(), static_cast<size_t>(count));
        covered[chain].insert(covered[chain].begin(), indices.begin(), indices.end());
      }
    }
    EXPECT_EQ(covered, Indices(all)) << every;
  }
  EXPECT_EQ(Indices(DrawsOfWave(Chains({9, 4, 1}), 1, 2)), (Selection{{0, {6, 7}}, {1, {1, 2}}}));
  EXPECT_EQ(DrawsOfWave(Chains({9}), 1, 2)[0].segments.size(), 1u) << "draws 6 and 7 are one segment";
}

}  // namespace
}  // namespace chainfleet

#include "server/predict/sums/mixture_quantiles.h"

#include <cmath>
#include <optional>
#include <vector>

#include "core/base/rng_key.h"
#include "core/scores/mixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/predict/serving/chain_parts.h"
#include "server/predict/serving/predict_router.h"
#include "server/predict/sums/aggregator.h"
#include "server/predict/sums/batch_means.h"
#include "server/predict/sums/member_sums.h"
#include "tests/server/predict/fake_serving.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"

namespace chainfleet {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Doubles = std::vector<double>;

double Phi(double z) { return std::erfc(-z / std::sqrt(2)) / 2; }
double Density(double z) { return std::exp(-z * z / 2) / std::sqrt(2 * std::acos(-1)); }

// Draws of one chain and kind, oldest first, that say N(mean, variance) of the only row.
PartialPrediction Draws(int32_t chain, const Doubles& means, double variance = 1, double weight = 1,
                        DrawKind kind = DrawKind::kTheta) {
  std::vector<std::pair<int64_t, double>> draws;
  for (size_t i = 0; i < means.size(); ++i) draws.emplace_back(i, weight);
  const auto says = [&](const ChainId&, DrawKind, int64_t draw, int64_t) {
    return Doubles{means[static_cast<size_t>(draw)], variance};
  };
  PartialPrediction sum = testing::SumNumberDraws({"j", chain}, kind, draws, {0}, says);
  sum.members = testing::MembersOf({"j", chain}, kind, draws, {0}, 0, says);
  return sum;
}

// The parts of a chain of so many draws, as a worker would sum them; only their numbers of draws count here.
std::vector<PartialPrediction> PartsOfChain(const std::vector<int64_t>& lengths,
                                            const std::vector<DrawKind>& kinds = {DrawKind::kTheta}) {
  std::vector<PartialPrediction> parts;
  for (const int64_t length : lengths) {
    for (const DrawKind kind : kinds) parts.push_back(Draws(0, Doubles(static_cast<size_t>(length)), 1, 1, kind));
  }
  for (PartialPrediction& part : parts) part.members.reset();
  return parts;
}

struct Told {
  Doubles quantiles, errors;
};
Told Tell(const std::vector<PartialPrediction>& partials, const Doubles& levels,
          const std::vector<PartialPrediction>& parts = {}) {
  std::vector<const PartialPrediction*> pointers;
  for (const PartialPrediction& partial : partials) pointers.push_back(&partial);
  const Doubles quantiles = MixtureQuantiles(pointers, levels);
  return {quantiles, MixtureQuantileErrors(pointers, parts, levels, quantiles)};
}

// Standard error of the mean of independent values.
double ErrorOfMean(const Doubles& values) {
  const auto n = static_cast<double>(values.size());
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / n;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / (n * (n - 1)));
}

// N(-1, 1) and N(1, 1), median 0: half of P(|Z| < 1), by the density at 1.
TEST(QuantileErrors, AreAsByHandForTwoDraws) {
  const Told told = Tell({Draws(0, {-1}), Draws(1, {1})}, {0.5});
  EXPECT_NEAR(told.quantiles[0], 0, 1e-12);
  ASSERT_THAT(told.errors, SizeIs(1));
  EXPECT_NEAR(told.errors[0], 0.6826894921370859 / 2 / 0.24197072451914337, 1e-12);
}

TEST(QuantileErrors, EqualThoseOfTheMeanDistributionByTheDensityForIndependentDraws) {
  const Doubles means = {0.25, -1.25, 0.5, 2, 0.75}, levels = {1e-12, 0.05, 0.5, 0.9, 1 - 1e-12};
  std::vector<PartialPrediction> partials;
  for (size_t i = 0; i < means.size(); ++i) partials.push_back(Draws(static_cast<int32_t>(i), {means[i]}, 4));
  const Told told = Tell(partials, levels);
  ASSERT_THAT(told.errors, SizeIs(levels.size()));
  for (size_t q = 0; q < levels.size(); ++q) {
    Doubles below;
    double density = 0;
    for (const double mean : means) {
      const double z = (told.quantiles[q] - mean) / 2;
      below.push_back(levels[q] > 0.5 ? Phi(-z) : Phi(z));  // to all digits in both tails
      density += Density(z) / 2 / 5;
    }
    EXPECT_NEAR(told.errors[q] / (ErrorOfMean(below) / density), 1, 1e-9) << levels[q];
  }
}

// Draws that differ little shift the whole mixture: each quantile is as well known as the mean.
TEST(QuantileErrors, EqualThatOfTheMeanForDrawsThatDifferLittle) {
  std::vector<PartialPrediction> partials;
  for (int32_t chain = 0; chain < 6; ++chain) partials.push_back(Draws(chain, {1e-4 * chain * chain, -1e-4 * chain}));
  std::vector<const PartialPrediction*> pointers;
  for (const PartialPrediction& partial : partials) pointers.push_back(&partial);
  const double of_mean = Average(pointers, true).errors.numbers().mean[0];
  for (const double error : Tell(partials, {0.01, 0.05, 0.5, 0.95, 0.99}).errors) {
    EXPECT_NEAR(error / of_mean, 1, 0.005);
  }
  EXPECT_NEAR(Tell(partials, {0.5}).errors[0] / of_mean, 1, 1e-4);
}

TEST(QuantileErrors, AChainThatRepeatsItselfTellsNoMore) {
  const Doubles levels = {0.1, 0.5, 0.9};
  const Told once = Tell({Draws(0, {-1}), Draws(1, {1}), Draws(2, {0.5})}, levels);
  const Told often = Tell({Draws(0, Doubles(16, -1)), Draws(1, Doubles(16, 1)), Draws(2, Doubles(16, 0.5))}, levels);
  for (size_t q = 0; q < 3; ++q) EXPECT_NEAR(often.errors[q] / once.errors[q], 1, 1e-9);
}

TEST(QuantileErrors, BothKindsOfAStepAreOfOneChain) {
  std::vector<PartialPrediction> partials = {Draws(0, {-1}), Draws(1, {1}), Draws(2, {0.5})};
  const Told one_kind = Tell(partials, {0.3});
  for (int32_t chain = 0; chain < 3; ++chain) {
    partials.push_back(
        Draws(chain, {partials[static_cast<size_t>(chain)].members->numbers().mean[0]}, 1, 1, DrawKind::kThetaA));
  }
  const Told both = Tell(partials, {0.3});
  EXPECT_NEAR(both.errors[0] / one_kind.errors[0], 1, 1e-9) << "a second, equal kind tells nothing new";
}

// Blocks of one draw, and blocks of unequal length: sum_b (F_b - F)^2 n_b / (n - n_b) / B. Parts count from the newest
// draw, which is the last.
TEST(QuantileErrors, UseTheBlocksOfASingleChainFromTheNewestDrawOn) {
  const Doubles four = {0.5, -0.25, 1, 2};
  const Told told = Tell({Draws(0, four)}, {0.5}, PartsOfChain({1, 1, 1, 1}));
  Doubles below;
  double density = 0;
  for (const double mean : four) {
    below.push_back(Phi(told.quantiles[0] - mean));
    density += Density(told.quantiles[0] - mean) / 4;
  }
  ASSERT_THAT(told.errors, SizeIs(1));
  EXPECT_NEAR(told.errors[0], ErrorOfMean(below) / density, 1e-9);

  const Told unequal = Tell({Draws(0, {7, 0, 1, 0.5, 2})}, {0.5}, PartsOfChain({1, 1, 1, 2}));
  const double q = unequal.quantiles[0];
  const std::vector<Doubles> blocks = {{2}, {0.5}, {1}, {0, 7}};
  double mean = 0, variance = 0;
  density = 0;
  for (const double m : {7.0, 0.0, 1.0, 0.5, 2.0}) {
    mean += Phi(q - m) / 5;
    density += Density(q - m) / 5;
  }
  for (const Doubles& block : blocks) {
    const auto n = static_cast<double>(block.size());
    double of_block = 0;
    for (const double m : block) of_block += Phi(q - m) / n;
    variance += (of_block - mean) * (of_block - mean) * n / (5 - n) / 4;
  }
  ASSERT_THAT(unequal.errors, SizeIs(1));
  EXPECT_NEAR(unequal.errors[0], std::sqrt(variance) / density, 1e-9);
}

TEST(QuantileErrors, AreUnknownWhereThoseOfTheScoresAre) {
  EXPECT_THAT(Tell({}, {0.5}).errors, IsEmpty());
  EXPECT_THAT(Tell({Draws(0, {1})}, {0.5}).errors, IsEmpty());
  EXPECT_THAT(Tell({Draws(0, {1, 2, 3})}, {0.5}).errors, IsEmpty());
  EXPECT_THAT(Tell({Draws(0, {1, 2, 3})}, {0.5}, PartsOfChain({1, 1, 1})).errors, IsEmpty());
  const std::vector<DrawKind> kinds = {DrawKind::kTheta, DrawKind::kThetaA};
  std::vector<PartialPrediction> torn = PartsOfChain({1, 1, 1, 1}, kinds);
  torn.pop_back();
  const PartialPrediction other = Draws(0, {1, 2, 3}, 1, 1, DrawKind::kThetaA);
  EXPECT_THAT(Tell({Draws(0, {1, 2, 3, 4}), other}, {0.5}, torn).errors, IsEmpty());
  EXPECT_THAT(Tell({Draws(0, {1, 2})}, {0.5}, PartsOfChain({1, 1, 1, 1})).errors, IsEmpty()) << "of other draws";
}

TEST(QuantileErrors, WithoutDensityAreNotNumbersUnlessAllDrawsAgree) {
  const Told apart = Tell({Draws(0, {-5}, 0), Draws(1, {5}, 0)}, {0.2});
  ASSERT_THAT(apart.errors, SizeIs(1));
  EXPECT_TRUE(std::isnan(apart.errors[0])) << "point masses";
  const Told far = Tell({Draws(0, {-1e6}), Draws(1, {1e6})}, {0.5});
  ASSERT_THAT(far.errors, SizeIs(1));
  EXPECT_TRUE(std::isnan(far.errors[0])) << "between far peaks";
  EXPECT_THAT(Tell({Draws(0, {5}, 0), Draws(1, {5}, 0)}, {0.2, 0.8}).errors, Each(0));
  EXPECT_THAT(Tell({Draws(0, {5}), Draws(1, {5})}, {0.2, 0.8}).errors, Each(0));
}

// m' = rho m + noise around 0 with variance 1, of a chain that begins where it belongs; oldest first.
Doubles Autoregression(RngKey key, size_t length, double rho) {
  Doubles means;
  for (size_t t = 0; t < length; ++t) {
    const double z = NormalDouble(key, RngStream::kProbe, t, 0);
    means.push_back(t == 0 ? z : rho * means.back() + std::sqrt(1 - rho * rho) * z);
  }
  return means;
}

// How far quantiles scatter over repetitions, and what their errors say: root mean squares of both. Of so many
// repetitions the former has an error of 1 / sqrt(2 * 1600), 1.8 %.
constexpr int kRepetitions = 1600;
constexpr double kWithin = 0.06;

struct Scatter {
  double seen = 0, told = 0;
};
template <typename Repeat>
std::vector<Scatter> ScatterOf(size_t levels, const Repeat& repeat) {
  std::vector<Scatter> scatter(levels);
  Doubles mean(levels);
  std::vector<Told> repetitions;
  for (int i = 0; i < kRepetitions; ++i) repetitions.push_back(repeat(Fold(RngKey{2024}, static_cast<uint64_t>(i))));
  for (size_t q = 0; q < levels; ++q) {
    for (const Told& told : repetitions) mean[q] += told.quantiles[q] / kRepetitions;
    for (const Told& told : repetitions) {
      scatter[q].seen += std::pow(told.quantiles[q] - mean[q], 2) / (kRepetitions - 1);
      scatter[q].told += told.errors[q] * told.errors[q] / kRepetitions;
    }
    scatter[q] = {std::sqrt(scatter[q].seen), std::sqrt(scatter[q].told)};
  }
  return scatter;
}

TEST(QuantileErrors, EqualTheScatterOfTheQuantilesOfSlowChains) {
  const Doubles levels = {0.05, 0.5, 0.9};
  const std::vector<Scatter> scatter = ScatterOf(levels.size(), [&](RngKey key) {
    std::vector<PartialPrediction> partials;
    for (int32_t chain = 0; chain < 16; ++chain) {
      partials.push_back(Draws(chain, Autoregression(Fold(key, static_cast<uint64_t>(chain)), 24, 0.9), 0.5));
    }
    return Tell(partials, levels);
  });
  for (const Scatter& of : scatter) EXPECT_NEAR(of.told / of.seen, 1, kWithin);
}

// 240 draws, as a worker is asked for them: blocks of at least 30, over which such draws forget where they were.
TEST(QuantileErrors, EqualTheScatterOfTheQuantilesOfOneLongChain) {
  std::vector<int64_t> lengths;
  for (const int64_t run : RunsOf(240)) {
    for (const int64_t part : PartsOf(run)) lengths.push_back(part);
  }
  const std::vector<PartialPrediction> parts = PartsOfChain(lengths);
  const std::vector<Scatter> scatter = ScatterOf(2, [&](RngKey key) {
    return Tell({Draws(0, Autoregression(key, 240, 0.4))}, {0.5, 0.9}, parts);
  });
  for (const Scatter& of : scatter) EXPECT_NEAR(of.told / of.seen, 1, kWithin);
}

// The whole way through the router.
struct World {
  World(const std::vector<int64_t>& draws_of_chain) : catalog(&executor, draws_of_chain, Numbers()) {
    port.workers = {{"a", testing::FakeShardPort::Mood::kAnswers}, {"b", testing::FakeShardPort::Mood::kAnswers}};
  }

  static Doubles Moments(const ChainId& chain, DrawKind kind, int64_t draw, int64_t row) {
    const auto at = static_cast<double>(10 * chain.index + 3 * draw + row);
    return {std::sin(at), kind == DrawKind::kTheta ? 1.0 : 4.0};
  }

  absl::StatusOr<Prediction> Predict(PredictQuery query, int64_t rows) {
    std::optional<absl::StatusOr<Prediction>> result;
    router.Predict(std::move(query), testing::NumberedRows(rows), absl::Minutes(10),
                   [&](absl::StatusOr<Prediction> answer) { result = std::move(answer); });
    executor.RunFor(absl::Minutes(11));
    return result ? *result : absl::InternalError("never answered");
  }

  FakeClock clock;
  ManualExecutor executor{&clock};
  testing::FakeDrawCatalog catalog;
  testing::FakeShardPort port{&executor, Moments};
  ShardQueue queue{&clock, &executor, &port};
  PredictRouter router{&clock, &executor, &catalog, &queue};
};

TEST(QuantileErrors, ComeWithQuantilesWhereErrorsAreAsked) {
  const std::vector<int64_t> draws = {2, 3, 1};
  World world(draws);
  const Doubles levels = {0.1, 0.9};
  const absl::StatusOr<Prediction> answer = world.Predict({.quantiles = levels}, 1500);  // several blocks
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_THAT(answer->quantile_errors, SizeIs(3000));
  for (const size_t row : {0, 1023, 1024, 1499}) {
    std::vector<PartialPrediction> partials;
    for (const int32_t chain : {0, 1, 2}) {
      for (const DrawKind kind : {DrawKind::kTheta, DrawKind::kThetaA}) {
        Doubles means;
        for (int64_t draw = 0; draw < draws[static_cast<size_t>(chain)]; ++draw) {
          means.push_back(World::Moments({"j", chain}, kind, draw, static_cast<int64_t>(row))[0]);
        }
        partials.push_back(Draws(chain, means, kind == DrawKind::kTheta ? 1 : 4, 1, kind));
      }
    }
    const Told told = Tell(partials, levels);
    for (size_t q = 0; q < 2; ++q) EXPECT_NEAR(answer->quantile_errors[row * 2 + q], told.errors[q], 1e-9) << row;
  }
  const absl::StatusOr<Prediction> bare = world.Predict({.with_errors = false, .quantiles = levels}, 3);
  ASSERT_TRUE(bare.ok());
  EXPECT_THAT(bare->quantiles, SizeIs(6));
  EXPECT_THAT(bare->quantile_errors, IsEmpty());
}

TEST(QuantileErrors, AreTheSameForAnytimeAndPlainAnswers) {
  for (const std::vector<int64_t>& draws : {std::vector<int64_t>{20}, {7}, {5, 6, 3}}) {
    World world(draws);
    const absl::StatusOr<Prediction> plain = world.Predict({.quantiles = {0.2, 0.7}}, 3);
    const absl::StatusOr<Prediction> anytime = world.Predict({.anytime = true, .quantiles = {0.2, 0.7}}, 3);
    ASSERT_TRUE(plain.ok() && anytime.ok());
    ASSERT_THAT(plain->quantile_errors, SizeIs(6));
    for (const double error : plain->quantile_errors) EXPECT_GT(error, 0);
    EXPECT_EQ(anytime->quantile_errors, plain->quantile_errors);
  }
  World few({3});
  const absl::StatusOr<Prediction> unknown = few.Predict({.quantiles = {0.5}}, 2);
  ASSERT_TRUE(unknown.ok());
  EXPECT_THAT(unknown->quantile_errors, IsEmpty());
}

TEST(QuantileErrors, LeaveOutCorruptDraws) {
  World world({20});
  world.port.corrupt = {"0/19", "0/3"};
  const absl::StatusOr<Prediction> answer = world.Predict({.quantiles = {0.5}}, 2);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->draws_used, 18);
  ASSERT_THAT(answer->quantile_errors, SizeIs(2));
  for (const double error : answer->quantile_errors) EXPECT_GT(error, 0);
}

}  // namespace
}  // namespace chainfleet

// Tests SWA and SWAG: their sums over a deterministic descent with known iterates, and the law of their draws.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "worker/numerics/batch/chain_batch.h"
#include "worker/numerics/batch/checkpoint_codec.h"

namespace chainfleet {
namespace {

constexpr double kK = 2, kAlpha = 0.02, kMomentum = 0.5, kStart = 3;
constexpr int64_t kTraining = 14, kFirstSnapshot = 5;  // ten snapshots, one a step

// Heavy-ball descent on U = k x^2 / 2.
std::vector<double> Snapshots() {
  double x = kStart, v = 0;
  std::vector<double> snapshots;
  for (int64_t step = 1; step <= kTraining; ++step) {
    v = kMomentum * v + kK * x;
    x -= kAlpha * v;
    if (step >= kFirstSnapshot) snapshots.push_back(x);
  }
  return snapshots;
}

double Mean(const std::vector<double>& x) { return std::accumulate(x.begin(), x.end(), 0.0) / double(x.size()); }

double Spread(const std::vector<double>& x) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  return squares / double(x.size()) - Mean(x) * Mean(x);
}

// Returns the variance that the last `rank` deviations add to a draw, or all if they are fewer, each from the mean that
// includes its snapshot.
double LowRankVariance(const std::vector<double>& x, int64_t rank) {
  double sum = 0;
  for (size_t n = x.size() - std::min<size_t>(rank, x.size()); n < x.size(); ++n) {
    const double deviation = x[n] - Mean({x.begin(), x.begin() + n + 1});
    sum += deviation * deviation;
  }
  return sum / double(rank - 1);
}

// All draws of one chain whose every coordinate starts at kStart.
std::vector<std::vector<float>> Draw(const SamplerSpec& sampler, int64_t dimension, uint64_t seed) {
  auto plan = std::make_shared<JobPlan>();
  plan->job = "swag-aaaaaa";
  plan->spec.name = "swag";
  plan->spec.model.kind = GaussianPotential{dimension, kK};
  plan->spec.sampler = sampler;
  plan->spec.schedule = {StepScale::kStepSize, ConstantSchedule{kAlpha}};
  plan->spec.num_steps = kTraining;
  plan->spec.seed = seed;
  const auto batch = ChainBatch::Create(plan, nullptr, "cpu");
  EXPECT_TRUE(batch.ok()) << batch.status();
  EXPECT_TRUE((*batch)->AddChain(0, std::nullopt).ok());
  auto start = DecodeCheckpoint((*batch)->SaveResumePoint(0));
  EXPECT_TRUE(start.ok()) << start.status();
  std::fill(start->arenas[0].begin(), start->arenas[0].end(), static_cast<float>(kStart));
  (*batch)->RemoveChain(0);
  EXPECT_TRUE((*batch)->AddChain(0, EncodeCheckpoint(*start)).ok());
  std::vector<std::vector<float>> draws;
  for (bool done = false; !done;) {
    const auto reports = (*batch)->Step();
    EXPECT_TRUE(reports.ok()) << reports.status();
    if (reports->front().draw_due) draws.push_back((*batch)->TakeDraw(0).theta[0]);
    done = reports->front().done;
  }
  return draws;
}

TEST(SwaLaws, TheDrawIsTheMeanOfTheSnapshots) {
  const auto draws = Draw({SwaSpec{kMomentum, kFirstSnapshot}}, 70, 1);
  ASSERT_EQ(draws.size(), 1u);
  for (const float value : draws[0]) EXPECT_NEAR(value, Mean(Snapshots()), 1e-6 * Mean(Snapshots()));
}

// Mean and variance over the coordinates of a draw: they share the low-rank part, so the variance is the diagonal's.
TEST(SwagLaws, CoordinatesSpreadByTheDiagonalPart) {
  constexpr int64_t kDimension = 400'000;
  for (const bool diagonal : {true, false}) {
    const double scale = diagonal ? 1 : 0.5;
    const auto draws = Draw(
        {SwagSpec{
            .momentum = kMomentum, .start_epoch = kFirstSnapshot, .diagonal = diagonal, .max_rank = 4, .draws = 1}},
        kDimension, 2);
    ASSERT_EQ(draws.size(), 1u);
    double sum = 0, squares = 0;
    for (const float value : draws[0]) {
      sum += value;
      squares += double(value) * value;
    }
    const double mean = sum / kDimension, variance = squares / kDimension - mean * mean;
    const double law = scale * Spread(Snapshots());
    EXPECT_LE(std::sqrt(2.0 / kDimension), 0.004) << "measured too roughly to mean it";
    EXPECT_NEAR(variance, law, 4 * law * std::sqrt(2.0 / kDimension)) << diagonal;
    if (diagonal) {
      EXPECT_NEAR(mean, Mean(Snapshots()), 4 * std::sqrt(law / kDimension));
    }
  }
}

// Over many draws every coordinate has the whole variance, and two coordinates share the low-rank part of it.
void ExpectDiagonalAndLowRankVariance(int64_t rank) {
  constexpr int64_t kDraws = 150'000;
  const SamplerSpec sampler{
      SwagSpec{.momentum = kMomentum, .start_epoch = kFirstSnapshot, .max_rank = rank, .draws = kDraws}};
  const auto draws = Draw(sampler, 2, 3);
  ASSERT_EQ(draws.size(), static_cast<size_t>(kDraws));
  const double mean = Mean(Snapshots()), diagonal = 0.5 * Spread(Snapshots()),
               shared = 0.5 * LowRankVariance(Snapshots(), rank);
  double variance = 0, covariance = 0;
  for (const auto& draw : draws) {
    variance += ((draw[0] - mean) * (draw[0] - mean) + (draw[1] - mean) * (draw[1] - mean)) / 2 / kDraws;
    covariance += (draw[0] - mean) * (draw[1] - mean) / kDraws;
  }
  const double total = diagonal + shared;
  EXPECT_NEAR(variance, total, 4 * std::sqrt((total * total + shared * shared) / kDraws));
  EXPECT_NEAR(covariance, shared, 4 * std::sqrt((total * total + shared * shared) / kDraws));
  EXPECT_LT(std::sqrt((total * total + shared * shared) / kDraws), 0.004 * total);
}

TEST(SwagLaws, DrawsHaveTheDiagonalAndTheLowRankVariance) { ExpectDiagonalAndLowRankVariance(4); }

// The divisor is K - 1 for any number of snapshots, as in the paper's own code.
TEST(SwagLaws, FewerSnapshotsThanColumnsAreDividedByTheColumns) {
  ASSERT_LT(Snapshots().size(), 20u);
  ExpectDiagonalAndLowRankVariance(20);
}

}  // namespace
}  // namespace chainfleet

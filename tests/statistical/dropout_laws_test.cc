// Tests MC dropout through the job interface: the rate of dropped units, and the first two moments of a draw's weights.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "tests/support/synthetic_dataset.h"
#include "worker/numerics/arena/device.h"
#include "worker/numerics/batch/chain_batch.h"
#include "worker/numerics/batch/checkpoint_codec.h"

namespace chainfleet {
namespace {

TEST(DropoutLaws, UnitsFallOutIndependentlyAtTheirRateAndWeightsKeepTheirMean) {
  constexpr double kRate = 0.2;
  constexpr int64_t kHidden = 2000, kDraws = 1050, kUnits = kHidden * kDraws;
  const auto data = SyntheticImages(16, {1, 2, 2}, 3);
  auto plan = std::make_shared<JobPlan>();
  plan->job = "dropout-aaaaaa";
  JobSpec& spec = plan->spec;
  spec.name = "dropout";
  spec.model.kind = BuiltinModel{"mlp", {kHidden}};
  spec.dataset = "synthetic";
  spec.sampler.kind = McDropoutSpec{.rate = kRate, .draws = kDraws};
  spec.schedule = {StepScale::kStepSize, ConstantSchedule{1e-4}};
  spec.batch_size = 8;
  spec.num_steps = 2;
  spec.seed = 3;
  plan->dataset = data->description();
  plan->normalisation = data->description().normalisation;
  (void)InitializeDevice("cpu", 1);  // threads would only wait for each other on such a small chain
  const auto batch = ChainBatch::Create(plan, data, "cpu");
  ASSERT_TRUE(batch.ok()) << batch.status();
  ASSERT_TRUE((*batch)->AddChain(0, std::nullopt).ok());
  std::vector<std::vector<float>> draws;
  for (bool done = false; !done;) {
    const auto reports = (*batch)->Step();
    ASSERT_TRUE(reports.ok()) << reports.status();
    if (reports->front().draw_due) draws.push_back((*batch)->TakeDraw(0).theta[0]);
    done = reports->front().done;
  }
  ASSERT_EQ(draws.size(), static_cast<size_t>(kDraws));
  const std::vector<float> theta = DecodeCheckpoint((*batch)->SaveResumePoint(0))->arenas[0];
  const int64_t weight = (*batch)->parameters()[2].offset;  // fc2.weight, [3, hidden]: its first row
  double missing = 0, mean = 0, next_too = 0, again = 0;
  for (int64_t s = 0; s < kDraws; ++s) {
    const auto gone = [&](int64_t of, int64_t j) { return draws[of][weight + j % kHidden] == 0; };
    for (int64_t j = 0; j < kHidden; ++j) {
      missing += gone(s, j);
      mean += draws[s][weight + j] / theta[weight + j] / kUnits;
      next_too += gone(s, j) && gone(s, j + 1);
      again += gone(s, j) && gone((s + 1) % kDraws, j);
    }
  }
  const double error = std::sqrt(kRate * (1 - kRate) / kUnits);
  EXPECT_LT(error, 0.004 * kRate);
  EXPECT_NEAR(missing / kUnits, kRate, 4 * error);
  EXPECT_NEAR(mean, 1, 4 * error / (1 - kRate));
  // Pairs: each event has probability rate^2 and shares a unit with two others.
  const double both = kRate * kRate, spread = std::sqrt((both * (1 - both) + 2 * both * kRate * (1 - kRate)) / kUnits);
  EXPECT_LT(spread, 0.004 * both);
  EXPECT_NEAR(next_too / kUnits, both, 4 * spread);
  EXPECT_NEAR(again / kUnits, both, 4 * spread);
}

}  // namespace
}  // namespace chainfleet

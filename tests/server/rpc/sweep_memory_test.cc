// Tests that a server keeps a large specification once, however many points its sweep has. The bytes are counted
// (tests/support/counted_heap.cc).
#include "tests/server/rpc/running_server.h"
#include "tests/support/counted_heap.h"

namespace chainfleet {
namespace {

class SweepMemory : public RunningServer {
 protected:
  // The largest covariance, two thirds of what a specification may have, with many points.
  static v1::JobSpec LargeSweep() {
    constexpr int kSize = GaussianPotential::kMaxCovarianceDimension;
    v1::JobSpec spec = GaussianJob("swept");
    auto* gaussian = spec.mutable_model()->mutable_potential()->mutable_gaussian();
    gaussian->set_dimension(kSize);
    for (int i = 0; i < kSize * kSize; ++i) gaussian->add_covariance(i % (kSize + 1) == 0 ? 1 : 0);
    for (int i = 0; i < 250; ++i) spec.mutable_sweep()->add_temperature(1 + i);
    return spec;
  }
};

TEST_F(SweepMemory, ALargeCovarianceIsKeptOnceForAllPoints) {
  const v1::JobSpec spec = LargeSweep();
  const auto size = static_cast<int64_t>(spec.ByteSizeLong());
  ASSERT_GT(size, int64_t{2} << 20);
  const int64_t before = testing::HeldBytes();
  {
    const auto job = CreateJob(spec);
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_EQ(job->points_size(), 250);
  }
  // Buffers of the call and of the store have a few copies.
  EXPECT_LT(testing::HeldBytes() - before, 20 * size);
}

}  // namespace
}  // namespace chainfleet

#include "worker/telemetry/worker_metrics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/scrape.h"

namespace chainfleet {
namespace {

TEST(WorkerMetrics, CountsStepsAndShardsByOutcome) {
  MetricsRegistry registry("worker");
  WorkerMetrics metrics(&registry, "cpu");
  metrics.AddStep({.chains = 4, .gradients = 8, .accepted = 3, .rejected = 1, .took = absl::Seconds(2)});
  metrics.AddShard(absl::Seconds(1), absl::Seconds(2), absl::Seconds(4));
  metrics.ShowDrawCache({.hits = 5, .misses = 2, .bytes = 100});
  metrics.ShowDrawCache({.hits = 6, .misses = 2, .bytes = 50});
  const auto address = registry.Serve("127.0.0.1:0");
  ASSERT_TRUE(address.ok()) << address.status();
  const std::string scrape = Scrape(*address);
  for (const char* line : {"chain_steps_total{device=\"cpu\"} 4", "gradient_evaluations_total{device=\"cpu\"} 8",
                           "proposals_total{outcome=\"accepted\"} 3", "proposals_total{outcome=\"rejected\"} 1",
                           "step_duration_seconds_sum{device=\"cpu\"} 2", "shard_stage_seconds_sum{stage=\"load\"} 1",
                           "shard_stage_seconds_sum{stage=\"wait\"} 2", "shard_stage_seconds_sum{stage=\"compute\"} 4",
                           "draw_cache_requests_total{outcome=\"hit\"} 6",
                           "draw_cache_requests_total{outcome=\"miss\"} 2", "draw_cache_bytes 50"}) {
    EXPECT_THAT(scrape, testing::HasSubstr(std::string("\nchainfleet_worker_") + line)) << line;
  }
}

}  // namespace
}  // namespace chainfleet

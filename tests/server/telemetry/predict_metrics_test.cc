#include "server/telemetry/predict_metrics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/scrape.h"

namespace chainfleet {
namespace {

TEST(PredictMetrics, ReportsTheTimesOfPredictions) {
  MetricsRegistry registry("server");
  PredictMetrics metrics(&registry);
  metrics.OnRequest(absl::Seconds(4), absl::Seconds(1));
  metrics.OnBatch(3, 40);
  metrics.OnAverage({absl::Seconds(0.25), absl::Seconds(2), absl::Seconds(0.5), 24});
  const auto address = registry.Serve("127.0.0.1:0");
  ASSERT_TRUE(address.ok()) << address.status();
  const std::string scrape = Scrape(*address);
  for (const char* line :
       {"stage_seconds_sum{stage=\"total\"} 4", "stage_seconds_sum{stage=\"queue\"} 1",
        "stage_seconds_sum{stage=\"lookup\"} 0.25", "stage_seconds_sum{stage=\"workers\"} 2",
        "stage_seconds_sum{stage=\"reduce\"} 0.5", "batch_requests_sum 3", "batch_rows_sum 40", "draws_sum 24"}) {
    EXPECT_THAT(scrape, testing::HasSubstr(std::string("\nchainfleet_prediction_") + line)) << line;
  }
}

}  // namespace
}  // namespace chainfleet

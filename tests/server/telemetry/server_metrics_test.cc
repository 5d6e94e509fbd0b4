#include "server/telemetry/server_metrics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/scrape.h"

namespace chainfleet {
namespace {

using testing::HasSubstr;

TEST(ServerMetrics, AFailedQueryKeepsTheLastValue) {
  MetricsRegistry registry("server");
  ServerMetrics metrics(&registry);
  metrics.Show({.draws = 5, .corrupt_segments = 3, .data = DiskSpace{1000, 50}});
  metrics.Show({.draws = 6});
  const auto address = registry.Serve("127.0.0.1:0");
  ASSERT_TRUE(address.ok()) << address.status();
  std::string scrape = Scrape(*address);
  for (const char* line : {"chainfleet_draws 6", "chainfleet_corrupt_segments 3", "chainfleet_data_size_bytes 1000",
                           "chainfleet_data_free_bytes 50"}) {
    EXPECT_THAT(scrape, HasSubstr(std::string("\n") + line + "\n"));
  }
  metrics.Show({.corrupt_segments = 0, .data = DiskSpace{1000, 0}});
  scrape = Scrape(*address);
  for (const char* line : {"chainfleet_corrupt_segments 0", "chainfleet_data_free_bytes 0"}) {
    EXPECT_THAT(scrape, HasSubstr(std::string("\n") + line + "\n"));
  }
}

}  // namespace
}  // namespace chainfleet

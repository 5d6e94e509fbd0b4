#include "server/predict/serving/row_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace chainfleet {
namespace {

TEST(RowRates, RefusesRowsBeyondTheRateOfTheirTenantAndSaysHowLongToWait) {
  RowRates rates(10);
  const auto take = [&](const std::string& tenant, int64_t rows, int64_t ms) {
    return rates.Take(tenant, rows, absl::Milliseconds(ms));
  };
  EXPECT_TRUE(take("a", 6, 0).ok());
  const absl::Status refused = take("a", 6, 0);
  EXPECT_EQ(ReasonOf(refused), "TENANT_LIMIT");
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("try 6 rows again in 200ms"));
  EXPECT_TRUE(take("b", 6, 0).ok());
  EXPECT_TRUE(take("a", 6, 200).ok());
  EXPECT_TRUE(take("a", 25, 1200).ok()) << "more than a second's rows, from a full bucket";
  EXPECT_EQ(ReasonOf(take("a", 1, 2200)), "TENANT_LIMIT") << "taken in advance";
  EXPECT_TRUE(take("a", 1, 3200).ok());
}

TEST(RowRates, WithoutABoundAllRowsPass) {
  RowRates rates(RowRates::kNone);
  EXPECT_TRUE(rates.Take("a", int64_t{1} << 60, absl::ZeroDuration()).ok());
}

}  // namespace
}  // namespace chainfleet

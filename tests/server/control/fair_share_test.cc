#include "server/control/fair_share.h"

#include <cmath>
#include <numbers>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kHour = absl::Hours(1);

FairShare OfWeights(std::map<std::string, double> weights) { return FairShare({{1, std::move(weights)}, kHour}); }

std::map<std::string, int64_t> Parts(const std::vector<FairShare::Claim>& claims) {
  std::map<std::string, int64_t> parts;
  for (const FairShare::Claim& claim : claims) parts[claim.tenant] = claim.chains;
  return parts;
}

TEST(FairShare, DeviceSecondsHalveInAHalfLife) {
  FairShare shares = OfWeights({});
  shares.Hold("a", 2, absl::ZeroDuration());
  const double per_hour = 3600 / std::numbers::ln2;
  EXPECT_NEAR(shares.UsedBy("a", kHour), 2 * per_hour / 2, 1e-6);
  shares.Hold("a", -2, kHour);
  EXPECT_NEAR(shares.UsedBy("a", 2 * kHour), 2 * per_hour / 4, 1e-6);
  EXPECT_NEAR(shares.UsedBy("a", 11 * kHour), 2 * per_hour / 2048, 1e-6);
  EXPECT_EQ(shares.UsedBy("b", kHour), 0);
}

TEST(FairShare, AreChargedByTheSecondHoweverOftenTheyChange) {
  FairShare once = OfWeights({}), often = OfWeights({});
  once.Hold("a", 1, absl::ZeroDuration());
  for (int i = 0; i < 100; ++i) often.Hold("a", i % 2 == 0 ? 1 : 0, i * absl::Minutes(1));
  FairShare steps = OfWeights({});
  for (int i = 0; i < 50; ++i) steps.Hold("a", 1, i * absl::Minutes(2));
  EXPECT_NEAR(often.UsedBy("a", 2 * kHour), steps.UsedBy("a", 2 * kHour), 1e-6);
  once.Hold("a", 0, absl::Minutes(7));
  FairShare plain = OfWeights({});
  plain.Hold("a", 1, absl::ZeroDuration());
  EXPECT_NEAR(once.UsedBy("a", kHour), plain.UsedBy("a", kHour), 1e-6);
}

TEST(FairShare, AnEmptyFleetIsDividedByTheWeights) {
  const FairShare shares = OfWeights({{"b", 3}});
  const auto parts = shares.Divide({{"a", 100}, {"b", 100}}, 40, 1, absl::ZeroDuration());
  EXPECT_EQ(Parts(parts), (std::map<std::string, int64_t>{{"a", 10}, {"b", 30}}));
}

TEST(FairShare, UnclaimedSlotsGoToAnyTenant) {
  const FairShare shares = OfWeights({{"b", 3}});
  EXPECT_EQ(Parts(shares.Divide({{"a", 100}, {"b", 5}}, 40, 1, absl::ZeroDuration())),
            (std::map<std::string, int64_t>{{"a", 35}, {"b", 5}}));
  EXPECT_EQ(Parts(shares.Divide({{"a", 2}, {"b", 5}}, 40, 1, absl::ZeroDuration())),
            (std::map<std::string, int64_t>{{"a", 2}, {"b", 5}}));
  EXPECT_TRUE(shares.Divide({}, 40, 1, absl::ZeroDuration()).empty());
}

TEST(FairShare, TheTenantWithTheLeastLoadPerWeightIsServedFirst) {
  FairShare shares = OfWeights({{"a", 2}});
  shares.Hold("a", 3, absl::ZeroDuration());
  shares.Hold("b", 2, absl::ZeroDuration());
  const auto parts = shares.Divide({{"b", 9}, {"c", 9}, {"a", 9}}, 1, 1, absl::ZeroDuration());
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].tenant, "c");
  EXPECT_EQ(parts[0].chains, 1);
  EXPECT_EQ(parts[1].tenant, "a");
  EXPECT_EQ(parts[2].tenant, "b");
}

// A fleet on which chains of both tenants always wait. Each chain runs for its own time.
class Fleet {
 public:
  Fleet(FairShare shares, int64_t slots) : shares_(std::move(shares)), free_(slots) {}

  // Returns the device-seconds of each tenant over `length`, with claims only of `wanting`.
  std::map<std::string, double> Run(absl::Duration length, const std::vector<std::string>& wanting) {
    std::map<std::string, double> had;
    for (const absl::Duration end = now_ + length; now_ < end; now_ += absl::Minutes(1)) {
      for (auto i = ends_.begin(); i != ends_.end() && i->first <= now_; i = ends_.erase(i), ++free_) {
        shares_.Hold(i->second, -1, now_);
      }
      std::vector<FairShare::Claim> claims;
      for (const std::string& tenant : wanting) claims.push_back({tenant, 1000});
      for (const auto& part : shares_.Divide(claims, free_, 1, now_)) {
        for (int64_t i = 0; i < part.chains; ++i, --free_) {
          shares_.Hold(part.tenant, 1, now_);
          ends_.emplace(now_ + absl::Minutes(7 + 13 * (++granted_ % 5)), part.tenant);
        }
      }
      for (const auto& [end_of_chain, tenant] : ends_) had[tenant] += 60;
    }
    return had;
  }

 private:
  FairShare shares_;
  int64_t free_;
  absl::Duration now_;
  std::multimap<absl::Duration, std::string> ends_;
  int granted_ = 0;
};

TEST(FairShare, WeightsOneAndThreeShareAQuarterAndThreeQuartersOverTime) {
  Fleet fleet(OfWeights({{"three", 3}}), 20);
  std::map<std::string, double> had = fleet.Run(absl::Hours(48), {"one", "three"});
  EXPECT_NEAR(had["one"] / (had["one"] + had["three"]), 0.25, 0.01);
}

TEST(FairShare, OneSlotIsSharedInTime) {
  Fleet fleet(FairShare({{1, {{"three", 3}}}, 24 * kHour}), 1);
  std::map<std::string, double> had = fleet.Run(240 * kHour, {"one", "three"});
  EXPECT_NEAR(had["one"] / (had["one"] + had["three"]), 0.25, 0.02);
}

TEST(FairShare, TheClaimOfAnIdleTenantDoesNotGrowWithoutBound) {
  std::vector<double> shares_after;
  for (const int days_idle : {1, 100}) {
    Fleet fleet(OfWeights({}), 20);
    fleet.Run(absl::Hours(24 * days_idle), {"busy"});
    std::map<std::string, double> had = fleet.Run(absl::Hours(6), {"busy", "idle"});
    shares_after.push_back(had["idle"] / (had["idle"] + had["busy"]));
    std::map<std::string, double> later = fleet.Run(absl::Hours(24), {"busy", "idle"});
    EXPECT_NEAR(later["idle"] / (later["idle"] + later["busy"]), 0.5, 0.02) << days_idle;
  }
  EXPECT_GT(shares_after[0], 0.5) << "it catches up";
  EXPECT_LT(shares_after[0], 0.75) << "within a few half-lives";
  EXPECT_NEAR(shares_after[0], shares_after[1], 1e-6);
}

}  // namespace
}  // namespace chainfleet

#include "server/http/http_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace chainfleet {
namespace {

TEST(HttpBytes, AHostHoldsNoMoreThanItLeavesFree) {
  const HttpBytes bytes(100);
  HttpShare first(bytes, "a"), second(bytes, "a"), other(bytes, "b"), third(bytes, "c");
  EXPECT_TRUE(first.Add(30));
  EXPECT_FALSE(second.Add(21)) << "the shares of a host count together";
  EXPECT_TRUE(second.Add(20));
  EXPECT_FALSE(first.Add(1));
  EXPECT_TRUE(other.Add(25)) << "half of the rest";
  EXPECT_FALSE(other.Add(1));
  EXPECT_TRUE(third.Add(12));
  EXPECT_TRUE(first.Add(0)) << "nothing needs no room";
}

TEST(HttpBytes, GetsBackWhatAShareHeldAndOutlivesTheBudget) {
  auto bytes = std::make_unique<const HttpBytes>(100);
  auto share = std::make_unique<HttpShare>(*bytes, "a");
  EXPECT_TRUE(share->Add(20));
  EXPECT_TRUE(share->Add(30));
  share = std::make_unique<HttpShare>(*bytes, "a");
  bytes.reset();
  EXPECT_TRUE(share->Add(50));
  EXPECT_FALSE(share->Add(1));
}

TEST(HttpBytes, ReportsEachRefusalWithItsBound) {
  std::vector<std::string> refused;
  HttpShare share(HttpBytes(100, [&](const absl::Status& why) { refused.push_back(BoundOf(why)); }), "a");
  EXPECT_TRUE(share.Add(50));
  EXPECT_FALSE(share.Add(1));
  EXPECT_FALSE(share.Add(INT64_MAX));
  EXPECT_THAT(refused, testing::ElementsAre("http_bytes", "http_bytes"));
}

}  // namespace
}  // namespace chainfleet

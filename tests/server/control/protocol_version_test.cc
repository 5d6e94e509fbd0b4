#include "server/control/protocol_version.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(ProtocolVersion, ItsOwnAndTheOneBeforeAreSpoken) {
  const SpokenVersions spoken{.oldest = 6, .newest = 7};
  EXPECT_TRUE(CheckProtocolVersion("w1", 7, spoken).ok());
  EXPECT_TRUE(CheckProtocolVersion("w1", 6, spoken).ok());
  for (const int32_t other : {5, 8}) {
    const absl::Status status = CheckProtocolVersion("w1", other, spoken);
    EXPECT_EQ(ReasonOf(status), "VERSION_MISMATCH");
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("w1"), HasSubstr(std::to_string(other)), HasSubstr("6 to 7")));
  }
}

TEST(ProtocolVersion, AWorkerThatNamesNoneIsOfNone) {
  EXPECT_FALSE(CheckProtocolVersion("w1", 0).ok());
  EXPECT_TRUE(CheckProtocolVersion("w1", kOldestProtocolVersion).ok());
  EXPECT_TRUE(CheckProtocolVersion("w1", kProtocolVersion).ok());
}

}  // namespace
}  // namespace chainfleet

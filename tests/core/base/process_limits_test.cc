#include "core/base/process_limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

namespace chainfleet {
namespace {

TEST(DescriptorLimit, IsRaisedToTheHardOne) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{std::min<rlim_t>(256, before.rlim_max), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  RaiseDescriptorLimit();
  rlimit after{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, std::min<rlim_t>(before.rlim_max, 65'536));
  EXPECT_EQ(after.rlim_max, before.rlim_max);
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST(CoreDumps, AreForbiddenForGoodAlsoThroughPipes) {
  rlimit before{}, after{};
  ASSERT_EQ(getrlimit(RLIMIT_CORE, &before), 0);
  ForbidCoreDumps();
  ASSERT_EQ(getrlimit(RLIMIT_CORE, &after), 0);
  EXPECT_EQ(after.rlim_cur, after.rlim_max);
  EXPECT_LE(after.rlim_max, 1U);
  if (before.rlim_max > 0) {
    EXPECT_EQ(after.rlim_max, 1U);  // 0 would not stop pipes
  }
}

}  // namespace
}  // namespace chainfleet

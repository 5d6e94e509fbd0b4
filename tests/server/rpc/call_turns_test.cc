#include "server/rpc/call_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;

class CallTurnsTest : public testing::Test {
 protected:
  void Take(const std::string& tenant, const char* name) {
    turns_.Take(tenant, name, [this, name] { began_.emplace_back(name); });
  }

  FakeClock clock_;
  ManualExecutor executor_{&clock_};
  std::vector<std::string> began_;
  CallTurns turns_{&executor_, 2};
};

constexpr char kA1[] = "a1", kA2[] = "a2", kA3[] = "a3", kA4[] = "a4", kA5[] = "a5", kB1[] = "b1";

TEST_F(CallTurnsTest, AFloodOfOneTenantDoesNotDelayAnother) {
  for (const char* name : {kA1, kA2, kA3, kA4}) Take("a", name);
  Take("b", kB1);
  EXPECT_THAT(began_, ElementsAre("a1", "a2", "b1"));
}

TEST_F(CallTurnsTest, CallsOfATenantBeginInOrderAsItsTurnsEnd) {
  for (const char* name : {kA1, kA2, kA3, kA4}) Take("a", name);
  turns_.End(kA2);
  turns_.End(kA2);
  EXPECT_THAT(began_, ElementsAre("a1", "a2")) << "no call begins within the end of another";
  while (executor_.RunOne()) continue;
  EXPECT_THAT(began_, ElementsAre("a1", "a2", "a3")) << "a turn ends once";
  Take("a", kA5);
  turns_.End(kA3);
  while (executor_.RunOne()) continue;
  EXPECT_THAT(began_, ElementsAre("a1", "a2", "a3", "a4")) << "a5 waits behind a4";
}

TEST_F(CallTurnsTest, EndedTurnsCanBeTakenAgain) {
  for (const char* name : {kA1, kA2}) Take("a", name);
  for (const char* name : {kA1, kA2}) turns_.End(name);
  EXPECT_FALSE(executor_.RunOne()) << "nothing waits";
  for (const char* name : {kA3, kA4, kA5}) Take("a", name);
  EXPECT_THAT(began_, ElementsAre("a1", "a2", "a3", "a4"));
}

}  // namespace
}  // namespace chainfleet

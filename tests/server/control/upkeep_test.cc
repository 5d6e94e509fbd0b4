#include "server/control/upkeep.h"

#include <memory>
#include <new>

#include "gtest/gtest.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"

namespace chainfleet {
namespace {

class RunEveryTest : public testing::Test {
 protected:
  FakeClock clock_;
  ManualExecutor executor_{&clock_};
  std::shared_ptr<int> passes_ = std::make_shared<int>(0);
};

TEST_F(RunEveryTest, RepeatsThePassAfterAnErrorWhileItsOwnerIsAlive) {
  RunEvery(&executor_, absl::Seconds(1), absl::Seconds(5), "pass", std::weak_ptr<int>(passes_), [](int* passes) {
    ++*passes;
    return absl::UnavailableError("the first pass fails, and each other one");
  });
  executor_.RunFor(absl::Seconds(11));
  EXPECT_EQ(*passes_, 3);
  passes_.reset();
  executor_.RunFor(absl::Seconds(5));
  EXPECT_EQ(executor_.num_tasks(), 0u);
}

TEST_F(RunEveryTest, GoesOnAfterAPassThatRunsOutOfMemory) {
  RunEvery(&executor_, absl::Seconds(1), absl::Seconds(5), "pass", std::weak_ptr<int>(passes_), [](int* passes) {
    if (++*passes == 1) throw std::bad_alloc();
    return absl::OkStatus();
  });
  clock_.Advance(absl::Seconds(1));
  EXPECT_THROW(executor_.RunOne(), std::bad_alloc);
  executor_.RunFor(absl::Seconds(5));
  EXPECT_EQ(*passes_, 2);
}

}  // namespace
}  // namespace chainfleet

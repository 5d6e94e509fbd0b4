#include "core/base/reread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"

namespace chainfleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class RereadTest : public ::testing::Test {
 protected:
  RereadTest() { InitLog("reread_test", "info"); }
  ~RereadTest() override { spdlog::set_default_logger(before_); }

  Reread<std::string> Open(absl::Duration interval = absl::Seconds(1)) {
    const auto read = [this] {
      ++readings_;
      return now_;
    };
    Reread<std::string> secret = *Reread<std::string>::Open("the secret", read, interval);
    if (interval > absl::ZeroDuration()) secret.ReadOn(&executor_);
    return secret;
  }
  // The value a second later.
  std::string Later(const Reread<std::string>& secret) {
    executor_.RunFor(absl::Seconds(1));
    return *secret.Current();
  }
  // The log of the next reading.
  std::string LogOfLater(const Reread<std::string>& secret) {
    ::testing::internal::CaptureStderr();
    Later(secret);
    return ::testing::internal::GetCapturedStderr();
  }

  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  FakeClock clock_;
  ManualExecutor executor_{&clock_};
  absl::StatusOr<std::string> now_ = "first";
  int readings_ = 0;
};

TEST_F(RereadTest, AValueOfTheProgramNeverChanges) {
  const Reread<std::string> secret = "given";
  secret.ReadOn(&executor_);
  EXPECT_EQ(executor_.num_tasks(), 0u);
  EXPECT_EQ(*secret.Current(), "given");
  EXPECT_EQ(*Reread<std::string>().Current(), "");
}

TEST_F(RereadTest, AChangeIsTakenWhenTwoReadingsInTurnGiveIt) {
  const Reread<std::string> secret = Open(), copy = secret;
  now_ = "second";
  EXPECT_EQ(*secret.Current(), "first");
  EXPECT_EQ(readings_, 1) << "users do not read";
  EXPECT_EQ(Later(secret), "first");
  EXPECT_EQ(Later(secret), "second");
  EXPECT_EQ(*copy.Current(), "second");
  EXPECT_EQ(readings_, 3) << "copies share the value";
}

TEST_F(RereadTest, AHalfWrittenValueIsNeverTaken) {
  const Reread<std::string> secret = Open();
  for (const absl::StatusOr<std::string>& between :
       {absl::StatusOr<std::string>("first"), absl::StatusOr<std::string>(absl::NotFoundError("no such file"))}) {
    for (const absl::StatusOr<std::string>& read :
         {absl::StatusOr<std::string>("TOKEN team"), between, absl::StatusOr<std::string>("TOKEN team")}) {
      now_ = read;
      EXPECT_EQ(Later(secret), "first");
    }
    now_ = between;
    EXPECT_EQ(Later(secret), "first");
  }
  now_ = "TOKEN team";
  EXPECT_EQ(Later(secret), "first");
  now_ = "TOKEN team reader";
  EXPECT_EQ(Later(secret), "first");
  EXPECT_EQ(Later(secret), "TOKEN team reader");
}

TEST_F(RereadTest, AChangeIsReadAgainSoonHoweverLongTheInterval) {
  const Reread<std::string> secret = Open(absl::Minutes(5));
  now_ = "second";
  executor_.RunFor(absl::Minutes(5) - absl::Seconds(1));
  EXPECT_EQ(readings_, 1);
  EXPECT_EQ(Later(secret), "first");
  EXPECT_EQ(Later(secret), "second");
  executor_.RunFor(absl::Minutes(5) - absl::Seconds(1));
  EXPECT_EQ(readings_, 3);
}

TEST_F(RereadTest, ReadingEndsWithTheLastCopy) {
  {
    const Reread<std::string> secret = Open();
    EXPECT_EQ(executor_.num_tasks(), 1u);
  }
  executor_.RunFor(absl::Seconds(2));
  EXPECT_EQ(readings_, 1);
  EXPECT_EQ(executor_.num_tasks(), 0u);
}

TEST_F(RereadTest, WithoutAnIntervalEachUseReads) {
  const Reread<std::string> secret = Open(absl::ZeroDuration());
  now_ = "second";
  EXPECT_EQ(*secret.Last(), "first");
  EXPECT_EQ(*secret.Current(), "second");
  EXPECT_EQ(*secret.Last(), "second");
  now_ = "";
  EXPECT_EQ(*secret.Current(), "second");
}

TEST_F(RereadTest, AUserKeepsTheValueThatItHas) {
  const Reread<std::string> secret = Open(absl::ZeroDuration());
  const std::shared_ptr<const std::string> held = secret.Current();
  now_ = "second";
  EXPECT_EQ(*secret.Current(), "second");
  EXPECT_EQ(*held, "first");
}

TEST_F(RereadTest, AnErrorOrAnEmptyValueKeepsTheFormerOneAndIsLoggedOnce) {
  const Reread<std::string> secret = Open();
  for (const absl::StatusOr<std::string>& wrong :
       {absl::StatusOr<std::string>(absl::NotFoundError("no such file")), absl::StatusOr<std::string>("")}) {
    now_ = wrong;
    EXPECT_THAT(LogOfLater(secret), AllOf(HasSubstr("the secret"), HasSubstr(wrong.ok() ? "empty" : "no such file"),
                                          Not(HasSubstr("first"))));
    EXPECT_THAT(LogOfLater(secret), IsEmpty());
    EXPECT_EQ(*secret.Current(), "first");
  }
  now_ = "second";
  Later(secret);
  EXPECT_EQ(Later(secret), "second") << "once it is right";
  now_ = absl::NotFoundError("no such file");
  EXPECT_THAT(LogOfLater(secret), HasSubstr("no such file")) << "again, after it was right";
}

TEST_F(RereadTest, AReadingThatTheEndOfTheProcessStopsIsNotLogged) {
  const Reread<std::string> secret = Open();
  now_ = absl::CancelledError("was stopped");
  EXPECT_THAT(LogOfLater(secret), IsEmpty());
  EXPECT_EQ(*secret.Current(), "first");
}

TEST_F(RereadTest, TheFirstErrorIsReturned) {
  const auto read = []() -> absl::StatusOr<std::string> { return absl::NotFoundError("no such file"); };
  EXPECT_TRUE(absl::IsNotFound(Reread<std::string>::Open("the secret", read).status()));
}

}  // namespace
}  // namespace chainfleet

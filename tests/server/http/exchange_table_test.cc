#include "server/http/exchange_table.h"

#include <gtest/gtest.h>

#include "tests/support/fake_clock.h"

namespace chainfleet {
namespace {

constexpr ExchangeTable::Key kFirst = 1000, kSecond = 1001;  // no sockets: nothing reads from them

class ExchangeTableTest : public ::testing::Test {
 protected:
  void Begin(ExchangeTable::Key key) {
    table_.AddReceiving(key);
    ASSERT_TRUE(table_.BeginAnswer(key));
  }
  void End(ExchangeTable::Key key) {
    ++ended_;
    table_.EndAnswer(key);
    table_.CountAnswer();
    table_.Remove(key);
  }

  FakeClock clock_;
  ExchangeTable table_{&clock_};
  int ended_ = 0;
};

TEST_F(ExchangeTableTest, CancelAllEndsEachAnswerOnce) {
  Begin(kFirst);
  Begin(kSecond);
  table_.KeepCancel(kFirst, [&] { End(kFirst); });
  table_.KeepCancel(kSecond, [&] { End(kSecond); });
  table_.CancelAll();
  EXPECT_EQ(ended_, 2);
  EXPECT_FALSE(table_.BeginAnswer(kFirst));
}

TEST_F(ExchangeTableTest, ACancelThatComesAfterCancelAllRunsAtOnce) {
  Begin(kFirst);
  Begin(kSecond);
  table_.KeepCancel(kFirst, [&] {
    table_.KeepCancel(kSecond, [&] { End(kSecond); });
    End(kFirst);
  });
  table_.CancelAll();
  EXPECT_EQ(ended_, 2);
}

TEST_F(ExchangeTableTest, ACancelOfAnAnswerThatEndedIsDropped) {
  Begin(kFirst);
  End(kFirst);
  table_.KeepCancel(kFirst, [&] { End(kFirst); });
  table_.CancelAll();
  EXPECT_EQ(ended_, 1);
}

}  // namespace
}  // namespace chainfleet

#include "client/cli/terminal.h"

#include "gtest/gtest.h"

namespace chainfleet {
namespace {

TEST(FirstLines, AreAllThatFitAboveTheCursor) {
  EXPECT_EQ(FirstLines("A\nb\nc\n", 4), "A\nb\nc\n");
  EXPECT_EQ(FirstLines("A\nb\nc\nd\n", 4), "A\nb\n... and 2 more\n");
  EXPECT_EQ(FirstLines("", 4), "");
}

TEST(FirstLines, AreAtLeastOne) {
  for (const int height : {0, 1, 2}) {
    EXPECT_EQ(FirstLines("A\n", height), "A\n");
    EXPECT_EQ(FirstLines("A\nb\n", height), "A\n... and 1 more\n");
  }
}

}  // namespace
}  // namespace chainfleet

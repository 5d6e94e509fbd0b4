#include "core/base/ids.h"

#include <gtest/gtest.h>

namespace chainfleet {
namespace {

TEST(Names, AllowLettersDigitsAndInnerDashes) {
  EXPECT_TRUE(CheckName("job", "a").ok());
  EXPECT_TRUE(CheckName("job", "fashion-emcmc-2").ok());
  EXPECT_TRUE(CheckName("job", std::string(63, 'a')).ok());
  for (const std::string& name :
       {std::string(), std::string("-a"), std::string("a-"), std::string("A"), std::string("a b"), std::string("2a"),
        std::string("a/b"), std::string("../x"), std::string(64, 'a')}) {
    EXPECT_FALSE(CheckName("job", name).ok()) << name;
  }
}

TEST(JobId, IsNameAndSixBase32Characters) {
  EXPECT_EQ(MakeJobId("x", 0), "x-aaaaaa");
  EXPECT_EQ(MakeJobId("x", (1u << 30) - 1), "x-777777");
  EXPECT_NE(MakeJobId("x", 1), MakeJobId("x", 2));
}

TEST(ChainId, OrdersByJobThenIndex) {
  EXPECT_LT((ChainId{"a", 9}), (ChainId{"b", 0}));
  EXPECT_LT((ChainId{"a", 2}), (ChainId{"a", 10}));
  EXPECT_EQ(ToString(ChainId{"a-bcdefg", 2}), "a-bcdefg/2");
}

}  // namespace
}  // namespace chainfleet

#include "core/base/utf8.h"

#include "gtest/gtest.h"

namespace chainfleet {
namespace {

TEST(Cropped, KeepsBothEndsAndCutsNoCharacter) {
  EXPECT_EQ(Cropped("Übergrößen", 10), "Übergrößen");
  EXPECT_EQ(Cropped("Übergrößen", 9), "Übe...ßen");
  EXPECT_EQ(Cropped("Übergrößen", 4), "Ü...");
  EXPECT_EQ(Cropped("Übergrößen", 2), "..");
  EXPECT_EQ(Cropped("Übergrößen", 0), "");
  EXPECT_EQ(Cropped("", 0), "");
}

TEST(ValidUtf8, ReplacesBytesThatAreNoPartOfACharacter) {
  EXPECT_EQ(ValidUtf8("Über \xef\xbf\xbd"), "Über \xef\xbf\xbd");
  EXPECT_EQ(ValidUtf8("a\xc8z\xe2\x82"), "a\xef\xbf\xbdz\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(ValidUtf8(""), "");
}

}  // namespace
}  // namespace chainfleet

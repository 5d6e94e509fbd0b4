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

}  // namespace
}  // namespace chainfleet

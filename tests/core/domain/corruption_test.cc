#include "core/domain/corruption.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace chainfleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Corruption, KnowsItsNamesAtSeveritiesOneToFive) {
  EXPECT_THAT(CorruptionNames(), SizeIs(static_cast<int>(CorruptionKind::kRotate) + 1));
  for (const std::string& name : CorruptionNames()) {
    EXPECT_THAT(Validate({name, 1, 0}), IsEmpty());
    EXPECT_THAT(Validate({name, 5, 7}), IsEmpty());
  }
}

TEST(Corruption, RefusesAnUnknownNameWithThoseThereAre) {
  for (const char* name : {"", "snow", "Fog", "fog ", "all"}) {
    const auto violations = Validate({name, 3, 0});
    ASSERT_THAT(violations, SizeIs(1)) << name;
    EXPECT_EQ(violations[0].path, "corruption.name");
    EXPECT_THAT(violations[0].message, AllOf(HasSubstr("gaussian_noise, shot_noise"), HasSubstr("rotate")));
  }
}

TEST(Corruption, RefusesSeveritiesOutsideOneToFive) {
  for (const int32_t severity : {-1, 0, 6, 1 << 30}) {
    const auto violations = Validate({"fog", severity, 0});
    ASSERT_THAT(violations, SizeIs(1)) << severity;
    EXPECT_EQ(violations[0].path, "corruption.severity");
  }
  EXPECT_THAT(Validate({"snow", 0, 0}), SizeIs(2));
}

TEST(Corruption, RefusesInputsThatAreNoImagesWithBothShapes) {
  const Corruption fog = {"fog", 1, 0};
  EXPECT_THAT(ValidateForImages(fog, {1, 28, 28}), IsEmpty());
  EXPECT_THAT(ValidateForImages(fog, {3, 8, 200}), IsEmpty());
  EXPECT_THAT(ValidateForImages(fog, {13, 32, 32}), IsEmpty());
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{}, {784}, {28, 28}, {3, 7, 32}, {3, 32, 7}, {1, 1, 28, 28}}) {
    const auto violations = ValidateForImages(fog, shape);
    ASSERT_THAT(violations, SizeIs(1));
    EXPECT_EQ(violations[0].path, "corruption");
    EXPECT_THAT(violations[0].message, AllOf(HasSubstr("fog changes images [channels, height, width]"),
                                             HasSubstr("8 by 8 pixels, the data set has inputs [")));
  }
}

}  // namespace
}  // namespace chainfleet

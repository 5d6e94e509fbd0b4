#include "server/predict/serving/wave_pace.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;

// Waves of draws that take 1 s each.
std::vector<int64_t> Waves(int64_t longest, absl::Duration left) {
  WavePace pace(longest);
  std::vector<int64_t> waves;
  while (const int64_t count = pace.Next(left)) {
    pace.Took(count, absl::Seconds(count));
    left -= absl::Seconds(count);
    waves.push_back(count);
  }
  return waves;
}

TEST(WavePace, DoublesUntilAllDrawsAreIn) {
  EXPECT_THAT(Waves(1, absl::Hours(1)), ElementsAre(1));
  EXPECT_THAT(Waves(7, absl::Hours(1)), ElementsAre(1, 2, 4));
  EXPECT_THAT(Waves(12, absl::Hours(1)), ElementsAre(1, 2, 4, 5));
}

TEST(WavePace, TakesInTheLastWaveWhatFitsWithAQuarterToSpare) {
  EXPECT_THAT(Waves(100, absl::Seconds(7)), ElementsAre(1, 2, 3)) << "4 s are left: 3 draws take 3.75";
  EXPECT_THAT(Waves(100, absl::Seconds(3)), ElementsAre(1, 1)) << "not 2, which take 2.5 with the reserve";
  EXPECT_THAT(Waves(100, absl::Seconds(2.2)), ElementsAre(1));
}

TEST(WavePace, TakesTheFirstWaveWhateverIsLeft) {
  EXPECT_THAT(Waves(100, absl::ZeroDuration()), ElementsAre(1));
  EXPECT_THAT(Waves(100, -absl::Seconds(1)), ElementsAre(1));
}

}  // namespace
}  // namespace chainfleet

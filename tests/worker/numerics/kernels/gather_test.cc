#include "worker/numerics/kernels/gather.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/numerics/kernels/lane_arrays.h"
#include "worker/numerics/kernels/lanes.h"

namespace chainfleet {
namespace {

using testing::AlignedFloats;
constexpr float kUntouched = 12345;

template <typename T>
void ExpectNormalised(int64_t channels, int64_t channel_size, float value_scale) {
  const int64_t size = channels * channel_size;
  std::vector<float> scale, shift;
  for (int64_t c = 0; c < channels; ++c) {
    scale.push_back(0.3f + 0.1f * static_cast<float>(c));
    shift.push_back(static_cast<float>(c) - 1.7f);
  }
  const AlignedFloats values(size, 5);
  std::vector<T> row;  // ends with the row, so that a sanitizer detects reads beyond it
  for (int64_t i = 0; i < size; ++i) row.push_back(static_cast<T>(value_scale * std::abs(values[i])));
  std::vector<float> out(static_cast<size_t>(size) + 16, kUntouched);
  NormaliseRow({channels, channel_size, scale.data(), shift.data()}, row.data(), out.data());
  for (size_t i = 0; i < row.size(); ++i) {
    const size_t c = i / static_cast<size_t>(channel_size);
    EXPECT_NEAR(out[i], static_cast<double>(row[i]) * scale[c] + shift[c], 2e-7 * value_scale * (1 + scale[c]));
  }
  for (size_t i = row.size(); i < out.size(); ++i) EXPECT_EQ(out[i], kUntouched) << "wrote beyond the row";
}

TEST(NormaliseRow, ScalesAndShiftsEachChannelOfAnySize) {
  testing::ForEachTarget([] {
    for (const int64_t channels : {1, 3}) {
      for (const int64_t channel_size : {1, 3, 15, 16, 17, 33, 784}) {
        SCOPED_TRACE(::testing::Message() << channels << " channels of " << channel_size);
        ExpectNormalised<uint8_t>(channels, channel_size, 255);
        ExpectNormalised<float>(channels, channel_size, 4);
      }
    }
    for (const int64_t columns : {5, 15, 16, 18, 40}) {
      SCOPED_TRACE(columns);
      ExpectNormalised<uint8_t>(columns, 1, 255);
      ExpectNormalised<float>(columns, 1, 4);
    }
  });
}

TEST(NormaliseRow, KeepsTheFullRangeOfBytes) {
  testing::ForEachTarget([] {
    std::vector<uint8_t> row(256);
    for (size_t i = 0; i < 256; ++i) row[i] = static_cast<uint8_t>(i);
    std::vector<float> out(256);
    const float scale = 1, shift = 0;
    NormaliseRow({1, 256, &scale, &shift}, row.data(), out.data());
    for (size_t i = 0; i < 256; ++i) EXPECT_EQ(out[i], static_cast<float>(i));
  });
}

TEST(NormaliseRow, HasTheSameBitsForEveryVectorWidth) {
  const AlignedFloats row(37, 3);
  const float scale = 0.37f, shift = 0.11f;
  const auto normalised = [&] {
    std::vector<float> out(37);
    NormaliseRow({1, 37, &scale, &shift}, row.data(), out.data());
    return out;
  };
  const std::vector<float> expected = normalised();
  testing::ForEachFusedTarget([&] { EXPECT_EQ(normalised(), expected); });
}

TEST(RowsToLanes, PutsImagesSideBySide) {
  testing::ForEachTarget([] {
    for (const int64_t features : {1, 3, 4, 7, 16, 50}) {
      for (const int64_t images : {1, 5, 15, 16}) {
        const int64_t stride = features + 3;
        AlignedFloats rows(kLanes * stride, 7);
        for (int64_t i = images * stride; i < rows.size(); ++i) rows[i] = std::numeric_limits<float>::quiet_NaN();
        AlignedFloats lanes(features * kLanes + 16);
        for (int64_t i = 0; i < lanes.size(); ++i) lanes[i] = kUntouched;
        RowsToLanes(rows.data(), stride, images, features, lanes.data());
        for (int64_t f = 0; f < features; ++f) {
          for (int64_t l = 0; l < kLanes; ++l) {
            ASSERT_EQ(lanes[f * kLanes + l], l < images ? rows[l * stride + f] : 0) << "feature " << f << " lane " << l;
          }
        }
        for (int64_t i = features * kLanes; i < lanes.size(); ++i) ASSERT_EQ(lanes[i], kUntouched);
      }
    }
  });
}

TEST(LanesToRows, UndoesItAndLeavesWhatLiesBetweenRows) {
  testing::ForEachTarget([] {
    for (const int64_t features : {1, 3, 4, 7, 16, 50}) {
      const int64_t stride = features + 5;
      const AlignedFloats lanes(features * kLanes, 9);
      std::vector<float> rows(static_cast<size_t>(kLanes * stride), kUntouched);
      LanesToRows(lanes.data(), features, rows.data(), stride);
      for (int64_t l = 0; l < kLanes; ++l) {
        for (int64_t f = 0; f < stride; ++f) {
          ASSERT_EQ(rows[static_cast<size_t>(l * stride + f)], f < features ? lanes[f * kLanes + l] : kUntouched);
        }
      }
      AlignedFloats back(features * kLanes);
      RowsToLanes(rows.data(), stride, kLanes, features, back.data());
      EXPECT_EQ(back.ToVector(), lanes.ToVector());
    }
  });
}

}  // namespace
}  // namespace chainfleet

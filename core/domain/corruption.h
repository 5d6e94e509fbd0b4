// Image corruptions that a network was not trained on, generated from keys (after Hendrycks and Dietterich 2019).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace chainfleet {

// worker/numerics/dataset/corrupted_images.h has the formulas. The values key random numbers: append, never renumber.
enum class CorruptionKind {
  kGaussianNoise,
  kShotNoise,
  kImpulseNoise,
  kSpeckleNoise,
  kDefocusBlur,
  kGaussianBlur,
  kMotionBlur,
  kBrightness,
  kContrast,
  kFog,
  kPixelate,
  kRotate,
};
inline std::initializer_list<const char*> EnumNames(CorruptionKind) {
  static constexpr std::initializer_list<const char*> kNames = {
      "gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise", "defocus_blur", "gaussian_blur",
      "motion_blur",    "brightness", "contrast",      "fog",           "pixelate",     "rotate"};
  return kNames;
}

// One corruption of the rows of a stored data set, applied before the rows are normalised.
struct Corruption {
  std::string name;
  int32_t severity = 1;  // 1 to 5
  uint64_t seed = 0;     // the key Fold(seed, r) changes row r of the data set in every request
  static void Fields(auto& self, auto&& visit) {
    visit("name", self.name);
    visit("severity", self.severity);
    visit("seed", self.seed);
  }
  bool operator==(const Corruption&) const = default;
};

// Returns the names in the order of CorruptionKind.
std::vector<std::string> CorruptionNames();

// Returns violations at "corruption.name" (lists the valid names) and "corruption.severity".
std::vector<FieldViolation> Validate(const Corruption& corruption);

inline constexpr int64_t kMinCorruptedSide = 8;

// Returns one violation at "corruption" unless inputs are images [channels, height, width] whose sides are at least
// kMinCorruptedSide pixels. Any number of channels is valid.
std::vector<FieldViolation> ValidateForImages(const Corruption& corruption, const std::vector<int64_t>& input_shape);

}  // namespace chainfleet

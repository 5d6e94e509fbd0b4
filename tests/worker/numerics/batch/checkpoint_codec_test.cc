#include "worker/numerics/batch/checkpoint_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "core/store/draw_codec/safetensors.h"

namespace chainfleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Checkpoint Some() {
  return {.job = "digits-aaaaaa",
          .chain = 3,
          .step = 1'234'567'890'123,
          .names = {"theta", "theta_a"},
          .arenas = {{1, -0.0f, 1e-40f}, {std::numeric_limits<float>::infinity(), 4, 5}},
          .numbers = {0.1, -2}};
}

std::string File(const std::map<std::string, std::string>& metadata) {
  const float theta[2] = {1, 2};
  return WriteSafetensors({{"theta", TensorType::kFloat32, {2}, reinterpret_cast<const char*>(theta), 8}}, metadata);
}

TEST(CheckpointCodec, RoundTripsEveryBit) {
  const Checkpoint checkpoint = Some();
  const absl::StatusOr<Checkpoint> back = DecodeCheckpoint(EncodeCheckpoint(checkpoint));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, checkpoint);
  EXPECT_TRUE(std::signbit(back->arenas[0][1]));
}

TEST(CheckpointCodec, RoundTripsAKernelWithoutNumbers) {
  Checkpoint checkpoint = Some();
  checkpoint.numbers.clear();
  EXPECT_EQ(*DecodeCheckpoint(EncodeCheckpoint(checkpoint)), checkpoint);
}

TEST(CheckpointCodec, KeepsTheRunReportBitForBitWithAbsentValues) {
  Checkpoint checkpoint = Some();
  checkpoint.report = RunReport{.step = 12,
                                .step_size = 1.0 / 3e7,
                                .temperature = 1e-4,
                                .gradient_variance = 123456.789012345,
                                .noise_ulps = std::numeric_limits<double>::denorm_min(),
                                .curvature = -2.5};
  EXPECT_EQ(*DecodeCheckpoint(EncodeCheckpoint(checkpoint)), checkpoint);
}

TEST(CheckpointCodec, ReadsTheKnownFieldsOfAReportOfAnotherBuild) {
  const absl::StatusOr<Checkpoint> read =
      DecodeCheckpoint(File({{"format", "chainfleet-resume-point"},
                             {"version", std::to_string(kResumePointVersion)},
                             {"job", "digits-aaaaaa"},
                             {"chain", "3"},
                             {"step", "7"},
                             {"report", "later_field=3 curvature=2.5 step=4 step_size=nonsense"}}));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->report, (RunReport{.step = 4, .curvature = 2.5}));
}

TEST(CheckpointCodec, GivesTheSameBytesForTheSameCheckpoint) {
  EXPECT_EQ(EncodeCheckpoint(Some()), EncodeCheckpoint(Some()));
  Checkpoint later = Some();
  ++later.step;
  EXPECT_NE(EncodeCheckpoint(later), EncodeCheckpoint(Some()));
}

TEST(CheckpointCodec, ReadsTheOldestVersionWithoutNumbers) {
  const absl::StatusOr<Checkpoint> old = DecodeCheckpoint(File({{"format", "chainfleet-resume-point"},
                                                                {"version", std::to_string(kOldestResumePointVersion)},
                                                                {"job", "digits-aaaaaa"},
                                                                {"chain", "3"},
                                                                {"step", "7"}}));
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_EQ(*old, (Checkpoint{"digits-aaaaaa", 3, 7, {"theta"}, {{1, 2}}, {}}));
}

TEST(CheckpointCodec, NamesTheVersionsOfAFormatItDoesNotRead) {
  for (const int32_t version : {kOldestResumePointVersion - 1, kResumePointVersion + 1}) {
    const absl::Status status = DecodeCheckpoint(File({{"format", "chainfleet-resume-point"},
                                                       {"version", std::to_string(version)},
                                                       {"chain", "3"},
                                                       {"step", "7"}}))
                                    .status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << version;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("format " + std::to_string(version)), HasSubstr("run")));
  }
}

TEST(CheckpointCodec, RefusesWhatIsNoResumePoint) {
  const std::map<std::string, std::string> good = {{"format", "chainfleet-resume-point"},
                                                   {"version", std::to_string(kResumePointVersion)},
                                                   {"job", "digits-aaaaaa"},
                                                   {"chain", "3"},
                                                   {"step", "7"}};
  ASSERT_TRUE(DecodeCheckpoint(File(good)).ok());
  for (const std::string key : {"format", "version", "chain", "step"}) {
    for (const std::string value : {"", "x", "-1", "7x", "99999999999999999999"}) {
      auto metadata = good;
      metadata[key] = value;
      EXPECT_TRUE(absl::IsInvalidArgument(DecodeCheckpoint(File(metadata)).status())) << key << " = " << value;
    }
    auto metadata = good;
    metadata.erase(key);
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeCheckpoint(File(metadata)).status())) << "no " << key;
  }
  const std::string zeros(16, '\0');
  for (const TensorView& tensor : {TensorView{"theta", TensorType::kFloat64, {2}, zeros.data(), 16},
                                   TensorView{"theta", TensorType::kFloat32, {2, 2}, zeros.data(), 16}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeCheckpoint(WriteSafetensors({tensor}, good)).status()));
  }
  const std::string bytes = EncodeCheckpoint(Some());
  for (const std::string& broken : {std::string(), std::string("junk"), bytes.substr(0, bytes.size() - 1)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeCheckpoint(broken).status()));
  }
}

TEST(CheckFits, TakesOnlyThisChainsArenas) {
  const Checkpoint checkpoint = Some();
  EXPECT_TRUE(CheckFits(checkpoint, "digits-aaaaaa", 3, {"theta", "theta_a"}, 3).ok());
  for (const absl::Status& status : {CheckFits(checkpoint, "digits-bbbbbb", 3, {"theta", "theta_a"}, 3),
                                     CheckFits(checkpoint, "digits-aaaaaa", 4, {"theta", "theta_a"}, 3),
                                     CheckFits(checkpoint, "digits-aaaaaa", 3, {"theta"}, 3),
                                     CheckFits(checkpoint, "digits-aaaaaa", 3, {"theta_a", "theta"}, 3),
                                     CheckFits(checkpoint, "digits-aaaaaa", 3, {"theta", "theta_a"}, 4)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  }
}

}  // namespace
}  // namespace chainfleet

#include "core/store/draw_codec/segment_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/store/draw_codec/safetensors.h"

namespace chainfleet {
namespace {

const std::vector<ParameterShape> kParameters = {{"fc.weight", {2, 2}, 0, 2}, {"fc.bias", {2}, 4, 2}};

SegmentContent Content() {
  return {.chain = {"job-abcdef", 3},
          .segment = {.first_index = 5,
                      .kinds = {DrawKind::kTheta, DrawKind::kThetaA},
                      .parent_digest = FirstParentDigest()},
          .draws = {{.step = 10, .weight = 1, .theta = {{1, 2, 3, 4, 5, 6}, {-1, -2, -3, -4, -5, -6}}},
                    {.step = 20, .weight = 2.5, .theta = {{7, 8, 9, 10, 11, 12}, {-7, -8, -9, -10, -11, -12}}}}};
}

// Also completes the segment.
std::string Encode(SegmentContent* content) {
  return EncodeSegment(content->chain, content->draws, kParameters, &content->segment);
}

TEST(SegmentCodec, RoundTripsAllKindsInLayoutOrder) {
  SegmentContent content = Content();
  const auto decoded = DecodeSegment(Encode(&content));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->chain, content.chain);
  EXPECT_EQ(decoded->segment, content.segment);
  EXPECT_THAT(decoded->segment.steps, ::testing::ElementsAre(10, 20));
  ASSERT_EQ(decoded->draws.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(decoded->draws[i].step, content.draws[i].step);
    EXPECT_EQ(decoded->draws[i].weight, content.draws[i].weight);
    EXPECT_EQ(decoded->draws[i].theta, content.draws[i].theta);
    for (const std::vector<float>& theta : decoded->draws[i].theta) {
      EXPECT_EQ(theta.capacity(), theta.size()) << "the caches of draws count no more";
    }
  }
}

TEST(SegmentCodec, IsASafetensorsFileOfStackedDraws) {
  SegmentContent content = Content();
  const std::string bytes = Encode(&content);
  const auto file = ParseSafetensors(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(WriteSafetensors(file->tensors, file->metadata), bytes);
  const TensorView* const bias = file->Find("theta_a/fc.bias");
  ASSERT_NE(bias, nullptr);
  EXPECT_THAT(bias->shape, ::testing::ElementsAre(2, 2));
  const float stacked[] = {-5, -6, -11, -12};
  EXPECT_EQ(std::string(bias->data, static_cast<size_t>(bias->size_bytes)),
            std::string(reinterpret_cast<const char*>(stacked), sizeof stacked));
}

TEST(SegmentCodec, TheDigestCoversEverythingThatMatters) {
  std::set<DigestHex> digests;
  const auto changed = [&](auto change) {
    SegmentContent content = Content();
    change(content);
    Encode(&content);
    return digests.insert(content.segment.digest).second;
  };
  EXPECT_TRUE(changed([](SegmentContent&) {}));
  EXPECT_TRUE(changed([](SegmentContent& c) { c.segment.parent_digest[0] = '1'; }));
  EXPECT_TRUE(changed([](SegmentContent& c) { c.chain.job += "x"; }));
  EXPECT_TRUE(changed([](SegmentContent& c) { c.chain.index = 4; }));
  EXPECT_TRUE(changed([](SegmentContent& c) { c.segment.first_index = 6; }));
  EXPECT_TRUE(changed([](SegmentContent& c) { c.draws[1].step = 21; }));
  EXPECT_TRUE(changed([](SegmentContent& c) { c.draws[1].weight = 1; }));
  EXPECT_TRUE(changed([](SegmentContent& c) { c.draws[1].theta[1][5] = 0; }));
  EXPECT_TRUE(changed([](SegmentContent& c) { c.draws.pop_back(); }));
  EXPECT_TRUE(changed([](SegmentContent& c) {
    c.segment.kinds.pop_back();
    for (Draw& draw : c.draws) draw.theta.pop_back();
  }));
}

TEST(SegmentCodec, DamageIsDataLoss) {
  SegmentContent content = Content();
  const std::string bytes = Encode(&content);
  EXPECT_EQ(DecodeSegment(bytes.substr(0, bytes.size() - 1)).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(DecodeSegment("").status().code(), absl::StatusCode::kDataLoss);
  std::string renamed = bytes;
  renamed.replace(renamed.find("theta/fc.bias"), 5, "omega");
  EXPECT_EQ(DecodeSegment(renamed).status().code(), absl::StatusCode::kDataLoss);
}

TEST(SegmentCodec, KindsOfDifferentSizesAreDataLoss) {
  const int64_t step = 1;
  const double weight = 1;
  const float values[] = {1, 2, 3};
  const auto bytes_of = [](const auto* data) { return reinterpret_cast<const char*>(data); };
  const std::string file = WriteSafetensors({{"steps", TensorType::kInt64, {1}, bytes_of(&step), 8},
                                             {"weights", TensorType::kFloat64, {1}, bytes_of(&weight), 8},
                                             {"theta/x", TensorType::kFloat32, {1, 3}, bytes_of(values), 12},
                                             {"theta_a/x", TensorType::kFloat32, {1, 2}, bytes_of(values), 8}},
                                            {{"chainfleet_segment_format", "1"},
                                             {"job", "j"},
                                             {"chain", "0"},
                                             {"first_index", "0"},
                                             {"parent_digest", FirstParentDigest()}});
  EXPECT_THAT(std::string(DecodeSegment(file).status().message()), ::testing::HasSubstr("kinds differ in size"));
}

TEST(SegmentCodec, ANewerFormatIsRefusedWithBothNumbers) {
  SegmentContent content = Content();
  std::string bytes = Encode(&content);
  const std::string key = "\"chainfleet_segment_format\":\"1\"";
  bytes.replace(bytes.find(key) + key.size() - 2, 1, "9");
  const absl::Status status = DecodeSegment(bytes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("format 9 cannot be read: this build reads 1 to 1"));
}

}  // namespace
}  // namespace chainfleet

#include "core/store/draw_codec/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "core/store/draw_codec/sha256.h"

namespace chainfleet {
namespace {

using ::testing::HasSubstr;

std::string File(const std::string& header, const std::string& data) {
  const uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), 8) + header + data;
}

std::string Error(const std::string& bytes) { return std::string(ParseSafetensors(bytes).status().message()); }

TEST(Safetensors, RoundTrips) {
  const float values[] = {1, 2, 3, 4, 5, 6};
  const uint8_t bytes[] = {7, 8};
  const std::string file =
      WriteSafetensors({{"a", TensorType::kFloat32, {2, 3}, reinterpret_cast<const char*>(values), 24},
                        {"b", TensorType::kUint8, {2}, reinterpret_cast<const char*>(bytes), 2}},
                       {{"k", "v"}});
  EXPECT_EQ(static_cast<uint8_t>(file[0]) % 8, 0);
  const auto parsed = ParseSafetensors(file);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->metadata.at("k"), "v");
  ASSERT_NE(parsed->Find("a"), nullptr);
  EXPECT_EQ(parsed->Find("a")->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::string(parsed->Find("b")->data, 2), "\x07\x08");
  EXPECT_EQ(parsed->Find("c"), nullptr);
}

TEST(Safetensors, AnEmptyFileIsValid) { EXPECT_TRUE(ParseSafetensors(File("{}", "")).ok()); }

TEST(Safetensors, RefusesWhatAStrictReaderRefuses) {
  const std::string a = R"("a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]})";
  EXPECT_TRUE(ParseSafetensors(File("{" + a + "}", "xy")).ok());
  EXPECT_THAT(Error("short"), HasSubstr("shorter than 8"));
  EXPECT_THAT(Error(File("{" + a + "}", "x")), HasSubstr("end at 2, the data at 1"));
  EXPECT_THAT(Error(File("{" + a + "}", "xyz")), HasSubstr("end at 2, the data at 3"));
  EXPECT_THAT(Error(File("{" + a + "," + a + "}", "xy")), HasSubstr("occurs twice"));
  EXPECT_THAT(Error(File("{" + a, "xy")), HasSubstr("not a JSON object"));
  EXPECT_THAT(Error(File("{\"\xff\":1}", "")), HasSubstr("not a JSON object"));
  EXPECT_THAT(Error(File("[]", "")), HasSubstr("not a JSON object"));
  EXPECT_THAT(Error(File("", "")), HasSubstr("not a JSON object"));
  EXPECT_THAT(Error(File(" {}", "")), HasSubstr("not a JSON object"));
  EXPECT_THAT(Error(File("\xef\xbb\xbf{}", "")), HasSubstr("not a JSON object"));
  EXPECT_THAT(Error(File(std::string("{}\0{", 4), "")), HasSubstr("not a JSON object"));
  EXPECT_THAT(Error(File(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,2]}})", "xy")), HasSubstr("disagree"));
  EXPECT_THAT(Error(File(R"({"a":{"dtype":"U9","shape":[2],"data_offsets":[0,2]}})", "xy")), HasSubstr("dtype"));
  EXPECT_THAT(Error(File(R"({"a":{"dtype":"U8","shape":[-2],"data_offsets":[0,2]}})", "xy")), HasSubstr("not a size"));
  EXPECT_THAT(Error(File(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", "xy")), HasSubstr("hole"));
  EXPECT_THAT(Error(File(R"({"a":{"dtype":"F64","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", "")),
              HasSubstr("overflows"));
  EXPECT_THAT(Error(File(R"({"__metadata__":{"k":1}})", "")), HasSubstr("not a string"));
  std::string long_header = File("{}", "");
  long_header[7] = '\x7f';
  EXPECT_THAT(Error(long_header), HasSubstr("cut or too long"));
}

// Parsers that search all keys for each one would need minutes.
TEST(Safetensors, ReadsALongHeader) {
  constexpr int kKeys = 100'000;
  std::string tensors = "{", damaged = "{", metadata = R"({"__metadata__":{)";
  for (int i = 0; i < kKeys; ++i) {
    const char* const comma = i == 0 ? "" : ",";
    absl::StrAppend(&tensors, comma, "\"", i, R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})");
    absl::StrAppend(&damaged, comma, "\"", i, "\":{}");
    absl::StrAppend(&metadata, comma, "\"", i, "\":\"\"");
  }
  const auto file = ParseSafetensors(File(tensors + "}", ""));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->tensors.size(), static_cast<size_t>(kKeys));
  EXPECT_THAT(Error(File(damaged + "}", "")), HasSubstr("dtype"));
  EXPECT_THAT(Error(File(damaged + ",\"7\":{}}", "")), HasSubstr("occurs twice"));
  EXPECT_TRUE(ParseSafetensors(File(metadata + "}}", "")).ok());
}

TEST(Safetensors, RefusesOverlaps) {
  EXPECT_THAT(
      Error(File(
          R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
          "xyz")),
      HasSubstr("overlap"));
}

TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace chainfleet

#include "core/formats/zarr_codec.h"

#include <blosc.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include "tests/support/deflated.h"

namespace chainfleet {
namespace {

using ::testing::HasSubstr;

std::string Blosc(const std::string& content, const char* codec) {
  std::string stored(content.size() + BLOSC_MAX_OVERHEAD, '\0');
  const int size =
      blosc_compress_ctx(5, 1, 4, content.size(), content.data(), stored.data(), stored.size(), codec, 0, 1);
  EXPECT_GT(size, 0) << codec;
  stored.resize(static_cast<size_t>(size));
  return stored;
}

std::string Zstd(const std::string& content) {
  std::string stored(ZSTD_compressBound(content.size()), '\0');
  stored.resize(ZSTD_compress(stored.data(), stored.size(), content.data(), content.size(), 3));
  return stored;
}

struct Sample {
  ZarrCompressor compressor;
  std::string stored;
};

std::vector<Sample> Samples(const std::string& content) {
  return {{ZarrCompressor::kNone, content},
          {ZarrCompressor::kZlib, Deflated(content, kZlibFormat)},
          {ZarrCompressor::kGzip, Deflated(content, kGzipFormat)},
          {ZarrCompressor::kBlosc, Blosc(content, "lz4")},
          {ZarrCompressor::kBlosc, Blosc(content, "blosclz")},
          {ZarrCompressor::kBlosc, Blosc(content, "zlib")},
          {ZarrCompressor::kBlosc, Blosc(content, "zstd")},
          {ZarrCompressor::kZstd, Zstd(content)}};
}

std::string Content() {
  std::string content;
  for (int i = 0; i < 4000; ++i) content += std::string(1, static_cast<char>(i / 7)) + "abc";
  return content;
}

std::string Error(const Sample& sample, std::string stored, size_t size_bytes) {
  const auto content = DecodeZarrChunk(sample.compressor, std::move(stored), static_cast<int64_t>(size_bytes));
  EXPECT_TRUE(absl::IsInvalidArgument(content.status())) << content.status();
  return std::string(content.status().message());
}

TEST(DecodeZarrChunk, ReadsEachCompressor) {
  const std::string content = Content();
  for (const Sample& sample : Samples(content)) {
    const auto decoded = DecodeZarrChunk(sample.compressor, sample.stored, static_cast<int64_t>(content.size()));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(*decoded, content);
  }
}

TEST(DecodeZarrChunk, RefusesContentOfAnotherSize) {
  const std::string content = Content();
  for (const Sample& sample : Samples(content)) {
    EXPECT_THAT(Error(sample, sample.stored, content.size() + 1), HasSubstr("16000 bytes"));
    EXPECT_THAT(Error(sample, sample.stored, content.size() - 1), HasSubstr("15999"));
  }
}

TEST(DecodeZarrChunk, RefusesBytesThatAreCutFollowedOrDamaged) {
  const std::string content = Content();
  for (const Sample& sample : Samples(content)) {
    Error(sample, sample.stored.substr(0, sample.stored.size() - 1), content.size());
    Error(sample, sample.stored + "x", content.size());
    Error(sample, "", content.size());
    if (sample.compressor == ZarrCompressor::kNone) continue;
    Error(sample, std::string(content.size(), '\x55'), content.size());
    // The content may be anything, but nothing else may happen.
    for (size_t at = 0; at < sample.stored.size(); at += 1 + sample.stored.size() / 400) {
      std::string damaged = sample.stored;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
      const auto decoded = DecodeZarrChunk(sample.compressor, damaged, static_cast<int64_t>(content.size()));
      EXPECT_TRUE(!decoded.ok() || decoded->size() == content.size());
    }
  }
}

TEST(ZarrCompressorOf, KnowsTheIdsOfNumcodecs) {
  EXPECT_EQ(ZarrCompressorOf("blosc"), ZarrCompressor::kBlosc);
  EXPECT_EQ(ZarrCompressorOf("zstd"), ZarrCompressor::kZstd);
  EXPECT_EQ(ZarrCompressorOf("zlib"), ZarrCompressor::kZlib);
  EXPECT_EQ(ZarrCompressorOf("gzip"), ZarrCompressor::kGzip);
  EXPECT_EQ(ZarrCompressorOf("lzma"), std::nullopt);
}

}  // namespace
}  // namespace chainfleet

// Compresses test data with zlib.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

namespace chainfleet {

constexpr int kZlibFormat = 15, kGzipFormat = 15 + 16;  // zlib's window bits, which also choose the format

inline std::string Deflated(const std::string& content, int format) {
  constexpr int kBestMemory = 9;
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, format, kBestMemory, Z_DEFAULT_STRATEGY), Z_OK);
  std::string stored(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(stored.data());
  stream.avail_out = static_cast<uInt>(stored.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  stored.resize(stream.total_out);
  deflateEnd(&stream);
  return stored;
}

}  // namespace chainfleet

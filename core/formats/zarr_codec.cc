#include "core/formats/zarr_codec.h"

#include <blosc.h>
#include <zlib.h>
#include <zstd.h>

#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"

namespace chainfleet {
namespace {

constexpr int kZlibWindow = 15, kGzipWindow = 15 + 16;

absl::Status OtherSize(int64_t size, int64_t wanted) {
  return absl::InvalidArgumentError(absl::StrCat("decodes to ", size, " bytes, its array's chunks have ", wanted));
}

absl::StatusOr<std::string> Inflate(const std::string& stored, int window, int64_t size_bytes) {
  if (stored.size() > std::numeric_limits<uInt>::max()) return absl::InvalidArgumentError("is over 4 GiB");
  z_stream stream = {};
  if (inflateInit2(&stream, window) != Z_OK) return absl::InternalError("zlib does not start");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  std::string content(static_cast<size_t>(size_bytes), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(stored.data()));
  stream.avail_in = static_cast<uInt>(stored.size());
  stream.next_out = reinterpret_cast<Bytef*>(content.data());
  stream.avail_out = static_cast<uInt>(content.size());
  const int result = inflate(&stream, Z_FINISH);
  if (result == Z_STREAM_END && stream.avail_in == 0) {
    if (stream.avail_out == 0) return content;
    return OtherSize(static_cast<int64_t>(stream.total_out), size_bytes);
  }
  if (result == Z_BUF_ERROR && stream.avail_out == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("decodes to more than the ", size_bytes, " bytes that its array's chunks have"));
  }
  return absl::InvalidArgumentError("is cut, damaged or followed by other bytes");
}

absl::StatusOr<std::string> DecodeBlosc(const std::string& stored, int64_t size_bytes) {
  size_t size = 0;
  if (blosc_cbuffer_validate(stored.data(), stored.size(), &size) != 0)
    return absl::InvalidArgumentError("is no Blosc buffer, or a cut one");
  if (static_cast<int64_t>(size) != size_bytes) return OtherSize(static_cast<int64_t>(size), size_bytes);
  std::string content(size, '\0');
  if (blosc_decompress_ctx(stored.data(), content.data(), content.size(), 1) == static_cast<int>(size)) return content;
  const char* library = blosc_cbuffer_complib(stored.data());
  return absl::InvalidArgumentError(absl::StrCat("is damaged, or Blosc's codec ", library ? library : "in it",
                                                 " is not supported here: lz4, zstd, zlib and blosclz are"));
}

absl::StatusOr<std::string> DecodeZstd(const std::string& stored, int64_t size_bytes) {
  std::string content(static_cast<size_t>(size_bytes), '\0');
  const size_t size = ZSTD_decompress(content.data(), content.size(), stored.data(), stored.size());
  if (ZSTD_isError(size)) {
    return absl::InvalidArgumentError(
        absl::StrCat("does not decode to the ", size_bytes, " bytes of a chunk: ", ZSTD_getErrorName(size)));
  }
  if (size != content.size()) return OtherSize(static_cast<int64_t>(size), size_bytes);
  return content;
}

}  // namespace

std::optional<ZarrCompressor> ZarrCompressorOf(const std::string& id) {
  if (id == "zlib") return ZarrCompressor::kZlib;
  if (id == "gzip") return ZarrCompressor::kGzip;
  if (id == "blosc") return ZarrCompressor::kBlosc;
  if (id == "zstd") return ZarrCompressor::kZstd;
  return std::nullopt;
}

absl::StatusOr<std::string> DecodeZarrChunk(ZarrCompressor compressor, std::string stored, int64_t size_bytes) {
  switch (compressor) {
    case ZarrCompressor::kNone:
      if (static_cast<int64_t>(stored.size()) != size_bytes)
        return OtherSize(static_cast<int64_t>(stored.size()), size_bytes);
      return stored;
    case ZarrCompressor::kZlib:
      return Inflate(stored, kZlibWindow, size_bytes);
    case ZarrCompressor::kGzip:
      return Inflate(stored, kGzipWindow, size_bytes);
    case ZarrCompressor::kBlosc:
      return DecodeBlosc(stored, size_bytes);
    case ZarrCompressor::kZstd:
      return DecodeZstd(stored, size_bytes);
  }
  return absl::InternalError("no such compressor");
}

}  // namespace chainfleet

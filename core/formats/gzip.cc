#include "core/formats/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"

namespace chainfleet {

bool IsGzip(const std::string& bytes) { return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b'; }

absl::StatusOr<std::string> Gunzip(const std::string& bytes) {
  z_stream stream = {};
  constexpr int kGzipWindow = 15 + 16;
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) return absl::InternalError("zlib does not start");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string content;
  int result = Z_OK;
  while (result == Z_OK) {
    const size_t done = content.size();
    if (static_cast<int64_t>(done) > limits::kMaxBlobBytes)
      return absl::ResourceExhaustedError("gzip content is over 4 GiB");
    content.resize(done + std::max<size_t>(64 * 1024, done / 2));
    stream.next_out = reinterpret_cast<Bytef*>(content.data() + done);
    stream.avail_out = static_cast<uInt>(content.size() - done);
    result = inflate(&stream, Z_NO_FLUSH);
    content.resize(content.size() - stream.avail_out);
  }
  if (result != Z_STREAM_END) {
    return absl::InvalidArgumentError(
        absl::StrCat("gzip data is cut or damaged after ", content.size(), " bytes of content"));
  }
  if (stream.avail_in != 0) {
    return absl::InvalidArgumentError(absl::StrCat("gzip data is followed by ", stream.avail_in, " other bytes"));
  }
  return content;
}

}  // namespace chainfleet

#include "core/formats/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"

namespace chainfleet {
namespace {

// A buffer that one call of zlib may fill.
struct Room {
  char* data;
  size_t size;
};

// Inflates `bytes` and returns the size. `next_room(done)` returns the buffer after `done` bytes of content.
absl::StatusOr<int64_t> Inflate(const std::string& bytes,
                                const std::function<absl::StatusOr<Room>(int64_t done)>& next_room) {
  if (bytes.size() > std::numeric_limits<uInt>::max())
    return absl::ResourceExhaustedError("compressed data is over 4 GiB");
  z_stream stream = {};
  constexpr int kWindow = 15 + 32;  // gzip or zlib, whichever the header says
  if (inflateInit2(&stream, kWindow) != Z_OK) return absl::InternalError("zlib does not start");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  int64_t done = 0;
  int result = Z_OK;
  while (result == Z_OK) {
    CHAINFLEET_ASSIGN_OR_RETURN(const Room room, next_room(done));
    stream.next_out = reinterpret_cast<Bytef*>(room.data);
    stream.avail_out = static_cast<uInt>(room.size);
    result = inflate(&stream, Z_NO_FLUSH);
    done += static_cast<int64_t>(room.size - stream.avail_out);
  }
  if (result != Z_STREAM_END) {
    return absl::InvalidArgumentError(
        absl::StrCat("compressed data is cut or damaged after ", done, " bytes of content"));
  }
  if (stream.avail_in != 0) {
    return absl::InvalidArgumentError(absl::StrCat("compressed data is followed by ", stream.avail_in, " other bytes"));
  }
  return done;
}

}  // namespace

bool IsGzip(const std::string& bytes) { return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b'; }

absl::StatusOr<std::string> Gunzip(const std::string& bytes, const AdmitBytes& admit) {
  std::array<char, 64 * 1024> scratch;
  int64_t admitted = 0;
  const auto measure = [&](int64_t done) -> absl::StatusOr<Room> {
    if (done > limits::kMaxBlobBytes) return absl::ResourceExhaustedError("compressed content is over 4 GiB");
    CHAINFLEET_RETURN_IF_ERROR(admit(done - admitted));
    admitted = done;
    return Room{scratch.data(), scratch.size()};
  };
  CHAINFLEET_ASSIGN_OR_RETURN(const int64_t size, Inflate(bytes, measure));
  CHAINFLEET_RETURN_IF_ERROR(admit(size - admitted));
  std::string content(static_cast<size_t>(size), '\0');
  const auto fill = [&](int64_t done) -> absl::StatusOr<Room> {
    constexpr size_t kMostAtOnce = 1 << 30;                         // zlib counts in 32 bits
    if (done == size) return Room{scratch.data(), scratch.size()};  // for the end of the stream, which adds no content
    return Room{content.data() + done, std::min(kMostAtOnce, static_cast<size_t>(size - done))};
  };
  CHAINFLEET_RETURN_IF_ERROR(Inflate(bytes, fill).status());
  return content;
}

}  // namespace chainfleet

// A permission to put one object into the blob store without credentials.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/base/limits.h"

namespace chainfleet {

namespace limits {

inline constexpr absl::Duration kSignedUploadTerm = absl::Minutes(1);  // time to start the upload
// Returns the time limit of the whole upload: 10 s plus 1 s for each MiB, enough at 1 MiB/s.
inline absl::Duration UploadTimeout(int64_t bytes) {
  return absl::Seconds(10) + absl::Seconds(static_cast<double>(bytes) / static_cast<double>(kMiB));
}

}  // namespace limits

struct SignedUpload {
  std::string url;                             // empty: the store signs no uploads; send the object through the server
  std::map<std::string, std::string> headers;  // headers that the request must carry unchanged
};

}  // namespace chainfleet

// Leave to put one object into the store of objects without credentials of one's own.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/base/limits.h"

namespace chainfleet {

namespace limits {

inline constexpr absl::Duration kSignedUploadTerm = absl::Minutes(1);  // to begin
// Of the whole upload: a slow line still gets 1 MiB a second through.
inline absl::Duration UploadTimeout(int64_t bytes) {
  return absl::Seconds(10) + absl::Seconds(static_cast<double>(bytes) / static_cast<double>(kMiB));
}

}  // namespace limits

struct SignedUpload {
  std::string url;                             // empty: there is no such way, the object goes through the server
  std::map<std::string, std::string> headers;  // that the request must carry, as they are
};

}  // namespace chainfleet

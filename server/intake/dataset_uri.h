// The name of a file that the server reads for a client.
#pragma once

#include <string>

#include "core/base/status.h"

namespace chainfleet {

struct DatasetUri {
  enum class Scheme { kFile, kS3 };
  Scheme scheme = Scheme::kFile;
  std::string bucket;  // of S3
  std::string path;    // percent-decoded: absolute on this host, `..` and links as they came; of S3 the key
};

// file:///PATH, with the host left out or localhost, or s3://BUCKET/KEY. INVALID_ARGUMENT, naming the URI: another
// scheme or host, a bad percent escape, a query or fragment, nothing or a folder where a file must be named, a key with
// a part `.` or `..`.
absl::StatusOr<DatasetUri> ParseDatasetUri(const std::string& uri);

}  // namespace chainfleet

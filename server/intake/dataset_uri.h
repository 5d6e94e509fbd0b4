// The URI of a file that the server reads for a client.
#pragma once

#include <string>

#include "core/base/status.h"

namespace chainfleet {

struct DatasetUri {
  enum class Scheme { kFile, kS3 };
  Scheme scheme = Scheme::kFile;
  std::string bucket;  // S3 only
  std::string path;    // percent-decoded; for files absolute, with `..` and links unresolved; for S3 the key
};

// Parses file:///PATH (host empty or localhost) or s3://BUCKET/KEY. INVALID_ARGUMENT, naming the URI: another scheme or
// host, a bad percent escape, a query or fragment, an empty path or a folder, or a key with a component `.` or `..`.
absl::StatusOr<DatasetUri> ParseDatasetUri(const std::string& uri);

}  // namespace chainfleet

// Parses the XML replies of S3. Pure functions; a body that is not the expected XML is INTERNAL.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace chainfleet {

// For example "NoSuchKey" and S3's message. Both are empty when the body holds no error.
struct S3Error {
  std::string code;
  std::string message;
};
S3Error ReadS3Error(const std::string& body);

// One page of ListObjectsV2.
struct S3Listing {
  std::vector<std::string> keys;   // in S3's order
  std::string continuation_token;  // for the next page; empty on the last
};
absl::StatusOr<S3Listing> ReadS3Listing(const std::string& body);

// Reads the upload id from the reply to CreateMultipartUpload.
absl::StatusOr<std::string> ReadS3UploadId(const std::string& body);

// The body of CompleteMultipartUpload: the parts' ETags in order.
std::string S3PartList(const std::vector<std::string>& etags);

}  // namespace chainfleet

// The S3 location of objects and its credentials, from s3://BUCKET/PREFIX and the environment variables that other S3
// clients use too.
#pragma once

#include <string>

#include "core/base/file_system.h"
#include "core/base/status.h"
#include "core/store/blob_store/s3_credentials.h"

namespace chainfleet {

struct S3Settings {
  std::string bucket;
  std::string prefix;     // begins every key; empty, or ends with '/'
  std::string endpoint;   // http(s)://HOST[:PORT] with the bucket in the path; empty: AWS, with the bucket in the host
  std::string region;     // used in signatures
  std::string ca_bundle;  // trusted certificates; empty: the system's
  CredentialReader credentials = FixedCredentials({});

  // Returns s3://BUCKET/PREFIX, with the prefix's '/'.
  std::string Url() const { return "s3://" + bucket + "/" + prefix; }
};

// Reads AWS_REGION or AWS_DEFAULT_REGION (us-east-1), AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, AWS_CA_BUNDLE, and where
// to find credentials. INVALID_ARGUMENT, naming the malformed setting; errors of FindCredentials.
absl::StatusOr<S3Settings> ReadS3Settings(const std::string& url, const Environment& environment,
                                          const FileSystem& files);

}  // namespace chainfleet

// The S3 location of objects and its credentials, from s3://BUCKET/PREFIX and the environment variables that other S3
// clients use too.
#pragma once

#include <functional>
#include <string>

#include "core/base/file_system.h"
#include "core/base/status.h"
#include "core/store/blob_store/s3_signature.h"

namespace chainfleet {

struct S3Settings {
  std::string bucket;
  std::string prefix;     // begins every key; empty, or ends with '/'
  std::string endpoint;   // http(s)://HOST[:PORT] with the bucket in the path; empty: AWS, with the bucket in the host
  std::string region;     // used in signatures
  std::string ca_bundle;  // trusted certificates; empty: the system's
  S3Credentials credentials;

  // Returns s3://BUCKET/PREFIX, with the prefix's '/'.
  std::string Url() const { return "s3://" + bucket + "/" + prefix; }
};

// Returns the value of an environment variable, "" if it is not set.
using Environment = std::function<std::string(const std::string& name)>;

// Reads AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, else profile AWS_PROFILE (default) of the file
// AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials); AWS_REGION or AWS_DEFAULT_REGION (us-east-1); AWS_ENDPOINT_URL_S3
// or AWS_ENDPOINT_URL; AWS_CA_BUNDLE. INVALID_ARGUMENT, naming the malformed setting; FAILED_PRECONDITION /
// NO_CREDENTIALS.
absl::StatusOr<S3Settings> ReadS3Settings(const std::string& url, const Environment& environment,
                                          const FileSystem& files);

}  // namespace chainfleet

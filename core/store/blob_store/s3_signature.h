// AWS Signature Version 4 for S3, which authenticates a request. Pure functions; thread-safe.
//
// AWS, "Authenticating Requests (AWS Signature Version 4)", Amazon S3 API Reference; the tests use its vectors.
#pragma once

#include <map>
#include <string>

#include "absl/time/time.h"

namespace chainfleet {

// Never log credentials or put them into a message.
struct S3Credentials {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;  // set for temporary credentials only
};

// The signed parts of a request. The sender must send exactly these.
struct S3SignedParts {
  std::string method;
  std::string path;                            // from "/", already encoded by PercentEncoded
  std::map<std::string, std::string> query;    // plain names and values
  std::map<std::string, std::string> headers;  // lower-case names, `host` among them, values without outer spaces
  std::string payload_sha256;                  // 64 hex digits of the body
};

// The scope and time of a signature. A server accepts signatures up to 15 minutes before or after its own clock.
struct S3SigningScope {
  absl::Time time;
  std::string region;
  std::string service = "s3";
};

// Returns name=value&..., encoded, in signing order.
std::string S3QueryString(const std::map<std::string, std::string>& query);

// Returns the value of x-amz-date: 20130524T000000Z.
std::string S3Timestamp(absl::Time time);

// Returns the value of the Authorization header. `parts.headers` must have x-amz-date, x-amz-content-sha256 and, with
// temporary credentials, x-amz-security-token.
std::string S3Authorization(const S3SignedParts& parts, const S3SigningScope& scope, const S3Credentials& credentials);

// Returns a query string that permits this one request for `valid_for` (1 s to 7 days), with exactly the headers of
// `parts`. A GET is signed with payload_sha256 "UNSIGNED-PAYLOAD".
std::string S3PresignedQuery(S3SignedParts parts, const S3SigningScope& scope, const S3Credentials& credentials,
                             absl::Duration valid_for);

}  // namespace chainfleet

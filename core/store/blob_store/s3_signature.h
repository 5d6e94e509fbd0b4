// Signature Version 4 of AWS for S3: who asks, proved over what is asked. Pure functions; thread-safe.
//
// AWS, "Authenticating Requests (AWS Signature Version 4)", Amazon S3 API Reference: the vectors of the tests are its.
#pragma once

#include <map>
#include <string>

#include "absl/time/time.h"

namespace chainfleet {

// Never logged, never in a message.
struct S3Credentials {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;  // of temporary credentials, else empty
};

// All that a signature covers. Whoever sends the request sends exactly this.
struct S3SignedParts {
  std::string method;
  std::string path;                            // from "/", already encoded by UriEncode
  std::map<std::string, std::string> query;    // plain names and values
  std::map<std::string, std::string> headers;  // lower-case names, `host` among them, values without outer spaces
  std::string payload_sha256;                  // 64 hex digits of the body
};

// For whom and when it holds: a server takes a signature of 15 minutes before or after its own clock.
struct S3SigningScope {
  absl::Time time;
  std::string region;
  std::string service = "s3";
};

// %XX for every byte but A-Za-z0-9-._~; '/' stays if `keep_slash`.
std::string UriEncode(const std::string& text, bool keep_slash);

// name=value&..., encoded, in the order that signing wants.
std::string S3QueryString(const std::map<std::string, std::string>& query);

// 20130524T000000Z: the value of x-amz-date.
std::string S3Timestamp(absl::Time time);

// The value of the Authorization header. `parts.headers` holds x-amz-date, x-amz-content-sha256 and, with temporary
// credentials, x-amz-security-token.
std::string S3Authorization(const S3SignedParts& parts, const S3SigningScope& scope, const S3Credentials& credentials);

// The query string that lets whoever holds it send this one request for `valid_for` (1 s to 7 days), with exactly the
// headers of `parts`. A GET is signed with payload_sha256 "UNSIGNED-PAYLOAD".
std::string S3PresignedQuery(S3SignedParts parts, const S3SigningScope& scope, const S3Credentials& credentials,
                             absl::Duration valid_for);

}  // namespace chainfleet

#include "core/store/blob_store/s3_signature.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/check.h"
#include "core/base/percent.h"
#include "core/store/draw_codec/sha256.h"

namespace chainfleet {
namespace {

constexpr char kAlgorithm[] = "AWS4-HMAC-SHA256";

std::string Hmac(const std::string& key, const std::string& text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  CHAINFLEET_CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                        reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest, &size) != nullptr);
  return std::string(reinterpret_cast<const char*>(digest), size);
}

std::string Day(const S3SigningScope& scope) { return S3Timestamp(scope.time).substr(0, 8); }

std::string ScopeOf(const S3SigningScope& scope) {
  return absl::StrCat(Day(scope), "/", scope.region, "/", scope.service, "/aws4_request");
}

std::string SignedHeaders(const S3SignedParts& parts) {
  std::vector<std::string> names;
  for (const auto& [name, value] : parts.headers) names.push_back(name);
  return absl::StrJoin(names, ";");
}

std::string Signature(const S3SignedParts& parts, const S3SigningScope& scope, const S3Credentials& credentials) {
  std::string headers;
  for (const auto& [name, value] : parts.headers) absl::StrAppend(&headers, name, ":", value, "\n");
  const std::string canonical = absl::StrCat(parts.method, "\n", parts.path, "\n", S3QueryString(parts.query), "\n",
                                             headers, "\n", SignedHeaders(parts), "\n", parts.payload_sha256);
  std::string key = absl::StrCat("AWS4", credentials.secret_access_key);
  for (const std::string& step : {Day(scope), scope.region, scope.service, std::string("aws4_request")})
    key = Hmac(key, step);
  const std::string to_sign =
      absl::StrCat(kAlgorithm, "\n", S3Timestamp(scope.time), "\n", ScopeOf(scope), "\n", Sha256Hex(canonical));
  return absl::BytesToHexString(Hmac(key, to_sign));
}

}  // namespace

std::string S3QueryString(const std::map<std::string, std::string>& query) {
  std::vector<std::string> pairs;
  for (const auto& [name, value] : query)
    pairs.push_back(absl::StrCat(PercentEncoded(name), "=", PercentEncoded(value)));
  return absl::StrJoin(pairs, "&");
}

std::string S3Timestamp(absl::Time time) { return absl::FormatTime("%Y%m%dT%H%M%SZ", time, absl::UTCTimeZone()); }

std::string S3Authorization(const S3SignedParts& parts, const S3SigningScope& scope, const S3Credentials& credentials) {
  return absl::StrCat(kAlgorithm, " Credential=", credentials.access_key_id, "/", ScopeOf(scope),
                      ",SignedHeaders=", SignedHeaders(parts), ",Signature=", Signature(parts, scope, credentials));
}

std::string S3PresignedQuery(S3SignedParts parts, const S3SigningScope& scope, const S3Credentials& credentials,
                             absl::Duration valid_for) {
  parts.query["X-Amz-Algorithm"] = kAlgorithm;
  parts.query["X-Amz-Credential"] = absl::StrCat(credentials.access_key_id, "/", ScopeOf(scope));
  parts.query["X-Amz-Date"] = S3Timestamp(scope.time);
  parts.query["X-Amz-Expires"] = absl::StrCat(absl::ToInt64Seconds(valid_for));
  parts.query["X-Amz-SignedHeaders"] = SignedHeaders(parts);
  if (!credentials.session_token.empty()) parts.query["X-Amz-Security-Token"] = credentials.session_token;
  return absl::StrCat(S3QueryString(parts.query), "&X-Amz-Signature=", Signature(parts, scope, credentials));
}

}  // namespace chainfleet

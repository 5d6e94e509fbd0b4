#include "core/store/blob_store/s3_client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/backoff.h"
#include "core/base/percent.h"
#include "core/store/blob_store/s3_reply.h"
#include "core/store/draw_codec/sha256.h"

namespace chainfleet {
namespace {

bool IsOneOf(const std::string& code, std::initializer_list<const char*> codes) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

// True if another attempt may succeed. 409: two conditional requests for one key collided.
bool IsPassing(const HttpReply& reply) {
  if (reply.code >= 500 && reply.code != 501 && reply.code != 507) return true;
  if (reply.code == 408 || reply.code == 409 || reply.code == 429) return true;
  return reply.code == 400 &&
         IsOneOf(ReadS3Error(reply.body).code, {"RequestTimeout", "XAmzContentSHA256Mismatch", "BadDigest"});
}

// True if no attempt will succeed until a setting is corrected.
bool IsRefusal(int code, const std::string& s3_code) {
  return code == 301 || code == 307 || code == 401 || code == 403 ||
         IsOneOf(s3_code, {"NoSuchBucket", "InvalidBucketName", "ExpiredToken", "InvalidToken", "TokenRefreshRequired",
                           "AuthorizationHeaderMalformed"});
}

std::string NameOf(const S3Settings& settings, const S3Call& call) {
  return absl::StrCat("s3://", settings.bucket, "/", call.key);
}

std::string Sha256Of(std::string_view body) {
  Sha256 hash;
  hash.Update(body.data(), body.size());
  return hash.Hex();
}

}  // namespace

S3Client::S3Client(S3Settings settings, HttpTransport* transport, const Clock* clock, RngKey jitter, Pause pause)
    : settings_(std::move(settings)),
      credentials_(settings_.credentials, transport, clock),
      transport_(transport),
      clock_(clock),
      jitter_(jitter),
      pause_(std::move(pause)) {
  const bool in_host =
      settings_.endpoint.empty() && !absl::StrContains(settings_.bucket, '.');  // certificates match one label
  const std::string endpoint =
      settings_.endpoint.empty() ? absl::StrCat("https://s3.", settings_.region, ".amazonaws.com") : settings_.endpoint;
  const size_t host = endpoint.find("://") + 3;
  scheme_ = endpoint.substr(0, host);
  host_ = endpoint.substr(host);
  if (in_host) host_ = absl::StrCat(settings_.bucket, ".", host_);
  folder_ = in_host ? "/" : absl::StrCat("/", settings_.bucket, "/");
}

std::string S3Client::PathOf(const S3Call& call) const {
  return folder_ + PercentEncoded(call.key, /*keep_slash=*/true);
}

absl::StatusOr<HttpReply> S3Client::Send(const S3Call& call) const {
  CHAINFLEET_ASSIGN_OR_RETURN(const S3Credentials credentials, credentials_.Current());
  const S3SigningScope scope{clock_->Wall(), settings_.region};
  S3SignedParts parts{call.method, PathOf(call), call.query, call.headers, Sha256Of(call.body)};
  parts.headers["host"] = host_;
  parts.headers["x-amz-date"] = S3Timestamp(scope.time);
  parts.headers["x-amz-content-sha256"] = parts.payload_sha256;
  if (!credentials.session_token.empty()) parts.headers["x-amz-security-token"] = credentials.session_token;
  const std::string query = S3QueryString(call.query);
  HttpRequest request{.method = call.method,
                      .url = absl::StrCat(scheme_, host_, parts.path, query.empty() ? "" : "?", query),
                      .headers = parts.headers,
                      .body = call.body,
                      .max_reply_bytes = call.max_reply_bytes,
                      .stall_timeout = call.patience};
  request.headers["Authorization"] = S3Authorization(parts, scope, credentials);
  const int64_t bytes = static_cast<int64_t>(call.body.size()) + call.max_reply_bytes;
  request.timeout = call.patience + absl::Seconds(bytes / limits::kS3BytesPerSecond);
  return transport_->Send(request);
}

absl::StatusOr<HttpReply> S3Client::Run(const S3Call& call) const {
  Backoff backoff(Fold(jitter_, calls_.fetch_add(1)));
  while (true) {
    absl::StatusOr<HttpReply> reply = Send(call);
    const bool refused = !ReasonOf(reply.status()).empty();  // there are no credentials
    const bool passing = reply.ok() ? IsPassing(*reply) : absl::IsUnavailable(reply.status()) && !refused;
    if (!passing || backoff.failures() + 1 >= limits::kS3Attempts) {
      if (reply.ok() || refused) return reply;
      return Annotate(reply.status(), absl::StrCat("S3 at ", scheme_, host_, " did not answer a ", call.method, " of ",
                                                   NameOf(settings_, call)));
    }
    pause_(backoff.Next());
  }
}

absl::Status S3Client::StatusOf(const S3Call& call, const HttpReply& reply) const {
  if (reply.code >= 200 && reply.code < 300) return absl::OkStatus();
  const S3Error error = ReadS3Error(reply.body);
  const std::string message =
      absl::StrCat("S3 refused a ", call.method, " of ", NameOf(settings_, call), ": HTTP ", reply.code,
                   error.code.empty() ? "" : ", ", error.code, error.message.empty() ? "" : ": ", error.message);
  if (IsRefusal(reply.code, error.code)) {
    return WithReason(absl::UnavailableError(absl::StrCat(
                          message, "; check the credentials, the bucket and AWS_REGION (", settings_.region, ")")),
                      "STORE_REFUSED");
  }
  if (reply.code == 507 || error.code == "QuotaExceeded") {
    return WithReason(absl::ResourceExhaustedError(message), "DISK_FULL");
  }
  if (IsPassing(reply)) return absl::UnavailableError(message);
  return reply.code == 404 ? absl::NotFoundError(message) : absl::InternalError(message);
}

absl::StatusOr<HttpReply> S3Client::Succeed(const S3Call& call) const {
  CHAINFLEET_ASSIGN_OR_RETURN(HttpReply reply, Run(call));
  CHAINFLEET_RETURN_IF_ERROR(StatusOf(call, reply));
  return reply;
}

absl::StatusOr<S3SignedUrl> S3Client::Presign(const S3Call& call, const std::string& payload_sha256,
                                              absl::Duration valid_for) const {
  CHAINFLEET_ASSIGN_OR_RETURN(const S3Credentials credentials, credentials_.Current());
  S3SignedParts parts{call.method, PathOf(call), call.query, call.headers, payload_sha256};
  parts.headers["host"] = host_;
  const S3SigningScope scope{clock_->Wall(), settings_.region};
  const std::string query = S3PresignedQuery(parts, scope, credentials, valid_for);
  return S3SignedUrl{absl::StrCat(scheme_, host_, parts.path, "?", query), call.headers};
}

}  // namespace chainfleet

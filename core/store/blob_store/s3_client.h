// Signed requests to one bucket, retried a bounded number of times when the network or the server fails.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/rng_key.h"
#include "core/base/status.h"
#include "core/store/blob_store/http_transport.h"
#include "core/store/blob_store/s3_limits.h"
#include "core/store/blob_store/s3_settings.h"

namespace chainfleet {

struct S3Call {
  std::string method;
  std::string key;  // without the bucket, with the settings' prefix; empty: the bucket itself
  std::map<std::string, std::string> query = {};
  std::map<std::string, std::string> headers = {};  // lower-case names; signed
  std::string_view body = {};                       // borrowed for the call
  int64_t max_reply_bytes = limits::kS3MaxReplyBytes;
  absl::Duration patience = limits::kS3Timeout;  // in addition to the transfer time of body and reply
};

// A URL that permits one request without credentials. The request must carry these headers unchanged.
struct S3SignedUrl {
  std::string url;
  std::map<std::string, std::string> headers;
};

// Thread-safe. Calls block, at most limits::kS3Attempts times the timeout of a request.
class S3Client {
 public:
  // Waits between two attempts.
  using Pause = std::function<void(absl::Duration)>;

  // `transport` and `clock` outlive the client. `jitter` desynchronises the retries of several servers.
  S3Client(S3Settings settings, HttpTransport* transport, const Clock* clock, RngKey jitter, Pause pause);

  const S3Settings& settings() const { return settings_; }

  // Returns the last reply with any code. Retries 5xx, 429, request timeouts and conflicts of conditional requests.
  // UNAVAILABLE: no reply; the error has bucket, key and reason.
  absl::StatusOr<HttpReply> Run(const S3Call& call) const;

  // Converts a reply to a status with bucket, key and S3's message. OK for 2xx. NOT_FOUND: no such object.
  // RESOURCE_EXHAUSTED / DISK_FULL. UNAVAILABLE / STORE_REFUSED: credentials, bucket or region are wrong, which the
  // operator can repair without data loss. UNAVAILABLE: other errors that may pass. INTERNAL.
  absl::Status StatusOf(const S3Call& call, const HttpReply& reply) const;

  // Returns the reply if it is a 2xx; else errors of Run and StatusOf.
  absl::StatusOr<HttpReply> Succeed(const S3Call& call) const;

  // The URL is valid from now, by the wall clock, but not for longer than the credentials. The body of `call` is
  // ignored: `payload_sha256` represents it. Errors of CredentialCache::Current.
  absl::StatusOr<S3SignedUrl> Presign(const S3Call& call, const std::string& payload_sha256,
                                      absl::Duration valid_for) const;

 private:
  absl::StatusOr<HttpReply> Send(const S3Call& call) const;
  std::string PathOf(const S3Call& call) const;

  const S3Settings settings_;
  mutable CredentialCache credentials_;
  std::string scheme_, host_, folder_;  // requests go to scheme://host, folder, key
  HttpTransport* const transport_;
  const Clock* const clock_;
  const RngKey jitter_;
  const Pause pause_;
  mutable std::atomic<uint64_t> calls_ = 0;
};

}  // namespace chainfleet

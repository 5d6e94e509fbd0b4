// Signed requests to one bucket, repeated a bounded number of times when the network or the server fails.
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
  std::string key;  // below the bucket, the settings' prefix included; empty: the bucket itself
  std::map<std::string, std::string> query = {};
  std::map<std::string, std::string> headers = {};  // lower-case names; signed
  std::string_view body = {};                       // of the caller, for the call
  int64_t max_reply_bytes = limits::kS3MaxReplyBytes;
  absl::Duration patience = limits::kS3Timeout;  // on top of the time that body and answer take on the way
};

// A URL that permits one request without credentials. The request must carry these headers unchanged.
struct S3SignedUrl {
  std::string url;
  std::map<std::string, std::string> headers;
};

// Thread-safe; blocks, at most limits::kS3Attempts times the timeout of a request.
class S3Client {
 public:
  // Waits between two attempts.
  using Pause = std::function<void(absl::Duration)>;

  // `transport` and `clock` outlive the client. `jitter` keeps several servers out of step.
  S3Client(S3Settings settings, HttpTransport* transport, const Clock* clock, RngKey jitter, Pause pause);

  const S3Settings& settings() const { return settings_; }

  // The last answer, whatever its code; 5xx, 429, a timeout of the request and a conflict of conditional requests were
  // repeated. UNAVAILABLE, saying bucket, key and why: no answer.
  absl::StatusOr<HttpReply> Run(const S3Call& call) const;

  // The answer as a status, with bucket, key and S3's own words. OK for 2xx. NOT_FOUND: no such object.
  // RESOURCE_EXHAUSTED / DISK_FULL. UNAVAILABLE / STORE_REFUSED: credentials, bucket or region are wrong, which the
  // operator can mend without a loss. UNAVAILABLE: all else that may pass. INTERNAL.
  absl::Status StatusOf(const S3Call& call, const HttpReply& reply) const;

  // The answer, if it is a 2xx; errors of Run and of StatusOf.
  absl::StatusOr<HttpReply> Succeed(const S3Call& call) const;

  // Valid from now by the wall clock. Of `call`, the body is left out: `payload_sha256` stands for it.
  S3SignedUrl Presign(const S3Call& call, const std::string& payload_sha256, absl::Duration valid_for) const;

 private:
  absl::StatusOr<HttpReply> Send(const S3Call& call) const;
  std::string PathOf(const S3Call& call) const;

  const S3Settings settings_;
  std::string scheme_, host_, folder_;  // requests go to scheme://host, folder, key
  HttpTransport* const transport_;
  const Clock* const clock_;
  const RngKey jitter_;
  const Pause pause_;
  mutable std::atomic<uint64_t> calls_ = 0;
};

}  // namespace chainfleet

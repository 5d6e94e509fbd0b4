#include "worker/rpc/direct_uploads.h"

#include "absl/strings/str_cat.h"
#include "core/store/blob_store/s3_limits.h"
#include "core/store/blob_store/s3_reply.h"

namespace chainfleet {
namespace {

constexpr int kCreated = 200, kExists = 412, kFull = 507;

// Keep the signature out of logs: anyone who has it may put the object.
std::string WithoutQuery(const std::string& url) { return url.substr(0, url.find('?')); }

}  // namespace

void DirectUploads::PutBlob(const ChainId& chain, int64_t lease_epoch, const BlobRef& ref,
                            std::shared_ptr<const std::string> bytes, Done<bool> done) {
  const auto through_server = [this, chain, lease_epoch, ref, bytes, done] {
    server_->PutBlob(chain, lease_epoch, ref, bytes, done);
  };
  if (through_server_) return through_server();
  sign_(chain, lease_epoch, ref, [this, ref, bytes, done, through_server](absl::StatusOr<SignedUpload> upload) {
    const bool unknown = absl::IsUnimplemented(upload.status());
    if (!upload.ok() && !unknown) return done(upload.status());
    if (unknown || upload->url.empty()) {
      through_server_ = true;
      return through_server();
    }
    executor_->Schedule([this, ref, bytes, done, upload = *std::move(upload)] {
      const absl::Status put = Put(upload, ref, *bytes);
      if (!put.ok()) return done(put);
      done(true);
    });
  });
}

absl::Status DirectUploads::Put(const SignedUpload& upload, const BlobRef& ref, const std::string& bytes) const {
  const std::string where = WithoutQuery(upload.url);
  const absl::StatusOr<HttpReply> reply = transport_->Send({.method = "PUT",
                                                            .url = upload.url,
                                                            .headers = upload.headers,
                                                            .body = bytes,
                                                            .max_reply_bytes = limits::kS3MaxReplyBytes,
                                                            .stall_timeout = limits::kS3Timeout,
                                                            .timeout = limits::UploadTimeout(ref.size_bytes)});
  if (!reply.ok()) return absl::UnavailableError(absl::StrCat("S3 at ", where, ": ", reply.status().message()));
  // The name has the digest, so an existing object was put by an attempt whose answer was lost.
  if (reply->code / 100 == kCreated / 100 || reply->code == kExists) return absl::OkStatus();
  const S3Error error = ReadS3Error(reply->body);
  const std::string message =
      absl::StrCat("S3 refused ", where, ": HTTP ", reply->code, " ", error.code, ": ", error.message);
  if (error.code == "BadDigest" || error.code == "XAmzContentSHA256Mismatch" || error.code == "IncompleteBody") {
    return absl::DataLossError(message);
  }
  if (reply->code == kFull || error.code == "QuotaExceeded") {
    return WithReason(absl::ResourceExhaustedError(message), "DISK_FULL");
  }
  return absl::UnavailableError(message);
}

}  // namespace chainfleet

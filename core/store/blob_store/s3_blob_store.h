// Objects in a bucket of S3 or of an S3-compatible server.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/store/blob_store/blob_store.h"
#include "core/store/blob_store/s3_client.h"
#include "core/store/blob_store/s3_limits.h"

namespace chainfleet {

// Signs a URL that creates this one object, with this length and digest label, unless the object exists. AWS compares
// the bytes with the digest; on servers that do not compare (SeaweedFS) the first reader finds a mismatch. The URL uses
// the endpoint of `client`, which sends nothing. Errors: INVALID_ARGUMENT.
absl::StatusOr<S3SignedUrl> SignS3Put(const S3Client& client, const std::string& name, const std::string& sha256,
                                      int64_t size_bytes, absl::Duration valid_for);

// Puts are conditional (If-None-Match: *), so any number of servers may share a bucket and a prefix. Holds only the
// reply and at most one part of a file in memory. Besides BlobStore's errors, calls return those of S3Client::StatusOf.
class S3BlobStore final : public BlobStore {
 public:
  // Objects larger than `multipart_bytes` are written in parts. S3 needs at least 5 MiB for each part but the last.
  struct Options {
    int64_t multipart_bytes = limits::kS3MultipartBytes;
    int64_t part_bytes = limits::kS3PartBytes;
  };

  // Tests that the server supports conditional puts, with an object `.conditional-put` below the prefix, which remains.
  // Errors: FAILED_PRECONDITION / NO_CONDITIONAL_PUT, UNAVAILABLE. The store owns `client`.
  static absl::StatusOr<std::unique_ptr<S3BlobStore>> Open(std::unique_ptr<S3Client> client, const Options& options);

  // A multipart upload that fails is aborted. If the process dies, the upload stays invisible until the bucket's rule
  // for incomplete uploads removes it. Some servers ignore the condition when parts are completed, so Put asks them
  // first whether the object exists.
  absl::Status Put(const std::string& name, const ByteSource& content) override;
  absl::Status Replace(const std::string& name, const ByteSource& content) override;
  absl::StatusOr<std::string> Get(const std::string& name) const override;
  absl::StatusOr<std::string> GetRange(const std::string& name, int64_t offset, int64_t length) const override;
  absl::StatusOr<int64_t> SizeBytes(const std::string& name) const override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& prefix) const override;
  absl::Status ListPages(const std::string& prefix, const PageVisitor& visit) const override;
  absl::Status Delete(const std::string& name) override;

 private:
  enum class IfPresent { kKeep, kReplace };

  S3BlobStore(std::unique_ptr<S3Client> client, const Options& options);
  absl::Status CheckConditionalPut() const;
  absl::StatusOr<std::string> KeyOf(const std::string& name) const;
  absl::Status Write(const std::string& key, const ByteSource& content, IfPresent if_present) const;
  absl::Status WriteParts(const std::string& key, const ByteSource& content, IfPresent if_present) const;
  absl::StatusOr<std::vector<std::string>> PutParts(const std::string& key, const std::string& upload,
                                                    const ByteSource& content) const;
  absl::Status Complete(const std::string& key, const std::string& upload, const std::vector<std::string>& etags,
                        IfPresent if_present) const;
  void Abort(const std::string& key, const std::string& upload) const;

  const std::unique_ptr<S3Client> client_;
  const Options options_;
};

}  // namespace chainfleet

// Objects in a bucket of S3, or of a server that speaks its protocol.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/store/blob_store/blob_store.h"
#include "core/store/blob_store/s3_client.h"
#include "core/store/blob_store/s3_limits.h"

namespace chainfleet {

// Lets whoever has it create this one object, of this length and labelled with this digest, unless it exists. AWS holds
// the bytes against the digest; a server that does not (SeaweedFS) leaves that to the first reader. The URL is of the
// endpoint of `client`, which sends nothing itself. INVALID_ARGUMENT.
absl::StatusOr<S3SignedUrl> SignS3Put(const S3Client& client, const std::string& name, const std::string& sha256,
                                      int64_t size_bytes, absl::Duration valid_for);

// Any number of servers may share a bucket and a prefix: a put is conditional (If-None-Match: *). Holds the bytes of
// the caller and the answer, nothing else. Besides what BlobStore says, the calls return what S3Client::StatusOf says.
class S3BlobStore final : public BlobStore {
 public:
  // Larger objects than `multipart_bytes` are put in parts (S3 wants at least 5 MiB of each but the last).
  struct Options {
    int64_t multipart_bytes = limits::kS3MultipartBytes;
    int64_t part_bytes = limits::kS3PartBytes;
  };

  // Asks the server whether it knows conditional puts, by an object `.conditional-put` below the prefix, which stays.
  // FAILED_PRECONDITION / NO_CONDITIONAL_PUT. UNAVAILABLE. `client` is the store's own.
  static absl::StatusOr<std::unique_ptr<S3BlobStore>> Open(std::unique_ptr<S3Client> client, const Options& options);

  // An upload in parts that fails is aborted; one whose process died stays invisible until the bucket's rule for
  // incomplete uploads removes it. A server that ignores the condition when parts are completed is asked before.
  absl::Status Put(const std::string& name, const std::string& bytes) override;
  absl::Status Replace(const std::string& name, const std::string& bytes) override;
  absl::StatusOr<std::string> Get(const std::string& name) const override;
  absl::StatusOr<std::string> GetRange(const std::string& name, int64_t offset, int64_t length) const override;
  absl::StatusOr<int64_t> SizeBytes(const std::string& name) const override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& prefix) const override;
  absl::Status ListPages(const std::string& prefix, const PageVisitor& visit) const override;
  absl::Status Delete(const std::string& name) override;

  // SignS3Put by this store's client.
  absl::StatusOr<S3SignedUrl> SignPut(const std::string& name, const std::string& sha256, int64_t size_bytes,
                                      absl::Duration valid_for) const {
    return SignS3Put(*client_, name, sha256, size_bytes, valid_for);
  }
  // Lets whoever has it read this one object. INVALID_ARGUMENT.
  absl::StatusOr<S3SignedUrl> SignGet(const std::string& name, absl::Duration valid_for) const;

 private:
  enum class IfPresent { kKeep, kReplace };

  S3BlobStore(std::unique_ptr<S3Client> client, const Options& options);
  absl::Status CheckConditionalPut() const;
  absl::StatusOr<std::string> KeyOf(const std::string& name) const;
  absl::Status Write(const std::string& key, const std::string& bytes, IfPresent if_present) const;
  absl::Status WriteParts(const std::string& key, const std::string& bytes, IfPresent if_present) const;
  absl::StatusOr<std::vector<std::string>> PutParts(const std::string& key, const std::string& upload,
                                                    const std::string& bytes) const;
  absl::Status Complete(const std::string& key, const std::string& upload, const std::vector<std::string>& etags,
                        IfPresent if_present) const;
  void Abort(const std::string& key, const std::string& upload) const;
  absl::Status Compare(const std::string& name, const std::string& bytes) const;

  const std::unique_ptr<S3Client> client_;
  const Options options_;
};

}  // namespace chainfleet

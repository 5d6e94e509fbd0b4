#include "server/rpc/blob_upload_call.h"

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/store/draw_codec/object_names.h"
#include "core/store/draw_codec/sha256.h"
#include "core/wire/types_wire.h"

namespace chainfleet {

namespace {

// The store is asked after the object was put: what ends the lease later queues the chain by itself.
void SweepIfLate(const ServiceParts& parts, const BlobRef& ref) {
  const auto name = ParseChainObjectName(ref.name);
  const absl::StatusOr<bool> current = parts.state->MayCommit(name->chain, name->lease_epoch);
  if (!current.ok() || !*current) parts.dispatcher->QueueSweep(name->chain);
}

}  // namespace

BlobUploadCall::BlobUploadCall(const ServiceParts& parts, const absl::Status& admitted) : parts_(parts) {
  Begin(admitted);
}

absl::Status BlobUploadCall::TakeHeader(const v1::PutBlobRequest::Header& header) {
  ref_ = FromProto(header.blob());
  const ChainId chain = FromProto(header.chain());
  // A worker writes below its own chain and its own epoch, nowhere else.
  const auto name = ParseChainObjectName(ref_.name);
  if (!name || name->store_incarnation != parts_.state->incarnation() || name->chain != chain ||
      name->lease_epoch != header.lease_epoch()) {
    return InvalidFields(
        {{"header.blob.name", absl::StrCat("\"", ref_.name, "\" is no object of chain ", ToString(chain),
                                           " at lease epoch ", header.lease_epoch())}});
  }
  if (ref_.size_bytes <= 0 || ref_.size_bytes > limits::kMaxBlobBytes) {
    return InvalidFields(
        {{"header.blob.size_bytes", absl::StrCat("must be 1 to ", limits::kMaxBlobBytes, ", is ", ref_.size_bytes)}});
  }
  return parts_.dispatcher->CheckLease(chain, header.lease_epoch());
}

absl::Status BlobUploadCall::Take(const v1::PutBlobRequest& message) {
  if (message.has_header()) return TakeHeader(message.header());
  if (ref_.name.empty()) return absl::InvalidArgumentError("the first message of PutBlob must be the header");
  if (static_cast<int64_t>(bytes_->size() + message.data().size()) > ref_.size_bytes) {
    return absl::DataLossError(absl::StrCat("object ", ref_.name, " is longer than its ", ref_.size_bytes, " bytes"));
  }
  *bytes_ += message.data();
  return absl::OkStatus();
}

void BlobUploadCall::TakeEnd() {
  if (ref_.name.empty()) return finisher()->Finish(absl::InvalidArgumentError("PutBlob ended before its header"));
  parts_.executor->Schedule([parts = parts_, ref = ref_, bytes = bytes_, finisher = finisher()] {
    if (static_cast<int64_t>(bytes->size()) != ref.size_bytes || Sha256Hex(*bytes) != ref.sha256) {
      return finisher->Finish(
          WithReason(absl::DataLossError(absl::StrCat("the ", bytes->size(), " bytes that arrived for object ",
                                                      ref.name, " do not match its size and SHA-256")),
                     "DIGEST_MISMATCH"));
    }
    const absl::Status stored = parts.blobs->Put(ref.name, *bytes);
    if (stored.ok()) SweepIfLate(parts, ref);
    finisher->Finish(stored);
  });
}

}  // namespace chainfleet

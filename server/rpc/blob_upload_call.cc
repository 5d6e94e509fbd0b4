#include "server/rpc/blob_upload_call.h"

#include "absl/strings/str_cat.h"
#include "core/wire/types_wire.h"
#include "server/control/chain_objects.h"

namespace chainfleet {

BlobUploadCall::BlobUploadCall(const ServiceParts& parts, absl::StatusOr<Principal> caller)
    : parts_(parts), caller_(std::move(caller)), share_(std::make_shared<UploadShare>(parts.upload_budget)) {
  Begin(caller_.status());
}

absl::Status BlobUploadCall::TakeHeader(const v1::PutBlobRequest::Header& header) {
  ref_ = FromProto(header.blob());
  CHAINFLEET_ASSIGN_OR_RETURN(const auto session, SessionOf(parts_, *caller_, header));
  absl::Status admitted = ChainObjects(parts_.state, parts_.blobs, parts_.writer, *parts_.dispatcher)
                              .Admit(FromProto(header.chain()), header.lease_epoch(), ref_, session);
  if (!admitted.ok()) parts_.metrics->CountRefusedUpload(admitted);
  return admitted;
}

absl::Status BlobUploadCall::Take(const v1::PutBlobRequest& message) {
  if (message.has_header()) return TakeHeader(message.header());
  if (ref_.name.empty()) return absl::InvalidArgumentError("the first message of PutBlob must be the header");
  if (static_cast<int64_t>(bytes_->size() + message.data().size()) > ref_.size_bytes) {
    return absl::DataLossError(absl::StrCat("object ", ref_.name, " is longer than its ", ref_.size_bytes, " bytes"));
  }
  CHAINFLEET_RETURN_IF_ERROR(share_->Add(static_cast<int64_t>(message.data().size())));
  *bytes_ += message.data();
  return absl::OkStatus();
}

void BlobUploadCall::TakeEnd() {
  if (ref_.name.empty()) return finisher()->Finish(absl::InvalidArgumentError("PutBlob ended before its header"));
  parts_.executor->Schedule([objects = ChainObjects(parts_.state, parts_.blobs, parts_.writer, *parts_.dispatcher),
                             ref = ref_, bytes = bytes_, share = share_, finisher = finisher(),
                             metrics = parts_.metrics] {
    const absl::Status put = objects.Put(ref, *bytes);
    if (!put.ok()) metrics->CountRefusedUpload(put);
    finisher->Finish(put);
  });
}

}  // namespace chainfleet

#include "server/rpc/model_upload_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/ids.h"
#include "core/base/limits.h"
#include "core/wire/types_wire.h"

namespace chainfleet {

ModelUploadCall::ModelUploadCall(const ServiceParts& parts, const absl::StatusOr<Principal>& caller, TokenCheck still,
                                 v1::StoredModel* response)
    : parts_(parts),
      caller_(caller.value_or(Principal())),
      response_(response),
      file_(std::make_shared<IncomingModel>(parts, caller_.tenant)) {
  Begin(caller.status(), parts.timers, std::move(still));
}

absl::Status ModelUploadCall::Take(const v1::PutModelRequest& message) {
  switch (message.part_case()) {
    case v1::PutModelRequest::kHeader:
      return TakeHeader(message.header());
    case v1::PutModelRequest::kData:
      if (name_.empty()) break;
      if (file_->size_bytes() + std::ssize(message.data()) > announced_bytes_) {
        return absl::InvalidArgumentError(
            absl::StrCat("model ", name_, " has more bytes than its header's ", announced_bytes_));
      }
      return file_->Add(message.data());
    case v1::PutModelRequest::PART_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("the first message of PutModel must be the header, the others data");
}

absl::Status ModelUploadCall::TakeHeader(const v1::PutModelRequest::Header& header) {
  if (!name_.empty()) return absl::InvalidArgumentError("PutModel has a second header");
  CHAINFLEET_RETURN_IF_ERROR(CheckName("model", header.name()));
  if (header.size_bytes() > limits::kMaxModelBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "model ", header.name(), " is over the ", limits::kMaxModelBytes / limits::kMiB, " MiB that a file may have"));
  }
  if (!header.uri().empty()) {
    CHAINFLEET_RETURN_IF_ERROR(parts_.dataset_roots->Check(header.uri()));
    if (header.size_bytes() != 0)
      return absl::InvalidArgumentError(absl::StrCat(header.uri(), ": a file that is named by URI has size_bytes 0"));
  }
  name_ = header.name();
  uri_ = header.uri();
  announced_bytes_ = header.size_bytes();
  return file_->Open(parts_.data_directory);
}

void ModelUploadCall::TakeEnd() {
  if (name_.empty() || file_->size_bytes() != announced_bytes_) {
    return finisher()->Finish(
        absl::InvalidArgumentError(absl::StrCat("the upload of model ", name_, " broke off: ", file_->size_bytes(),
                                                " of ", announced_bytes_, " bytes came; send it again")));
  }
  TakeIn({.parts = parts_,
          .caller = caller_,
          .name = name_,
          .uri = uri_,
          .file = file_,
          .waits = [finisher = finisher()] { return finisher->waits(); },
          .done =
              [finisher = finisher(), response = response_](const absl::StatusOr<StoredModel>& stored) {
                finisher->Finish(stored.status(), [&] { *response = ToProto(*stored); });
              }});
}

}  // namespace chainfleet

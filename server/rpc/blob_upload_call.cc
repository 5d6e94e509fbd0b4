#include "server/rpc/blob_upload_call.h"

#include <algorithm>
#include <new>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/domain/signed_upload.h"
#include "core/wire/types_wire.h"
#include "server/control/chain_objects.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kTimerStep = absl::Seconds(10);

// A string that grows as the bytes arrive would take up to twice the object's size, and the budget counts it once.
absl::Status ReserveObject(const BlobRef& ref, std::string* bytes) {
  try {
    bytes->reserve(static_cast<size_t>(ref.size_bytes));
  } catch (const std::bad_alloc&) {
    return WithReason(
        absl::ResourceExhaustedError(absl::StrCat("the server has too little memory for object ", ref.name, " of ",
                                                  ref.size_bytes, " bytes: put it again later")),
        "UPLOADS_FULL");
  }
  return absl::OkStatus();
}

}  // namespace

BlobUploadCall::BlobUploadCall(const ServiceParts& parts, absl::StatusOr<Principal> caller)
    : parts_(parts), caller_(std::move(caller)) {
  Begin(caller_.status());
}

absl::Status BlobUploadCall::TakeHeader(const v1::PutBlobRequest::Header& header) {
  if (share_ != nullptr) return absl::InvalidArgumentError("PutBlob has a second header");
  ref_ = FromProto(header.blob());
  CHAINFLEET_ASSIGN_OR_RETURN(const auto session, SessionOf(parts_, *caller_, header));
  absl::Status admitted = ChainObjects(parts_.state, parts_.blobs, parts_.writer, *parts_.dispatcher)
                              .Admit(FromProto(header.chain()), header.lease_epoch(), ref_, session);
  // Room for the whole object: an upload that has begun is not refused half-way because others begin.
  if (admitted.ok()) admitted = TakeRoom(session ? session->worker : ToString(FromProto(header.chain())));
  if (!admitted.ok()) parts_.metrics->CountRefusedUpload(admitted);
  return admitted;
}

absl::Status BlobUploadCall::TakeRoom(const std::string& worker) {
  share_ = std::make_shared<BudgetShare>(*parts_.object_budget, HolderOf(AdmissionOf(*caller_), worker));
  if (!share_->Add(ref_.size_bytes)) {
    return BoundReached(
        "object_uploads",
        absl::StrCat(
            "object ", ref_.name, " has ", ref_.size_bytes, " bytes, and objects on their way leave too ",
            "little of the ", parts_.object_budget->max_bytes() / limits::kMiB,
            " MiB for them, of which a worker may hold at most half of what others do not use: put it again later"),
        "UPLOADS_FULL");
  }
  const absl::Duration time = limits::UploadTimeout(ref_.size_bytes);  // after which a worker gives up, too
  EndAfter(parts_.executor, time, finisher(),
           absl::DeadlineExceededError(absl::StrCat("object ", ref_.name, " did not arrive within ",
                                                    absl::ToInt64Seconds(time), " s: send it faster")));
  return absl::OkStatus();
}

// In short steps, so that no timer outlives an upload for long: a worker may begin and cancel as many as it likes.
void BlobUploadCall::EndAfter(Executor* executor, absl::Duration left, std::weak_ptr<Finisher> call,
                              const absl::Status& why) {
  const absl::Duration step = std::min(left, kTimerStep);
  executor->ScheduleAfter(step, [=] {
    const std::shared_ptr<Finisher> open = call.lock();
    if (open == nullptr || !open->waits()) return;
    if (left <= step) return open->Finish(why);
    EndAfter(executor, left - step, call, why);
  });
}

absl::Status BlobUploadCall::Take(const v1::PutBlobRequest& message) {
  if (message.has_header()) return TakeHeader(message.header());
  if (ref_.name.empty()) return absl::InvalidArgumentError("the first message of PutBlob must be the header");
  if (static_cast<int64_t>(bytes_->size() + message.data().size()) > ref_.size_bytes) {
    return absl::DataLossError(absl::StrCat("object ", ref_.name, " is longer than its ", ref_.size_bytes, " bytes"));
  }
  if (bytes_->empty()) CHAINFLEET_RETURN_IF_ERROR(ReserveObject(ref_, bytes_.get()));
  *bytes_ += message.data();
  return absl::OkStatus();
}

void BlobUploadCall::TakeEnd() {
  if (!finisher()->waits()) return;
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

#include "server/rpc/dataset_upload_call.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/intake/content_registration.h"
#include "server/rpc/job_render.h"

namespace chainfleet {
DatasetUploadCall::DatasetUploadCall(const ServiceParts& parts, const absl::StatusOr<std::string>& tenant,
                                     TokenCheck still, v1::Dataset* response)
    : parts_(parts),
      tenant_(tenant.value_or("")),
      response_(response),
      upload_(std::make_shared<DatasetUpload>(parts.upload_budget, parts.auth->wants_tokens() ? tenant_ : "")) {
  Begin(tenant.status(), parts.timers, std::move(still));
}

absl::Status DatasetUploadCall::Take(const v1::PutDatasetRequest& message) {
  switch (message.part_case()) {
    case v1::PutDatasetRequest::kHeader:
      return upload_->Begin(message.header().name(), message.header().num_files(),
                            {message.header().target(), message.header().target_type() == v1::FLOAT32_TARGETS},
                            {message.header().class_names().begin(), message.header().class_names().end()});
    case v1::PutDatasetRequest::kFile:
      // Refuse a URI before the client sends the files that follow.
      if (!message.file().uri().empty()) CHAINFLEET_RETURN_IF_ERROR(parts_.dataset_roots->Check(message.file().uri()));
      return upload_->StartFile(message.file().file_name(), message.file().size_bytes(), message.file().uri());
    case v1::PutDatasetRequest::kData:
      return upload_->AddData(message.data());
    case v1::PutDatasetRequest::PART_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("a message of PutDataset is empty");
}

void DatasetUploadCall::TakeEnd() {
  if (const absl::Status status = upload_->CheckComplete(); !status.ok()) return finisher()->Finish(status);
  const auto decode = [parts = parts_, tenant = tenant_, upload = upload_, finisher = finisher(),
                       response = response_] {
    const absl::Status fetched = upload->Fetch(*parts.dataset_roots, [&] { return finisher->waits(); });
    if (!fetched.ok() || !finisher->waits()) return finisher->Finish(fetched);
    absl::StatusOr<CutDataset> decoded = Cut(*upload, parts.state->incarnation(), parts.catalog->ObjectNonce());
    if (!decoded.ok()) return finisher->Finish(decoded.status());
    const absl::StatusOr<Dataset> known = parts.catalog->datasets().Get({tenant}, upload->name());
    const bool repairs = known.ok() && known->digest == decoded->description.digest;
    if (repairs) decoded->description.shards = known->shards;
    decoded->description.tenant = tenant;
    absl::StatusOr<std::shared_ptr<TenantReservation>> room = nullptr;
    if (!repairs) {
      room = parts.dispatcher->ReserveRoom(tenant, absl::StrCat("dataset ", upload->name()),
                                           StoredBytes(decoded->description), ContentsOf(decoded->description));
    }
    if (!room.ok()) return finisher->Finish(room.status());
    const auto finish = [room = *room, finisher, response](const absl::StatusOr<Dataset>& registered) {
      if (room != nullptr) room->Release();
      finisher->Finish(registered.status(), [&] { *response = RenderDataset(*registered); });
    };
    const auto cut = std::make_shared<const CutDataset>(*std::move(decoded));
    Register(parts.executor, parts.catalog,
             {.objects = cut->ObjectNames(),
              .repairs = repairs,
              .store = [cut, share = upload->share(), blobs = parts.blobs] { return StoreShards(*cut, blobs); },
              .put = [cut, finish, room = *room, catalog = parts.catalog](
                         const std::string& upload_name) { catalog->Put(cut->description, upload_name, finish, room); },
              .fail = finish});
  };
  const auto take_in = [decode, finisher = finisher()] { finisher->Run(decode); };
  if (!upload_->HasUris()) return parts_.executor->Schedule(take_in);
  const absl::Status status = parts_.dataset_reads->Schedule(upload_->share()->tenant(), take_in);
  if (!status.ok()) finisher()->Finish(status);
}

}  // namespace chainfleet

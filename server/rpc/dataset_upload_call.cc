#include "server/rpc/dataset_upload_call.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "core/base/limits.h"
#include "server/rpc/job_render.h"

namespace chainfleet {
namespace {

// A cut data set on its way into the stores; kept alive by its next step.
struct Registration : std::enable_shared_from_this<Registration> {
  ServiceParts parts;
  CutDataset cut;
  std::function<void(absl::StatusOr<Dataset>)> done;
  int starts = 0;

  void Begin() {
    parts.dispatcher->BeginUpload(cut.ObjectNames(), [self = shared_from_this()](absl::StatusOr<std::string> upload) {
      if (upload.ok()) {
        self->parts.executor->Schedule([self, upload = *upload] { self->Store(upload); });
      } else if (ReasonOf(upload.status()) == "BEING_DELETED" && ++self->starts < limits::kUploadStarts) {
        const absl::Duration wait = std::min(limits::kRetryInitial * (1 << self->starts), limits::kRetryMax);
        self->parts.executor->ScheduleAfter(wait, [self] { self->Begin(); });
      } else {
        self->done(upload.status());
      }
    });
  }

  void Store(const std::string& upload) {
    if (const absl::Status stored = StoreShards(cut, parts.blobs); !stored.ok()) {
      parts.dispatcher->EndUpload(upload);
      return done(stored);
    }
    parts.dispatcher->PutDataset(cut.description, upload, done);
  }
};

}  // namespace

DatasetUploadCall::DatasetUploadCall(const ServiceParts& parts, const absl::Status& admitted, v1::Dataset* response)
    : parts_(parts), response_(response) {
  Begin(admitted);
}

absl::Status DatasetUploadCall::Take(const v1::PutDatasetRequest& message) {
  switch (message.part_case()) {
    case v1::PutDatasetRequest::kHeader:
      return upload_->Begin(message.header().name(), message.header().num_files(),
                            {message.header().target(), message.header().target_type() == v1::FLOAT32_TARGETS});
    case v1::PutDatasetRequest::kFile:
      return upload_->StartFile(message.file().file_name(), message.file().size_bytes());
    case v1::PutDatasetRequest::kData:
      return upload_->AddData(message.data());
    case v1::PutDatasetRequest::PART_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("a message of PutDataset is empty");
}

void DatasetUploadCall::TakeEnd() {
  if (const absl::Status status = upload_->CheckComplete(); !status.ok()) return finisher()->Finish(status);
  parts_.executor->Schedule([parts = parts_, upload = upload_, finisher = finisher(), response = response_] {
    absl::StatusOr<CutDataset> cut = Cut(*upload, parts.state->incarnation());
    if (!cut.ok()) return finisher->Finish(cut.status());
    const auto registration = std::make_shared<Registration>();
    registration->parts = parts;
    registration->cut = *std::move(cut);
    registration->done = [finisher, response](absl::StatusOr<Dataset> registered) {
      finisher->Finish(registered.status(), [&] { *response = RenderDataset(*registered); });
    };
    registration->Begin();
  });
}

}  // namespace chainfleet

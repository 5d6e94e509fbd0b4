// PutModel: collects the file on disk, or reads it from its URI, then stores it off the RPC threads.
#pragma once

#include <memory>
#include <string>

#include "chainfleet/v1/jobs.pb.h"
#include "server/rpc/model_intake.h"
#include "server/rpc/upload_call.h"

namespace chainfleet {

class ModelUploadCall final : public UploadCall<v1::PutModelRequest> {
 public:
  ModelUploadCall(const ServiceParts& parts, const absl::StatusOr<Principal>& caller, TokenCheck still,
                  v1::StoredModel* response);

 private:
  absl::Status Take(const v1::PutModelRequest& message) override;
  absl::Status TakeHeader(const v1::PutModelRequest::Header& header);
  void TakeEnd() override;

  const ServiceParts parts_;
  const Principal caller_;
  v1::StoredModel* const response_;
  std::string name_, uri_;
  int64_t announced_bytes_ = 0;
  const std::shared_ptr<IncomingModel> file_;
};

}  // namespace chainfleet

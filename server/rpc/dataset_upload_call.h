// PutDataset: collects the files, reads the files that are named by URI, then decodes, stores and registers the data
// set off the RPC threads. Reading and decoding stop if the client has disconnected.
#pragma once

#include <memory>
#include <string>

#include "chainfleet/v1/jobs.pb.h"
#include "server/intake/dataset_intake.h"
#include "server/rpc/services.h"
#include "server/rpc/upload_call.h"

namespace chainfleet {

class DatasetUploadCall final : public UploadCall<v1::PutDatasetRequest> {
 public:
  DatasetUploadCall(const ServiceParts& parts, const absl::StatusOr<std::string>& tenant, TokenCheck still,
                    v1::Dataset* response);

 private:
  absl::Status Take(const v1::PutDatasetRequest& message) override;
  void TakeEnd() override;

  const ServiceParts parts_;
  const std::string tenant_;
  v1::Dataset* const response_;
  const std::shared_ptr<DatasetUpload> upload_;
};

}  // namespace chainfleet

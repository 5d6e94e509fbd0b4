// PutModel: collects the file on disk, or reads it from its URI, then checks, stores and registers it off the RPC
// threads.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "chainfleet/v1/jobs.pb.h"
#include "core/base/byte_source.h"
#include "server/rpc/services.h"
#include "server/rpc/upload_call.h"

namespace chainfleet {

class ModelUploadCall final : public UploadCall<v1::PutModelRequest> {
 public:
  ModelUploadCall(const ServiceParts& parts, const absl::StatusOr<Principal>& caller, v1::StoredModel* response);

 private:
  // The file on disk, within the bounds of all uploads.
  struct File;

  absl::Status Take(const v1::PutModelRequest& message) override;
  absl::Status TakeHeader(const v1::PutModelRequest::Header& header);
  void TakeEnd() override;
  // Returns the signature of a .pt2 or safetensors file. A TorchScript file, a program, has none: PERMISSION_DENIED /
  // NOT_ALLOWED or FAILED_PRECONDITION / MODULES_OFF. INVALID_ARGUMENT: the file is none of these.
  static absl::StatusOr<std::optional<NetworkSignature>> ReadContent(const ServiceParts& parts, const Principal& caller,
                                                                     const ByteSource& file);

  const ServiceParts parts_;
  const Principal caller_;
  v1::StoredModel* const response_;
  std::string name_, uri_;
  int64_t announced_bytes_ = 0;
  const std::shared_ptr<File> file_;
};

}  // namespace chainfleet

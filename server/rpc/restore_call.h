// AccessService.Restore: takes a backup into the data directory, checks it, stores its objects, and then tells the
// process, which fills its state while no server runs.
#pragma once

#include <functional>
#include <memory>

#include "chainfleet/v1/access.pb.h"
#include "core/store/backup/incoming_backup.h"
#include "server/rpc/services.h"
#include "server/rpc/upload_call.h"

namespace chainfleet {

class RestoreCall final : public UploadCall<v1::RestoreRequest> {
 public:
  RestoreCall(const ServiceParts& parts, const absl::Status& allowed, TokenCheck still);

 private:
  absl::Status Take(const v1::RestoreRequest& message) override;
  absl::Status TakePart(const v1::RestoreRequest& message);
  void TakeEnd() override;
  static absl::Status Store(const ServiceParts& parts, IncomingBackup* backup, const std::function<bool()>& goes_on);

  const ServiceParts parts_;
  std::shared_ptr<IncomingBackup> backup_;  // null before the first message and after an error
};

}  // namespace chainfleet

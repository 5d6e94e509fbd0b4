// PutBlob: checks the lease, collects the bytes, checks size and digest, and stores the object off the RPC threads. If
// the lease expired meanwhile, the garbage collector must scan the chain's objects again.
#pragma once

#include <memory>
#include <string>

#include "chainfleet/v1/worker.pb.h"
#include "core/base/fair_budget.h"
#include "core/domain/draw.h"
#include "server/rpc/services.h"
#include "server/rpc/upload_call.h"

namespace chainfleet {

class BlobUploadCall final : public UploadCall<v1::PutBlobRequest> {
 public:
  BlobUploadCall(const ServiceParts& parts, absl::StatusOr<Principal> caller);

 private:
  absl::Status Take(const v1::PutBlobRequest& message) override;
  absl::Status TakeHeader(const v1::PutBlobRequest::Header& header);
  absl::Status TakeRoom(const std::string& worker);
  // Fails the call after `left`, unless it has ended by then.
  static void EndAfter(Executor* executor, absl::Duration left, std::weak_ptr<Finisher> call, const absl::Status& why);
  void TakeEnd() override;

  const ServiceParts parts_;
  const absl::StatusOr<Principal> caller_;
  BlobRef ref_;
  std::shared_ptr<BudgetShare> share_;  // null before the header
  std::shared_ptr<std::string> bytes_ = std::make_shared<std::string>();
};

}  // namespace chainfleet

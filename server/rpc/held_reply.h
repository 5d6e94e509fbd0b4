// Bounds the memory of prediction replies that clients have not read yet.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/byte_budget.h"
#include "core/base/limits.h"
#include "core/base/status.h"
#include "server/rpc/failure_count.h"

namespace chainfleet {

// All held replies together, with their serialised copies. gRPC holds both until flow control lets the last byte go.
inline constexpr int64_t kMaxHeldReplyBytes = 2048 * limits::kMiB;

// Ends the call with `reply`. Room for the reply and its serialised copy is reserved until the client has read it.
// RESOURCE_EXHAUSTED / QUEUE_FULL if other replies leave too little room.
template <typename Answer, typename Reply>
void SucceedHeld(const Answer& answer, const FailureCount& failure, const ByteBudget& budget, Reply reply) {
  auto share = std::make_shared<ByteShare>(budget);
  const int64_t bytes = 2 * static_cast<int64_t>(reply.ByteSizeLong());
  if (share->Add(bytes)) return answer->Succeed(std::move(reply), std::move(share));
  failure.Fail(answer,
               BoundReached("prediction_reply_bytes",
                            absl::StrCat("this answer takes ", bytes,
                                         " bytes of the server's memory, and those that clients have not read yet hold "
                                         "too much of the ",
                                         budget.max_bytes() / limits::kMiB,
                                         " MiB that all have: retry with backoff, and read the answers that were asked "
                                         "for"),
                            "QUEUE_FULL"));
}

}  // namespace chainfleet

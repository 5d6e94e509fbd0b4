// Replaces a reply that is too large for a message with an error that says what to request instead.
#pragma once

#include <google/protobuf/message.h>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/base/status.h"

namespace chainfleet {

// RESOURCE_EXHAUSTED / REPLY_TOO_LARGE.
inline absl::Status CheckReplySize(const google::protobuf::Message& reply) {
  const auto bytes = static_cast<int64_t>(reply.ByteSizeLong());
  if (bytes <= limits::kMaxMessageBytes) return absl::OkStatus();
  return WithReason(absl::ResourceExhaustedError(
                        absl::StrCat("the answer takes ", bytes, " bytes, a message has ", limits::kMaxMessageBytes,
                                     " at most: ask for fewer rows, draws, chains or outputs at once")),
                    "REPLY_TOO_LARGE");
}

}  // namespace chainfleet

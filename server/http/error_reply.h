// Errors of the HTTP port: one body for all, {"error": TEXT, ...}, as the Open Inference Protocol wants it.
#pragma once

#include <string>

#include "core/base/status.h"
#include "server/http/http_message.h"

namespace chainfleet {

// For errors of HTTP itself.
WebReply ErrorReply(int code, const std::string& message);
WebReply BodyTooLarge();
// RESOURCE_EXHAUSTED / QUEUE_FULL: requests and replies hold too much memory.
absl::Status NoRoom();

// For calls that failed: the code of the status, and in the body also "code" and "reason" (the name of the code if the
// status has no reason), and "fields" and "request_id" where they are known.
WebReply ErrorReply(const absl::Status& status, const std::string& request_id = "");

}  // namespace chainfleet

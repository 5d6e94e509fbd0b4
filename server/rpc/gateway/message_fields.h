// Fields of messages from texts of a path or a query.
#pragma once

#include <google/protobuf/message.h>

#include <string>

#include "core/base/status.h"

namespace chainfleet {

// Sets the field `name`, which is no message, or appends to it if it is repeated. INVALID_ARGUMENT: there is no such
// field, or `text` is no value of its type.
absl::Status SetField(const std::string& name, const std::string& text, google::protobuf::Message* message);

}  // namespace chainfleet

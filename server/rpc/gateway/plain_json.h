// Messages as the JSON of the Open Inference Protocol.
#pragma once

#include <google/protobuf/message.h>

#include "nlohmann/json.hpp"

namespace chainfleet {

// Fields by their proto names, in their order; int64 as numbers, unlike protobuf's JSON mapping; an InferParameter as
// its value. Bytes are left out. Fields that are not set are there if `defaults`.
nlohmann::ordered_json PlainJson(const google::protobuf::Message& message, bool defaults);

}  // namespace chainfleet

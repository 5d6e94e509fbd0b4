// Parses YAML or JSON text into a protobuf message, as proto3 JSON with original field names, and records line numbers.
//
// Stricter than proto3 JSON where people make mistakes: an unknown field, a duplicate key and two members of a oneof
// are errors. More lenient where YAML users expect it: a string may be any scalar, and an empty value of a message
// field is the empty message.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "google/protobuf/message.h"

namespace chainfleet {

// The line, from 1, of each given field, by dotted path ("sampler.emcmc.eta", "collect.kinds[1]").
using FieldLines = std::map<std::string, int>;

// Fills `message` and `lines`. Returns the errors, empty if there are none; each path is "FILE_NAME:LINE".
std::vector<FieldViolation> ReadYamlMessage(const std::string& file_name, const std::string& text,
                                            google::protobuf::Message* message, FieldLines* lines);

}  // namespace chainfleet

// YAML or JSON text into a protobuf message, as proto3 JSON with original field names, and where each field stood.
//
// Stricter than proto3 JSON where people slip: an unknown field, a key given twice and two members of a oneof are
// errors. Kinder where YAML people expect it: a string may be any scalar, an empty value of a message field is the
// empty message.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "google/protobuf/message.h"

namespace chainfleet {

// Dotted path of each field that was given ("sampler.emcmc.eta", "collect.kinds[1]") to its line, from 1.
using FieldLines = std::map<std::string, int>;

// Fills `message` and `lines`. Returns what is wrong, empty if nothing is; each path is "FILE_NAME:LINE".
std::vector<FieldViolation> ReadYamlMessage(const std::string& file_name, const std::string& text,
                                            google::protobuf::Message* message, FieldLines* lines);

}  // namespace chainfleet

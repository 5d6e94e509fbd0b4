// Messages in the state store: JSON by protobuf's mapping, with the field names of the schema, as the other records.
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace chainfleet {

std::string EncodeStored(const google::protobuf::Message& message);

// False if `text` is damaged. Fields of newer releases are ignored. Older releases stored the binary form, which is
// read too; it never begins with a brace.
bool DecodeStored(const std::string& text, google::protobuf::Message* message);

}  // namespace chainfleet

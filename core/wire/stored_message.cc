#include "core/wire/stored_message.h"

#include <google/protobuf/util/json_util.h>

#include "core/base/check.h"

namespace chainfleet {

std::string EncodeStored(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  CHAINFLEET_CHECK(google::protobuf::util::MessageToJsonString(message, &text, options).ok());
  return text;
}

bool DecodeStored(const std::string& text, google::protobuf::Message* message) {
  if (!text.starts_with('{')) return message->ParseFromString(text);
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  return google::protobuf::util::JsonStringToMessage(text, message, options).ok();
}

}  // namespace chainfleet

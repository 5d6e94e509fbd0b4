#include "server/rpc/gateway/message_fields.h"

#include <google/protobuf/util/json_util.h>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace chainfleet {

absl::Status SetField(const std::string& name, const std::string& text, google::protobuf::Message* message) {
  const auto* const field = message->GetDescriptor()->FindFieldByName(name);
  if (field == nullptr || field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
    return absl::InvalidArgumentError(absl::StrCat("there is no parameter '", name, "'"));
  }
  // Protobuf's JSON mapping takes numbers from strings, too, but no bool.
  const bool is_bool = field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_BOOL;
  nlohmann::json value =
      is_bool && (text == "true" || text == "false") ? nlohmann::json(text == "true") : nlohmann::json(text);
  if (field->is_repeated()) value = nlohmann::json::array({value});
  const std::unique_ptr<google::protobuf::Message> parsed(message->New());
  const std::string json = nlohmann::json{{name, value}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (!google::protobuf::util::JsonStringToMessage(json, parsed.get()).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter '", name, "' is no ", field->cpp_type_name(), ": '", text, "'"));
  }
  message->MergeFrom(*parsed);
  return absl::OkStatus();
}

}  // namespace chainfleet

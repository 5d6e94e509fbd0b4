#include "server/rpc/gateway/plain_json.h"

#include <string>
#include <vector>

#include "inference/grpc_service.pb.h"

namespace chainfleet {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using Json = nlohmann::ordered_json;

// `index`: of a repeated field; -1 of another.
template <typename Single, typename Repeated>
auto Get(const Message& message, const FieldDescriptor* field, int index, Single single, Repeated repeated) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  return index < 0 ? (reflection.*single)(message, field) : (reflection.*repeated)(message, field, index);
}

Json ValueOf(const Message& message, const FieldDescriptor* field, int index, bool defaults) {
  using Reflection = google::protobuf::Reflection;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return Get(message, field, index, &Reflection::GetInt32, &Reflection::GetRepeatedInt32);
    case FieldDescriptor::CPPTYPE_INT64:
      return Get(message, field, index, &Reflection::GetInt64, &Reflection::GetRepeatedInt64);
    case FieldDescriptor::CPPTYPE_UINT32:
      return Get(message, field, index, &Reflection::GetUInt32, &Reflection::GetRepeatedUInt32);
    case FieldDescriptor::CPPTYPE_UINT64:
      return Get(message, field, index, &Reflection::GetUInt64, &Reflection::GetRepeatedUInt64);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return Get(message, field, index, &Reflection::GetDouble, &Reflection::GetRepeatedDouble);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return Get(message, field, index, &Reflection::GetFloat, &Reflection::GetRepeatedFloat);
    case FieldDescriptor::CPPTYPE_BOOL:
      return Get(message, field, index, &Reflection::GetBool, &Reflection::GetRepeatedBool);
    case FieldDescriptor::CPPTYPE_ENUM:
      return Get(message, field, index, &Reflection::GetEnum, &Reflection::GetRepeatedEnum)->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return Get(message, field, index, &Reflection::GetString, &Reflection::GetRepeatedString);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      break;
  }
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  const Message& inner =
      index < 0 ? reflection.GetMessage(message, field) : reflection.GetRepeatedMessage(message, field, index);
  return PlainJson(inner, defaults);
}

Json RepeatedOf(const Message& message, const FieldDescriptor* field, bool defaults) {
  const int size = message.GetReflection()->FieldSize(message, field);
  Json values = field->is_map() ? Json::object() : Json::array();
  for (int i = 0; i < size; ++i) {
    if (!field->is_map()) {
      values.push_back(ValueOf(message, field, i, defaults));
      continue;
    }
    const Message& entry = message.GetReflection()->GetRepeatedMessage(message, field, i);
    const auto* const type = entry.GetDescriptor();
    values[entry.GetReflection()->GetString(entry, type->map_key())] = ValueOf(entry, type->map_value(), -1, defaults);
  }
  return values;
}

}  // namespace

Json PlainJson(const Message& message, bool defaults) {
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  Json json = Json::object();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    if (field->type() == FieldDescriptor::TYPE_BYTES) continue;
    if (field->is_repeated()) {
      if (defaults || message.GetReflection()->FieldSize(message, field) > 0) {
        json[field->name()] = RepeatedOf(message, field, defaults);
      }
      continue;
    }
    const bool is_set = message.GetReflection()->HasField(message, field);
    const bool may_be_absent = field->has_presence() || !defaults;
    if (!is_set && may_be_absent) continue;
    Json value = ValueOf(message, field, -1, defaults);
    if (&type == inference::InferParameter::descriptor()) return value;
    json[field->name()] = std::move(value);
  }
  return json;
}

}  // namespace chainfleet

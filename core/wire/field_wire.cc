#include "core/wire/field_wire.h"

#include <google/protobuf/duration.pb.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/wire/types_wire.h"

namespace chainfleet {

std::string FieldPath::text() const {
  std::string text = above != nullptr ? above->text() : "";
  if (!text.empty() && !name.empty()) text += '.';
  text += name;
  if (index >= 0) absl::StrAppend(&text, "[", index, "]");
  return text;
}

namespace wire {
namespace {

using google::protobuf::Duration;
using google::protobuf::EnumDescriptor;
using google::protobuf::Timestamp;

// Returns the key of a map entry.
const FieldDescriptor* KeyOf(const FieldDescriptor* field) { return field->message_type()->FindFieldByNumber(1); }
const FieldDescriptor* ValueOf(const FieldDescriptor* field) { return field->message_type()->FindFieldByNumber(2); }

// Returns the submessage, which has the generated type M.
template <typename M>
M* Sub(Message* message, const FieldDescriptor* field) {
  return google::protobuf::DynamicCastToGenerated<M>(message->GetReflection()->MutableMessage(message, field));
}
template <typename M>
const M& Sub(const Message& message, const FieldDescriptor* field) {
  return *google::protobuf::DynamicCastToGenerated<M>(&message.GetReflection()->GetMessage(message, field));
}

// The accessors that protobuf prefers make a virtual call for each number; predictions hold millions of numbers.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
template <typename T>
void SetNumbers(Message* message, const FieldDescriptor* field, const std::vector<T>& value) {
  message->GetReflection()->MutableRepeatedField<T>(message, field)->Add(value.begin(), value.end());
}
template <typename T>
void GetNumbers(const Message& message, const FieldDescriptor* field, std::vector<T>* value) {
  const auto& numbers = message.GetReflection()->GetRepeatedField<T>(message, field);
  value->assign(numbers.begin(), numbers.end());
}
#pragma GCC diagnostic pop

bool HasUnspecified(const EnumDescriptor* type) { return absl::EndsWith(type->value(0)->name(), "_UNSPECIFIED"); }

std::string KnownValues(const EnumDescriptor* type) {
  std::string known;
  for (int i = HasUnspecified(type) ? 1 : 0; i < type->value_count(); ++i) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", type->value(i)->name());
  }
  return known;
}

}  // namespace

const FieldDescriptor* Named(const google::protobuf::Descriptor* descriptor, const char* name) {
  const FieldDescriptor* field = descriptor->FindFieldByName(name);
  CHAINFLEET_CHECK(field != nullptr) << descriptor->full_name() << " has no field " << name;
  return field;
}

bool IsSet(const Message& message, const FieldDescriptor* field) {
  if (field->is_repeated()) return message.GetReflection()->FieldSize(message, field) > 0;
  return message.GetReflection()->HasField(message, field);
}

void Set(Message* message, const FieldDescriptor* field, double value) {
  message->GetReflection()->SetDouble(message, field, value);
}
void Set(Message* message, const FieldDescriptor* field, int32_t value) {
  message->GetReflection()->SetInt32(message, field, value);
}
void Set(Message* message, const FieldDescriptor* field, int64_t value) {
  message->GetReflection()->SetInt64(message, field, value);
}
void Set(Message* message, const FieldDescriptor* field, uint64_t value) {
  message->GetReflection()->SetUInt64(message, field, value);
}
void Set(Message* message, const FieldDescriptor* field, bool value) {
  message->GetReflection()->SetBool(message, field, value);
}
void Set(Message* message, const FieldDescriptor* field, const std::string& value) {
  message->GetReflection()->SetString(message, field, value);
}
void Set(Message* message, const FieldDescriptor* field, absl::Time value) {
  *Sub<Timestamp>(message, field) = ToProto(value);
}
void Set(Message* message, const FieldDescriptor* field, absl::Duration value) {
  auto* proto = Sub<Duration>(message, field);
  proto->set_seconds(absl::IDivDuration(value, absl::Seconds(1), &value));
  proto->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(value)));
}
void Set(Message* message, const FieldDescriptor* field, const std::vector<double>& value) {
  SetNumbers(message, field, value);
}
void Set(Message* message, const FieldDescriptor* field, const std::vector<float>& value) {
  SetNumbers(message, field, value);
}
void Set(Message* message, const FieldDescriptor* field, const std::vector<int32_t>& value) {
  SetNumbers(message, field, value);
}
void Set(Message* message, const FieldDescriptor* field, const std::vector<int64_t>& value) {
  SetNumbers(message, field, value);
}
void Set(Message* message, const FieldDescriptor* field, const std::vector<std::string>& value) {
  for (const std::string& text : value) message->GetReflection()->AddString(message, field, text);
}
void Set(Message* message, const FieldDescriptor* field, const std::map<std::string, double>& value) {
  for (const auto& [key, number] : value) {
    Message* entry = message->GetReflection()->AddMessage(message, field);
    Set(entry, KeyOf(field), key);
    Set(entry, ValueOf(field), number);
  }
}

void Get(const Message& message, const FieldDescriptor* field, double* value) {
  *value = message.GetReflection()->GetDouble(message, field);
}
void Get(const Message& message, const FieldDescriptor* field, int32_t* value) {
  *value = message.GetReflection()->GetInt32(message, field);
}
void Get(const Message& message, const FieldDescriptor* field, int64_t* value) {
  *value = message.GetReflection()->GetInt64(message, field);
}
void Get(const Message& message, const FieldDescriptor* field, uint64_t* value) {
  *value = message.GetReflection()->GetUInt64(message, field);
}
void Get(const Message& message, const FieldDescriptor* field, bool* value) {
  *value = message.GetReflection()->GetBool(message, field);
}
void Get(const Message& message, const FieldDescriptor* field, std::string* value) {
  *value = message.GetReflection()->GetString(message, field);
}
void Get(const Message& message, const FieldDescriptor* field, absl::Time* value) {
  *value = FromProto(Sub<Timestamp>(message, field));
}
void Get(const Message& message, const FieldDescriptor* field, absl::Duration* value) {
  const auto& proto = Sub<Duration>(message, field);
  *value = absl::Seconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
}
void Get(const Message& message, const FieldDescriptor* field, std::vector<double>* value) {
  GetNumbers(message, field, value);
}
void Get(const Message& message, const FieldDescriptor* field, std::vector<float>* value) {
  GetNumbers(message, field, value);
}
void Get(const Message& message, const FieldDescriptor* field, std::vector<int32_t>* value) {
  GetNumbers(message, field, value);
}
void Get(const Message& message, const FieldDescriptor* field, std::vector<int64_t>* value) {
  GetNumbers(message, field, value);
}
void Get(const Message& message, const FieldDescriptor* field, std::vector<std::string>* value) {
  for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
    value->push_back(message.GetReflection()->GetRepeatedString(message, field, i));
  }
}
void Get(const Message& message, const FieldDescriptor* field, std::map<std::string, double>* value) {
  value->clear();
  for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
    const Message& entry = message.GetReflection()->GetRepeatedMessage(message, field, i);
    std::string key;
    Get(entry, KeyOf(field), &key);
    Get(entry, ValueOf(field), &(*value)[key]);
  }
}

void SetNumber(Message* message, const FieldDescriptor* field, int number) {
  const int value = number + (HasUnspecified(field->enum_type()) ? 1 : 0);
  const auto* reflection = message->GetReflection();
  if (field->is_repeated()) return reflection->AddEnumValue(message, field, value);
  reflection->SetEnumValue(message, field, value);
}

int GetNumber(const Message& message, const FieldDescriptor* field, int index, const FieldPath& path,
              Violations* violations) {
  const auto* reflection = message.GetReflection();
  const auto* type = field->enum_type();
  const int value =
      index < 0 ? reflection->GetEnumValue(message, field) : reflection->GetRepeatedEnumValue(message, field, index);
  const int first = HasUnspecified(type) ? 1 : 0;
  if (value >= first && type->FindValueByNumber(value) != nullptr) return value - first;
  violations->push_back(
      {path.text(), absl::StrCat("unknown value ", value, "; this version knows ", KnownValues(type))});
  return -1;
}

std::string GetWord(const Message& message, const FieldDescriptor* field, int index) {
  const auto* reflection = message.GetReflection();
  return index < 0 ? reflection->GetString(message, field) : reflection->GetRepeatedString(message, field, index);
}

void AddWord(Message* message, const FieldDescriptor* field, const std::string& word) {
  const auto* reflection = message->GetReflection();
  if (field->is_repeated()) return reflection->AddString(message, field, word);
  reflection->SetString(message, field, word);
}

const FieldDescriptor* Choice(const Message& message, const std::string& name) {
  const auto* oneof = message.GetDescriptor()->oneof_decl(0);
  if (name.empty()) return message.GetReflection()->GetOneofFieldDescriptor(message, oneof);
  const FieldDescriptor* field = Named(message.GetDescriptor(), name.c_str());
  CHAINFLEET_CHECK(field->containing_oneof() == oneof) << name << " is not in " << oneof->full_name();
  return field;
}

}  // namespace wire
}  // namespace chainfleet

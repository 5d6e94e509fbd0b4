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
M* Sub(const FieldOut& to) {
  return google::protobuf::DynamicCastToGenerated<M>(to.reflection->MutableMessage(to.message, to.field));
}
template <typename M>
const M& Sub(const FieldIn& from) {
  return *google::protobuf::DynamicCastToGenerated<M>(&from.reflection->GetMessage(from.message, from.field));
}

// The accessors that protobuf prefers make a virtual call for each number; predictions hold millions of numbers.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
template <typename T>
void SetNumbers(const FieldOut& to, const std::vector<T>& value) {
  to.reflection->MutableRepeatedField<T>(to.message, to.field)->Add(value.begin(), value.end());
}
template <typename T>
void GetNumbers(const FieldIn& from, std::vector<T>* value) {
  const auto& numbers = from.reflection->GetRepeatedField<T>(from.message, from.field);
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

bool IsSet(const FieldIn& from) {
  if (from.field->is_repeated()) return from.reflection->FieldSize(from.message, from.field) > 0;
  return from.reflection->HasField(from.message, from.field);
}

void Set(const FieldOut& to, double value) { to.reflection->SetDouble(to.message, to.field, value); }
void Set(const FieldOut& to, int32_t value) { to.reflection->SetInt32(to.message, to.field, value); }
void Set(const FieldOut& to, int64_t value) { to.reflection->SetInt64(to.message, to.field, value); }
void Set(const FieldOut& to, uint64_t value) { to.reflection->SetUInt64(to.message, to.field, value); }
void Set(const FieldOut& to, bool value) { to.reflection->SetBool(to.message, to.field, value); }
void Set(const FieldOut& to, const std::string& value) { to.reflection->SetString(to.message, to.field, value); }
void Set(const FieldOut& to, absl::Time value) { *Sub<Timestamp>(to) = ToProto(value); }
void Set(const FieldOut& to, absl::Duration value) {
  auto* proto = Sub<Duration>(to);
  proto->set_seconds(absl::IDivDuration(value, absl::Seconds(1), &value));
  proto->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(value)));
}
void Set(const FieldOut& to, const std::vector<double>& value) { SetNumbers(to, value); }
void Set(const FieldOut& to, const std::vector<float>& value) { SetNumbers(to, value); }
void Set(const FieldOut& to, const std::vector<int32_t>& value) { SetNumbers(to, value); }
void Set(const FieldOut& to, const std::vector<int64_t>& value) { SetNumbers(to, value); }
void Set(const FieldOut& to, const std::vector<std::string>& value) {
  for (const std::string& text : value) to.reflection->AddString(to.message, to.field, text);
}
void Set(const FieldOut& to, const std::map<std::string, double>& value) {
  for (const auto& [key, number] : value) {
    Message* entry = to.reflection->AddMessage(to.message, to.field);
    Set({entry, entry->GetReflection(), KeyOf(to.field)}, key);
    Set({entry, entry->GetReflection(), ValueOf(to.field)}, number);
  }
}

void Get(const FieldIn& from, double* value) { *value = from.reflection->GetDouble(from.message, from.field); }
void Get(const FieldIn& from, int32_t* value) { *value = from.reflection->GetInt32(from.message, from.field); }
void Get(const FieldIn& from, int64_t* value) { *value = from.reflection->GetInt64(from.message, from.field); }
void Get(const FieldIn& from, uint64_t* value) { *value = from.reflection->GetUInt64(from.message, from.field); }
void Get(const FieldIn& from, bool* value) { *value = from.reflection->GetBool(from.message, from.field); }
void Get(const FieldIn& from, std::string* value) { *value = from.reflection->GetString(from.message, from.field); }
void Get(const FieldIn& from, absl::Time* value) { *value = FromProto(Sub<Timestamp>(from)); }
void Get(const FieldIn& from, absl::Duration* value) {
  const auto& proto = Sub<Duration>(from);
  *value = absl::Seconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
}
void Get(const FieldIn& from, std::vector<double>* value) { GetNumbers(from, value); }
void Get(const FieldIn& from, std::vector<float>* value) { GetNumbers(from, value); }
void Get(const FieldIn& from, std::vector<int32_t>* value) { GetNumbers(from, value); }
void Get(const FieldIn& from, std::vector<int64_t>* value) { GetNumbers(from, value); }
void Get(const FieldIn& from, std::vector<std::string>* value) {
  for (int i = 0; i < from.reflection->FieldSize(from.message, from.field); ++i) {
    value->push_back(from.reflection->GetRepeatedString(from.message, from.field, i));
  }
}
void Get(const FieldIn& from, std::map<std::string, double>* value) {
  value->clear();
  for (int i = 0; i < from.reflection->FieldSize(from.message, from.field); ++i) {
    const Message& entry = from.reflection->GetRepeatedMessage(from.message, from.field, i);
    std::string key;
    Get({entry, entry.GetReflection(), KeyOf(from.field)}, &key);
    Get({entry, entry.GetReflection(), ValueOf(from.field)}, &(*value)[key]);
  }
}

void SetNumber(const FieldOut& to, int number) {
  const int value = number + (HasUnspecified(to.field->enum_type()) ? 1 : 0);
  if (to.field->is_repeated()) return to.reflection->AddEnumValue(to.message, to.field, value);
  to.reflection->SetEnumValue(to.message, to.field, value);
}

int GetNumber(const FieldIn& from, int index, const FieldPath& path, Violations* violations) {
  const auto* type = from.field->enum_type();
  const int value = index < 0 ? from.reflection->GetEnumValue(from.message, from.field)
                              : from.reflection->GetRepeatedEnumValue(from.message, from.field, index);
  const int first = HasUnspecified(type) ? 1 : 0;
  if (value >= first && type->FindValueByNumber(value) != nullptr) return value - first;
  violations->push_back(
      {path.text(), absl::StrCat("unknown value ", value, "; this version knows ", KnownValues(type))});
  return -1;
}

std::string GetWord(const FieldIn& from, int index) {
  return index < 0 ? from.reflection->GetString(from.message, from.field)
                   : from.reflection->GetRepeatedString(from.message, from.field, index);
}

void AddWord(const FieldOut& to, const std::string& word) {
  if (to.field->is_repeated()) return to.reflection->AddString(to.message, to.field, word);
  to.reflection->SetString(to.message, to.field, word);
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

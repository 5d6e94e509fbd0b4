#include "core/wire/field_wire.h"

namespace chainfleet {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Members of a map entry.
const FieldDescriptor* KeyOf(const FieldDescriptor* field) { return field->message_type()->FindFieldByNumber(1); }
const FieldDescriptor* ValueOf(const FieldDescriptor* field) { return field->message_type()->FindFieldByNumber(2); }

const FieldDescriptor* Named(const Message& message, const std::string& name) {
  const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(name);
  CHAINFLEET_CHECK(field != nullptr) << message.GetDescriptor()->full_name() << " has no field " << name;
  return field;
}

}  // namespace

const FieldDescriptor* FieldWriter::Field(const std::string& name) const {
  return scalar_ != nullptr ? scalar_ : Named(*message_, name);
}

void FieldWriter::Set(const FieldDescriptor* field, double value) const {
  message_->GetReflection()->SetDouble(message_, field, value);
}
void FieldWriter::Set(const FieldDescriptor* field, int64_t value) const {
  message_->GetReflection()->SetInt64(message_, field, value);
}
void FieldWriter::Set(const FieldDescriptor* field, bool value) const {
  message_->GetReflection()->SetBool(message_, field, value);
}
void FieldWriter::Set(const FieldDescriptor* field, const std::string& value) const {
  message_->GetReflection()->SetString(message_, field, value);
}
void FieldWriter::Set(const FieldDescriptor* field, const std::vector<double>& value) const {
  for (const double v : value) message_->GetReflection()->AddDouble(message_, field, v);
}
void FieldWriter::Set(const FieldDescriptor* field, const std::vector<int64_t>& value) const {
  for (const int64_t v : value) message_->GetReflection()->AddInt64(message_, field, v);
}
void FieldWriter::Set(const FieldDescriptor* field, const std::map<std::string, double>& value) const {
  for (const auto& [key, number] : value) {
    Message* entry = message_->GetReflection()->AddMessage(message_, field);
    entry->GetReflection()->SetString(entry, KeyOf(field), key);
    entry->GetReflection()->SetDouble(entry, ValueOf(field), number);
  }
}

const FieldDescriptor* FieldReader::Field(const std::string& name) const {
  return scalar_ != nullptr ? scalar_ : Named(message_, name);
}

bool FieldReader::IsSet(const FieldDescriptor* field) const {
  if (field->is_repeated()) return message_.GetReflection()->FieldSize(message_, field) > 0;
  return message_.GetReflection()->HasField(message_, field);
}

void FieldReader::Get(const FieldDescriptor* field, double* value) const {
  *value = message_.GetReflection()->GetDouble(message_, field);
}
void FieldReader::Get(const FieldDescriptor* field, int64_t* value) const {
  *value = message_.GetReflection()->GetInt64(message_, field);
}
void FieldReader::Get(const FieldDescriptor* field, bool* value) const {
  *value = message_.GetReflection()->GetBool(message_, field);
}
void FieldReader::Get(const FieldDescriptor* field, std::string* value) const {
  *value = message_.GetReflection()->GetString(message_, field);
}
void FieldReader::Get(const FieldDescriptor* field, std::vector<double>* value) const {
  const auto* reflection = message_.GetReflection();
  value->clear();
  for (int i = 0; i < reflection->FieldSize(message_, field); ++i) {
    value->push_back(reflection->GetRepeatedDouble(message_, field, i));
  }
}
void FieldReader::Get(const FieldDescriptor* field, std::vector<int64_t>* value) const {
  const auto* reflection = message_.GetReflection();
  value->clear();
  for (int i = 0; i < reflection->FieldSize(message_, field); ++i) {
    value->push_back(reflection->GetRepeatedInt64(message_, field, i));
  }
}
void FieldReader::Get(const FieldDescriptor* field, std::map<std::string, double>* value) const {
  const auto* reflection = message_.GetReflection();
  value->clear();
  for (int i = 0; i < reflection->FieldSize(message_, field); ++i) {
    const Message& entry = reflection->GetRepeatedMessage(message_, field, i);
    const auto* inside = entry.GetReflection();
    (*value)[inside->GetString(entry, KeyOf(field))] = inside->GetDouble(entry, ValueOf(field));
  }
}

const FieldDescriptor* Choice(const Message& message, const std::string& name) {
  const auto* oneof = message.GetDescriptor()->oneof_decl(0);
  if (name.empty()) return message.GetReflection()->GetOneofFieldDescriptor(message, oneof);
  const FieldDescriptor* field = Named(message, name);
  CHAINFLEET_CHECK(field->containing_oneof() == oneof) << name << " is not in " << oneof->full_name();
  return field;
}

}  // namespace chainfleet

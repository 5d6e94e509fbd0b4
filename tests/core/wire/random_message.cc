#include "tests/core/wire/random_message.h"

#include <google/protobuf/descriptor.h>

namespace chainfleet {

using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::OneofDescriptor;
using google::protobuf::Reflection;

void RandomMessage::Fill(Message* message) {
  const auto* descriptor = message->GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    if (descriptor->field(i)->real_containing_oneof() == nullptr) Set(message, descriptor->field(i));
  }
  for (int i = 0; i < descriptor->real_oneof_decl_count(); ++i) {  // the synthetic ones of `optional` come after
    const OneofDescriptor* oneof = descriptor->oneof_decl(i);
    Set(message, oneof->field(Below(oneof->field_count())));
  }
}

int RandomMessage::EnumValue(const FieldDescriptor* field) {
  const EnumDescriptor* type = field->enum_type();
  const bool has_unspecified = type->value(0)->name().find("UNSPECIFIED") != std::string::npos;
  const int first = has_unspecified ? 1 : 0;
  return type->value(first + Below(type->value_count() - first))->number();
}

void RandomMessage::Set(Message* message, const FieldDescriptor* field) {
  const Reflection* reflection = message->GetReflection();
  const int count = field->is_repeated() ? 1 + Below(3) : 1;
  for (int i = 0; i < count; ++i) {
    const bool list = field->is_repeated();
    const int value = 1 + Below(999'999);  // small enough for nanoseconds
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        Fill(list ? reflection->AddMessage(message, field) : reflection->MutableMessage(message, field));
        break;
      case FieldDescriptor::CPPTYPE_STRING: {
        const std::string text = "s" + std::to_string(value);
        list ? reflection->AddString(message, field, text) : reflection->SetString(message, field, text);
        break;
      }
      case FieldDescriptor::CPPTYPE_ENUM: {
        const int number = EnumValue(field);
        list ? reflection->AddEnumValue(message, field, number) : reflection->SetEnumValue(message, field, number);
        break;
      }
      case FieldDescriptor::CPPTYPE_BOOL:
        list ? reflection->AddBool(message, field, true) : reflection->SetBool(message, field, true);
        break;
      case FieldDescriptor::CPPTYPE_INT32:
        list ? reflection->AddInt32(message, field, value) : reflection->SetInt32(message, field, value);
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        list ? reflection->AddInt64(message, field, value) : reflection->SetInt64(message, field, value);
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        list ? reflection->AddUInt64(message, field, random_()) : reflection->SetUInt64(message, field, random_());
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        list ? reflection->AddDouble(message, field, value + 0.25)
             : reflection->SetDouble(message, field, value + 0.25);
        break;
      case FieldDescriptor::CPPTYPE_FLOAT:
        list ? reflection->AddFloat(message, field, static_cast<float>(value) + 0.25f)
             : reflection->SetFloat(message, field, static_cast<float>(value) + 0.25f);
        break;
      default:
        GOOGLE_LOG(FATAL) << "the contract has a new kind of field, " << field->full_name() << ": fill it here";
    }
  }
}

}  // namespace chainfleet

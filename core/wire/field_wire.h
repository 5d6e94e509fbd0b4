// Settings structs (core/domain/fields.h) <-> messages whose fields bear the same names, by reflection: a new setting
// is one line in the struct and one in the .proto.
//
// A scalar field that is absent leaves the struct's default; `optional` in the .proto tells absent from zero. Enums are
// strings. A variant is a oneof whose fields bear the alternatives' kName; an alternative with one setting alone may be
// a scalar.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/domain/fields.h"

namespace chainfleet {

// Sets the fields of `message` to the visited values.
class FieldWriter {
 public:
  explicit FieldWriter(google::protobuf::Message* message) : message_(message) {}
  // Into the scalar field `field` instead of the one of the visited name.
  FieldWriter(google::protobuf::Message* message, const google::protobuf::FieldDescriptor* field)
      : message_(message), scalar_(field) {}

  template <typename T>
  void operator()(const char* name, const T& value, const Bounds& = {}) const {
    if constexpr (std::is_enum_v<T>) {
      Set(Field(name), EnumName(value));
    } else {
      Set(Field(name), value);
    }
  }
  template <typename T>
  void operator()(const char* name, const std::optional<T>& value, const Bounds& = {}) const {
    if (value) Set(Field(name), *value);
  }

 private:
  const google::protobuf::FieldDescriptor* Field(const std::string& name) const;
  void Set(const google::protobuf::FieldDescriptor* field, double value) const;
  void Set(const google::protobuf::FieldDescriptor* field, int64_t value) const;
  void Set(const google::protobuf::FieldDescriptor* field, bool value) const;
  void Set(const google::protobuf::FieldDescriptor* field, const std::string& value) const;
  void Set(const google::protobuf::FieldDescriptor* field, const std::vector<double>& value) const;
  void Set(const google::protobuf::FieldDescriptor* field, const std::vector<int64_t>& value) const;
  void Set(const google::protobuf::FieldDescriptor* field, const std::map<std::string, double>& value) const;

  google::protobuf::Message* message_;
  const google::protobuf::FieldDescriptor* scalar_ = nullptr;
};

// Sets the visited values from the fields of `message`; an unknown enum name is a violation at `path`.name.
class FieldReader {
 public:
  FieldReader(const google::protobuf::Message& message, std::string path, std::vector<FieldViolation>* violations)
      : message_(message), path_(std::move(path)), violations_(violations) {}
  FieldReader(const google::protobuf::Message& message, const google::protobuf::FieldDescriptor* field)
      : message_(message), scalar_(field) {}

  template <typename T>
  void operator()(const char* name, T& value, const Bounds& = {}) const {
    const google::protobuf::FieldDescriptor* field = Field(name);
    if (!IsSet(field)) return;
    if constexpr (std::is_enum_v<T>) {
      std::string text;
      Get(field, &text);
      const std::optional<T> known = EnumFromName<T>(text);
      if (known) value = *known;
      if (!known)
        violations_->push_back(
            {path_.empty() ? name : path_ + "." + name, "\"" + text + "\"; allowed: " + AllEnumNames<T>()});
    } else {
      Get(field, &value);
    }
  }
  template <typename T>
  void operator()(const char* name, std::optional<T>& value, const Bounds& = {}) const {
    const google::protobuf::FieldDescriptor* field = Field(name);
    if (IsSet(field)) Get(field, &value.emplace());
  }

 private:
  const google::protobuf::FieldDescriptor* Field(const std::string& name) const;
  bool IsSet(const google::protobuf::FieldDescriptor* field) const;
  void Get(const google::protobuf::FieldDescriptor* field, double* value) const;
  void Get(const google::protobuf::FieldDescriptor* field, int64_t* value) const;
  void Get(const google::protobuf::FieldDescriptor* field, bool* value) const;
  void Get(const google::protobuf::FieldDescriptor* field, std::string* value) const;
  void Get(const google::protobuf::FieldDescriptor* field, std::vector<double>* value) const;
  void Get(const google::protobuf::FieldDescriptor* field, std::vector<int64_t>* value) const;
  void Get(const google::protobuf::FieldDescriptor* field, std::map<std::string, double>* value) const;

  const google::protobuf::Message& message_;
  std::string path_;
  std::vector<FieldViolation>* violations_ = nullptr;
  const google::protobuf::FieldDescriptor* scalar_ = nullptr;
};

// The field of `message`'s one oneof called `name`, or the one that is set (null if none) for an empty name.
const google::protobuf::FieldDescriptor* Choice(const google::protobuf::Message& message, const std::string& name);

// Sets the oneof to the alternative that `kind` holds.
template <typename Variant>
void ChoiceToProto(const Variant& kind, google::protobuf::Message* message) {
  std::visit(
      [message](const auto& spec) {
        const auto* field = Choice(*message, spec.kName);
        if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
          spec.Fields(spec, FieldWriter(message->GetReflection()->MutableMessage(message, field)));
        } else {
          spec.Fields(spec, FieldWriter(message, field));
        }
      },
      kind);
}

// The alternative that is set; a violation at `path` listing all if none is.
template <typename Variant>
void ChoiceFromProto(const google::protobuf::Message& message, const std::string& path, Variant* kind,
                     std::vector<FieldViolation>* violations) {
  const auto* field = Choice(message, "");
  if (field == nullptr) {
    violations->push_back({path, "empty; give one of " + AlternativeNames<Variant>()});
    return;
  }
  ForEachAlternative<Variant>([&](auto spec) {
    if (field->name() != spec.kName) return;
    if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
      const auto& part = message.GetReflection()->GetMessage(message, field);
      spec.Fields(spec, FieldReader(part, path + "." + spec.kName, violations));
    } else {
      spec.Fields(spec, FieldReader(message, field));
    }
    *kind = spec;
  });
}

}  // namespace chainfleet

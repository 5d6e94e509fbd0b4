// Maps structs with Fields (core/domain/fields.h) to and from messages whose fields have the same names, by reflection.
// A new field is one line in the struct and one in the .proto.
//
// An absent field leaves the struct's default if the field is repeated, or `optional` in the .proto or the struct. Any
// other absent field is zero, empty or a message of such fields. In job files an enum is a string (its name; empty: the
// default). Elsewhere an enum of the .proto has the struct's values, shifted by one if the .proto begins with an
// UNSPECIFIED. A variant is a oneof whose fields have the alternatives' kName; an alternative with only one setting may
// be a scalar.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/time/time.h"
#include "core/base/check.h"
#include "core/base/status.h"
#include "core/domain/fields.h"

namespace chainfleet {

// The path of a field in its message. Becomes text only for a violation.
struct FieldPath {
  const FieldPath* above = nullptr;
  std::string_view name;  // empty: the message itself
  int index = -1;         // index in a repeated field
  std::string text() const;
  std::string Below(std::string_view field, int at = -1) const { return FieldPath{this, field, at}.text(); }
};

namespace wire {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Violations = std::vector<FieldViolation>;

// A field to write or to read. Its message is asked once for the reflection of all fields, because each call checks
// that the descriptors are built.
struct FieldOut {
  Message* message;
  const Reflection* reflection;
  const FieldDescriptor* field;
};
struct FieldIn {
  const Message& message;
  const Reflection* reflection;
  const FieldDescriptor* field;
};

// Returns the field called `name`. REQUIRES: the message has the field (checked).
const FieldDescriptor* Named(const google::protobuf::Descriptor* descriptor, const char* name);

// Returns true if the field is set; for a field without presence, if its value is not zero.
bool IsSet(const FieldIn& from);

// Sets the whole value of a field.
void Set(const FieldOut& to, double value);
void Set(const FieldOut& to, int32_t value);
void Set(const FieldOut& to, int64_t value);
void Set(const FieldOut& to, uint64_t value);
void Set(const FieldOut& to, bool value);
void Set(const FieldOut& to, const std::string& value);
void Set(const FieldOut& to, absl::Time value);
void Set(const FieldOut& to, absl::Duration value);
void Set(const FieldOut& to, const std::vector<double>& value);
void Set(const FieldOut& to, const std::vector<float>& value);
void Set(const FieldOut& to, const std::vector<int32_t>& value);
void Set(const FieldOut& to, const std::vector<int64_t>& value);
void Set(const FieldOut& to, const std::vector<std::string>& value);
void Set(const FieldOut& to, const std::map<std::string, double>& value);
void Get(const FieldIn& from, double* value);
void Get(const FieldIn& from, int32_t* value);
void Get(const FieldIn& from, int64_t* value);
void Get(const FieldIn& from, uint64_t* value);
void Get(const FieldIn& from, bool* value);
void Get(const FieldIn& from, std::string* value);
void Get(const FieldIn& from, absl::Time* value);
void Get(const FieldIn& from, absl::Duration* value);
void Get(const FieldIn& from, std::vector<double>* value);
void Get(const FieldIn& from, std::vector<float>* value);
void Get(const FieldIn& from, std::vector<int32_t>* value);
void Get(const FieldIn& from, std::vector<int64_t>* value);
void Get(const FieldIn& from, std::vector<std::string>* value);
void Get(const FieldIn& from, std::map<std::string, double>* value);

// Maps an enum's number to the struct's; -1 and a violation for a number that this build does not know.
void SetNumber(const FieldOut& to, int number);
int GetNumber(const FieldIn& from, int index, const FieldPath& path, Violations* violations);
// Returns the name of an enum's value. `index`: the position in a repeated field, else -1.
std::string GetWord(const FieldIn& from, int index);
void AddWord(const FieldOut& to, const std::string& word);

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <typename T>
inline constexpr bool kIsVector = false;
template <typename T>
inline constexpr bool kIsVector<std::vector<T>> = true;

// The fields of a message in the order in which T visits them, looked up once.
template <typename T>
const std::vector<const FieldDescriptor*>& FieldsInOrder(const Message& message, const Reflection* reflection) {
  struct Table {
    Table(const Message& m, const Reflection* r) : reflection(r) {
      T value;
      T::Fields(value, [&](const char* name, auto&&...) { fields.push_back(Named(m.GetDescriptor(), name)); });
    }
    const Reflection* const reflection;
    std::vector<const FieldDescriptor*> fields;
  };
  static const Table table(message, reflection);
  CHAINFLEET_CHECK(table.reflection == reflection) << message.GetTypeName() << " is not the message of the struct";
  return table.fields;
}

template <typename T>
void WriteFields(const T& value, Message* message);
template <typename T>
void ReadFields(const Message& message, const FieldPath& path, T* value, Violations* violations);

template <typename E>
void WriteEnum(E value, const FieldOut& to) {
  if constexpr (HasEnumNames<E>) {
    if (to.field->cpp_type() == to.field->CPPTYPE_STRING) return AddWord(to, EnumName(value));
  }
  SetNumber(to, static_cast<int>(value));
}

template <typename E>
void ReadEnum(const FieldIn& from, int index, const FieldPath& path, E* value, Violations* violations) {
  if constexpr (HasEnumNames<E>) {
    if (from.field->cpp_type() == from.field->CPPTYPE_STRING) {
      const std::string word = GetWord(from, index);
      const auto known = EnumFromName<E>(word);
      if (known) *value = *known;
      if (!known) violations->push_back({path.text(), "\"" + word + "\"; allowed: " + AllEnumNames<E>()});
      return;
    }
  }
  if (const int number = GetNumber(from, index, path, violations); number >= 0) {
    *value = static_cast<E>(number);
  }
}

template <typename T>
void WriteValue(const T& value, const FieldOut& to) {
  if constexpr (std::is_enum_v<T>) {
    WriteEnum(value, to);
  } else if constexpr (HasFields<T>) {
    WriteFields(value, to.reflection->MutableMessage(to.message, to.field));
  } else if constexpr (kIsVector<T>) {
    using Element = typename T::value_type;
    if constexpr (std::is_enum_v<Element>) {
      for (const Element element : value) WriteEnum(element, to);
    } else if constexpr (HasFields<Element>) {
      for (const Element& element : value) WriteFields(element, to.reflection->AddMessage(to.message, to.field));
    } else {
      Set(to, value);
    }
  } else {
    Set(to, value);
  }
}

template <typename T>
void ReadList(const FieldIn& from, const FieldPath& path, std::vector<T>* list, Violations* violations) {
  const int size = from.reflection->FieldSize(from.message, from.field);
  if constexpr (std::is_enum_v<T> || HasFields<T>) {
    list->resize(static_cast<size_t>(size));
    for (int i = 0; i < size; ++i) {
      const FieldPath at{path.above, path.name, i};
      T* element = &(*list)[static_cast<size_t>(i)];
      if constexpr (std::is_enum_v<T>) {
        ReadEnum(from, i, at, element, violations);
      } else {
        ReadFields(from.reflection->GetRepeatedMessage(from.message, from.field, i), at, element, violations);
      }
    }
  } else {
    Get(from, list);
  }
}

template <typename T>
void ReadValue(const FieldIn& from, const FieldPath& path, T* value, Violations* violations) {
  if constexpr (std::is_enum_v<T>) {
    ReadEnum(from, -1, path, value, violations);
  } else if constexpr (HasFields<T>) {
    ReadFields(from.reflection->GetMessage(from.message, from.field), path, value, violations);
  } else if constexpr (kIsVector<T>) {
    ReadList(from, path, value, violations);
  } else {
    Get(from, value);
  }
}

template <typename T>
void WriteMember(const T& member, const FieldOut& to) {
  if constexpr (!kIsOptional<T>) {
    WriteValue(member, to);
  } else if (member) {
    WriteValue(*member, to);
  }
}

template <typename T>
void ReadMember(const FieldIn& from, const FieldPath& path, T* member, Violations* violations) {
  if constexpr (kIsOptional<T>) {
    ReadValue(from, path, &member->emplace(), violations);
  } else {
    ReadValue(from, path, member, violations);
  }
}

template <typename T>
void WriteFields(const T& value, Message* message) {
  const Reflection* const reflection = message->GetReflection();
  const auto* field = FieldsInOrder<T>(*message, reflection).data();
  T::Fields(value, [&](const char*, const auto& member, const Bounds& rules = {}) {
    const FieldOut to{message, reflection, *field++};
    if constexpr (requires { member.any(); }) {
      if (rules.if_any && !member.any()) return;
    }
    WriteMember(member, to);
  });
}

template <typename T>
void ReadFields(const Message& message, const FieldPath& path, T* value, Violations* violations) {
  const Reflection* const reflection = message.GetReflection();
  const auto* field = FieldsInOrder<T>(message, reflection).data();
  T::Fields(*value, [&](const char* name, auto& member, const Bounds& rules = {}) {
    const FieldDescriptor* const at = *field++;
    using Member = std::decay_t<decltype(member)>;
    const bool may_be_absent = kIsOptional<Member> || rules.or_default || at->is_repeated() ||
                               (at->has_presence() && at->cpp_type() != at->CPPTYPE_MESSAGE) ||
                               (std::is_enum_v<Member> && at->cpp_type() == at->CPPTYPE_STRING);
    const FieldIn from{message, reflection, at};
    if (may_be_absent && !IsSet(from)) return;
    ReadMember(from, FieldPath{&path, name}, &member, violations);
  });
}

// Returns the field called `name` of `message`'s only oneof; an empty name returns the set field (null if none).
const FieldDescriptor* Choice(const Message& message, const std::string& name);

}  // namespace wire

// Returns the message of a struct.
template <typename Proto, typename T>
Proto Written(const T& value) {
  Proto proto;
  wire::WriteFields(value, &proto);
  return proto;
}

// Returns the struct of a message. INVALID_ARGUMENT has the path of each value that this build does not know.
template <typename T>
absl::StatusOr<T> Parsed(const google::protobuf::Message& message) {
  T value;
  std::vector<FieldViolation> violations;
  wire::ReadFields(message, FieldPath(), &value, &violations);
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(violations));
  return value;
}

// Returns the struct of a message that has no unknown values. REQUIRES: the struct has no enum (checked).
template <typename T>
T ParsedPlain(const google::protobuf::Message& message) {
  T value;
  std::vector<FieldViolation> violations;
  wire::ReadFields(message, FieldPath(), &value, &violations);
  CHAINFLEET_CHECK(violations.empty()) << violations[0].path << ": " << violations[0].message;
  return value;
}

// Sets the oneof to the alternative that `kind` holds.
template <typename Variant>
void ChoiceToProto(const Variant& kind, google::protobuf::Message* message) {
  std::visit(
      [message](const auto& spec) {
        const auto* field = wire::Choice(*message, spec.kName);
        if (field->cpp_type() == field->CPPTYPE_MESSAGE) {
          wire::WriteFields(spec, message->GetReflection()->MutableMessage(message, field));
        } else {
          spec.Fields(spec, [&](const char*, const auto& value, auto&&...) {
            wire::WriteMember(value, {message, message->GetReflection(), field});
          });
        }
      },
      kind);
}

// Returns the set alternative. If none is set, adds a violation at `path` that lists all alternatives.
template <typename Variant>
void ChoiceFromProto(const google::protobuf::Message& message, const FieldPath& path, Variant* kind,
                     std::vector<FieldViolation>* violations) {
  const auto* field = wire::Choice(message, "");
  if (field == nullptr) {
    violations->push_back({path.text(), "empty; give one of " + AlternativeNames<Variant>()});
    return;
  }
  ForEachAlternative<Variant>([&](auto spec) {
    if (field->name() != spec.kName) return;
    if (field->cpp_type() == field->CPPTYPE_MESSAGE) {
      const FieldPath below{&path, spec.kName};
      wire::ReadFields(message.GetReflection()->GetMessage(message, field), below, &spec, violations);
    } else {
      spec.Fields(spec, [&](const char*, auto& value, auto&&...) {
        wire::ReadMember({message, message.GetReflection(), field}, path, &value, violations);
      });
    }
    *kind = spec;
  });
}

}  // namespace chainfleet

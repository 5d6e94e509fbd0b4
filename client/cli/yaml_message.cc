#include "client/cli/yaml_message.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/descriptor.h"
#include "yaml-cpp/yaml.h"

namespace chainfleet {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Levenshtein distance.
size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

// "allowed are eta; did you mean ...?"
std::string Allowed(const std::vector<std::string>& names, const std::string& given) {
  if (names.empty()) return "no field is allowed here: write {}";
  std::string text = absl::StrCat("allowed are ", absl::StrJoin(names, ", "));
  const auto nearest = std::min_element(names.begin(), names.end(), [&](const auto& a, const auto& b) {
    return EditDistance(a, given) < EditDistance(b, given);
  });
  if (EditDistance(*nearest, given) <= std::max<size_t>(2, given.size() / 3)) {
    absl::StrAppend(&text, "; did you mean \"", *nearest, "\"?");
  }
  return text;
}

std::string Describe(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Map:
      return "a mapping";
    case YAML::NodeType::Sequence:
      return node.size() == 0 ? "an empty list" : "a list";
    case YAML::NodeType::Scalar:
      return absl::StrCat("\"", node.Scalar(), "\"");
    default:
      return "nothing";
  }
}

template <typename T>
std::optional<T> Integer(const std::string& text) {
  T value;
  if (absl::SimpleAtoi(text, &value)) return value;
  // 1.0e4 is the integer 10000, as in proto3 JSON; beyond 2^53 a double no longer names one integer.
  double real;
  constexpr double kExact = 9007199254740992.0;
  const double lowest = std::max(-kExact, static_cast<double>(std::numeric_limits<T>::lowest()));
  const double highest = std::min(kExact, static_cast<double>(std::numeric_limits<T>::max()));
  if (!absl::SimpleAtod(text, &real) || std::trunc(real) != real || real < lowest || real > highest)
    return std::nullopt;
  return static_cast<T>(real);
}

std::string Expectation(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return "expects text";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "expects a number";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "expects true or false";
    case FieldDescriptor::CPPTYPE_UINT64:
      return "expects a whole number from 0";
    case FieldDescriptor::CPPTYPE_INT32:
      return absl::StrCat("expects a whole number up to ", std::numeric_limits<int32_t>::max());
    case FieldDescriptor::CPPTYPE_ENUM: {
      std::vector<std::string> names;
      for (int i = 0; i < field.enum_type()->value_count(); ++i) names.push_back(field.enum_type()->value(i)->name());
      return absl::StrCat("expects one of ", absl::StrJoin(names, ", "));
    }
    default:
      return "expects a whole number";
  }
}

class MessageReader {
 public:
  MessageReader(std::string file_name, FieldLines* lines) : file_name_(std::move(file_name)), lines_(lines) {}

  void ReadMessage(const YAML::Node& node, const std::string& path, Message* message) {
    if (node.IsNull()) return;
    const FieldDescriptor* constant = message->GetDescriptor()->FindFieldByName("constant");  // a schedule
    if (constant != nullptr && node.IsScalar()) return ReadValue(node, path, constant, message);
    if (!node.IsMap()) {
      return Fail(node, path, absl::StrCat("expects a mapping of ", Names(*message->GetDescriptor())), node);
    }
    std::set<std::string> seen;
    for (const auto& item : node) {
      const YAML::Node &key = item.first, &value = item.second;
      if (!key.IsScalar()) {
        Fail(key, path, "a field name must be plain text", key);
        continue;
      }
      const std::string& name = key.Scalar();
      const std::string field_path = path.empty() ? name : absl::StrCat(path, ".", name);
      const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(name);
      if (field == nullptr) {
        Add(key,
            absl::StrCat("unknown field \"", field_path, "\": ", Allowed(FieldNames(*message->GetDescriptor()), name)));
      } else if (!seen.insert(name).second) {
        Add(key, absl::StrCat(field_path, ": given twice, first in line ", (*lines_)[field_path]));
      } else {
        (*lines_)[field_path] = key.Mark().line + 1;
        if (OneofIsFree(key, path, *field, *message)) ReadField(value, field_path, field, message);
      }
    }
  }

  std::vector<FieldViolation> violations;

 private:
  static std::vector<std::string> FieldNames(const Descriptor& descriptor) {
    std::vector<std::string> names;
    for (int i = 0; i < descriptor.field_count(); ++i) names.push_back(descriptor.field(i)->name());
    return names;
  }
  static std::string Names(const Descriptor& descriptor) {
    return descriptor.field_count() == 0 ? "nothing: write {}" : absl::StrJoin(FieldNames(descriptor), ", ");
  }

  void Add(const YAML::Node& at, const std::string& message) {
    violations.push_back({absl::StrCat(file_name_, ":", at.Mark().line + 1), message});
  }
  void Fail(const YAML::Node& at, const std::string& path, const std::string& expectation, const YAML::Node& got) {
    const std::string prefix = path.empty() ? "" : absl::StrCat(path, ": ");
    Add(at, absl::StrCat(prefix, expectation, ", got ", Describe(got)));
  }

  bool OneofIsFree(const YAML::Node& key, const std::string& path, const FieldDescriptor& field,
                   const Message& message) {
    const auto* oneof = field.real_containing_oneof();
    if (oneof == nullptr || !message.GetReflection()->HasOneof(message, oneof)) return true;
    const std::string prefix = path.empty() ? "" : absl::StrCat(path, ".");
    const std::string& other = message.GetReflection()->GetOneofFieldDescriptor(message, oneof)->name();
    Add(key, absl::StrCat(prefix, other, " and ", prefix, field.name(), " exclude each other: give one"));
    return false;
  }

  void ReadField(const YAML::Node& value, const std::string& path, const FieldDescriptor* field, Message* message) {
    if (!field->is_repeated()) return ReadValue(value, path, field, message);
    if (value.IsNull()) return;
    if (field->is_map()) return ReadMap(value, path, field, message);
    if (!value.IsSequence()) return Fail(value, path, "expects a list, as in [a, b]", value);
    if (value.size() == 0 && field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
      return Fail(value, path, "expects at least one number, or to be left out", value);
    }
    int i = 0;
    for (const YAML::Node& item : value) {
      const std::string item_path = absl::StrCat(path, "[", i++, "]");
      (*lines_)[item_path] = item.Mark().line + 1;
      ReadValue(item, item_path, field, message);
    }
  }

  // Keys are text.
  void ReadMap(const YAML::Node& node, const std::string& path, const FieldDescriptor* field, Message* message) {
    if (!node.IsMap()) return Fail(node, path, "expects a mapping of names to values", node);
    std::set<std::string> seen;
    for (const auto& item : node) {
      const YAML::Node &key = item.first, &value = item.second;
      if (!key.IsScalar()) {
        Fail(key, path, "a name must be plain text", key);
        continue;
      }
      const std::string item_path = absl::StrCat(path, ".", key.Scalar());
      if (!seen.insert(key.Scalar()).second) {
        Add(key, absl::StrCat(item_path, ": given twice, first in line ", (*lines_)[item_path]));
        continue;
      }
      (*lines_)[item_path] = key.Mark().line + 1;
      Message* entry = message->GetReflection()->AddMessage(message, field);
      entry->GetReflection()->SetString(entry, field->message_type()->map_key(), key.Scalar());
      ReadValue(value, item_path, field->message_type()->map_value(), entry);
    }
  }

  void ReadValue(const YAML::Node& value, const std::string& path, const FieldDescriptor* field, Message* message) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      const Reflection* reflection = message->GetReflection();
      return ReadMessage(
          value, path,
          field->is_repeated() ? reflection->AddMessage(message, field) : reflection->MutableMessage(message, field));
    }
    if (value.IsNull() && !field->is_repeated()) return;  // proto3 JSON: null leaves the field unset
    const std::string expectation = Expectation(*field);
    if (!value.IsScalar() || !SetScalar(value.Scalar(), field, message)) Fail(value, path, expectation, value);
  }

  // False if `text` is not a value of the field's type.
  static bool SetScalar(const std::string& text, const FieldDescriptor* field, Message* message) {
    const Reflection* r = message->GetReflection();
    const auto set = [&](auto value, auto setter, auto adder) {
      if (!value) return false;
      field->is_repeated() ? (r->*adder)(message, field, *value) : (r->*setter)(message, field, *value);
      return true;
    };
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        return set(std::optional(text), &Reflection::SetString, &Reflection::AddString);
      case FieldDescriptor::CPPTYPE_INT32:
        return set(Integer<int32_t>(text), &Reflection::SetInt32, &Reflection::AddInt32);
      case FieldDescriptor::CPPTYPE_INT64:
        return set(Integer<int64_t>(text), &Reflection::SetInt64, &Reflection::AddInt64);
      case FieldDescriptor::CPPTYPE_UINT64:
        return set(Integer<uint64_t>(text), &Reflection::SetUInt64, &Reflection::AddUInt64);
      case FieldDescriptor::CPPTYPE_DOUBLE: {
        double value;
        return absl::SimpleAtod(text, &value) &&
               set(std::optional(value), &Reflection::SetDouble, &Reflection::AddDouble);
      }
      case FieldDescriptor::CPPTYPE_BOOL:
        return (text == "true" || text == "false") &&
               set(std::optional(text == "true"), &Reflection::SetBool, &Reflection::AddBool);
      case FieldDescriptor::CPPTYPE_ENUM: {
        const auto* value = field->enum_type()->FindValueByName(text);
        return set(value == nullptr ? std::nullopt : std::optional(value), &Reflection::SetEnum, &Reflection::AddEnum);
      }
      default:
        return false;
    }
  }

  const std::string file_name_;
  FieldLines* const lines_;
};

// The line, from 1, of the innermost `open` ('[' or '{') that is not closed before `end`; 0 if there is none.
int UnclosedLine(const std::string& text, size_t end, char open) {
  std::vector<std::pair<char, int>> stack;
  int line = 1;
  char quote = 0;
  bool comment = false;
  for (size_t i = 0; i < std::min(end, text.size()); ++i) {
    const char c = text[i];
    if (c == '\n') {
      ++line;
      comment = false;
    } else if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (comment) {
      continue;
    } else if (c == '#') {
      comment = i == 0 || text[i - 1] == ' ' || text[i - 1] == '\n';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      stack.push_back({c, line});
    } else if ((c == ']' || c == '}') && !stack.empty()) {
      stack.pop_back();
    }
  }
  const auto innermost =
      std::find_if(stack.rbegin(), stack.rend(), [&](const auto& item) { return item.first == open; });
  return innermost == stack.rend() ? 0 : innermost->second;
}

FieldViolation SyntaxError(const std::string& file_name, const std::string& text, const YAML::Exception& e) {
  // The parser notices an open bracket only where the text cannot continue, often lines later. Name the bracket
  // instead.
  for (const auto& [message, open] :
       {std::pair(YAML::ErrorMsg::END_OF_SEQ_FLOW, '['), std::pair(YAML::ErrorMsg::END_OF_MAP_FLOW, '{')}) {
    const int line = e.msg == message ? UnclosedLine(text, static_cast<size_t>(e.mark.pos), open) : 0;
    if (line > 0)
      return {absl::StrCat(file_name, ":", line),
              absl::StrCat("not YAML or JSON: '", std::string(1, open), "' is not closed")};
  }
  return {absl::StrCat(file_name, ":", e.mark.line + 1), absl::StrCat("not YAML or JSON: ", e.msg)};
}

}  // namespace

std::vector<FieldViolation> ReadYamlMessage(const std::string& file_name, const std::string& text, Message* message,
                                            FieldLines* lines) {
  MessageReader reader(file_name, lines);
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.empty() || (documents.size() == 1 && documents[0].IsNull())) return {{file_name, "is empty"}};
    if (documents.size() > 1) return {{file_name, "holds several documents (---): give one"}};
    reader.ReadMessage(documents[0], "", message);
  } catch (const YAML::Exception& e) {
    return {SyntaxError(file_name, text, e)};
  }
  return std::move(reader.violations);
}

}  // namespace chainfleet

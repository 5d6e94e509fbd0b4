#include "client/cli/output.h"

#include <cctype>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "client/cli/json_path.h"
#include "client/cli/terminal.h"
#include "core/base/check.h"
#include "google/protobuf/util/json_util.h"
#include "yaml-cpp/yaml.h"

namespace chainfleet {
namespace {

using google::protobuf::Message;

constexpr char kJsonPathPrefix[] = "jsonpath=";

std::string Json(const Message& message, bool indented, bool defaults) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = indented;
  options.always_print_primitive_fields = defaults;
  options.preserve_proto_field_names = true;
  std::string json;
  CHAINFLEET_CHECK(google::protobuf::util::MessageToJsonString(message, &json, options).ok());
  return std::string(absl::StripSuffix(json, "\n"));
}

bool IsInteger(const std::string& text) {
  const size_t begin = absl::StartsWith(text, "-") ? 1 : 0;
  return text.size() > begin && text.find_first_not_of("0123456789", begin) == std::string::npos;
}

// JSON is YAML, so its tree is read back. Quoted text keeps its quotes, except integers, which JSON had to quote.
void Emit(const YAML::Node& node, YAML::Emitter* emitter) {
  if (node.IsMap()) {
    if (node.size() == 0) *emitter << YAML::Flow;
    *emitter << YAML::BeginMap;
    for (const auto& field : node) {
      *emitter << YAML::Key << field.first.Scalar() << YAML::Value;
      Emit(field.second, emitter);
    }
    *emitter << YAML::EndMap;
  } else if (node.IsSequence()) {
    if (node.size() == 0 || node[0].IsScalar()) *emitter << YAML::Flow;
    *emitter << YAML::BeginSeq;
    for (const YAML::Node& item : node) Emit(item, emitter);
    *emitter << YAML::EndSeq;
  } else {
    if (node.Tag() == "!" && !IsInteger(node.Scalar())) *emitter << YAML::DoubleQuoted;
    *emitter << node.Scalar();
  }
}

std::string JsonToYaml(const std::string& json) {
  YAML::Emitter emitter;
  Emit(YAML::Load(json), &emitter);
  return absl::StrCat(emitter.c_str(), "\n");
}

std::string ListJson(const Listing& listing, bool indented) {
  const std::string newline = indented ? "\n" : "", outer = indented ? "\n " : "", inner = indented ? "\n  " : "";
  const std::string items = absl::StrJoin(listing.items, ",", [&](std::string* text, const Message* item) {
    absl::StrAppend(text, inner, absl::StrReplaceAll(Json(*item, indented, true), {{"\n", "\n  "}}));
  });
  return absl::StrCat("{", outer, "\"", listing.key, "\": [", items, listing.items.empty() ? "" : outer, "]", newline,
                      "}");
}

}  // namespace

std::optional<OutputFormat> ParseOutputFormat(const std::string& text) {
  static const auto* const kinds = new std::map<std::string, OutputFormat::Kind>{
      {"table", OutputFormat::kTable}, {"wide", OutputFormat::kWide}, {"json", OutputFormat::kJson},
      {"jsonl", OutputFormat::kJsonl}, {"yaml", OutputFormat::kYaml}, {"name", OutputFormat::kName},
      {"csv", OutputFormat::kCsv}};
  if (absl::StartsWith(text, kJsonPathPrefix))
    return OutputFormat(OutputFormat::kJsonPath, text.substr(sizeof(kJsonPathPrefix) - 1));
  const auto found = kinds->find(text);
  return found == kinds->end() ? std::nullopt : std::optional<OutputFormat>(found->second);
}

std::string ToJson(const Message& message, bool indented) { return Json(message, indented, true); }

std::string ToYaml(const Message& message) { return JsonToYaml(Json(message, false, false)); }

void PrintOne(std::ostream& out, OutputFormat format, const Message& message, const std::string& name,
              const std::function<std::string()>& table) {
  switch (format.kind) {
    case OutputFormat::kTable:
    case OutputFormat::kWide:
    case OutputFormat::kCsv:  // only a few verbs have it, and print it themselves
      out << table();
      break;
    case OutputFormat::kJsonPath:
      out << ReadJsonPath(ToJson(message, false), format.path);
      break;
    case OutputFormat::kJson:
      out << ToJson(message, true) << "\n";
      break;
    case OutputFormat::kJsonl:
      out << ToJson(message, false) << "\n";
      break;
    case OutputFormat::kYaml:
      out << ToYaml(message);
      break;
    case OutputFormat::kName:
      out << name << "\n";
  }
  out.flush();
}

void PrintRecord(std::ostream& out, OutputFormat format, const Message& message, const std::string& name,
                 const std::function<std::string()>& table) {
  if (format == OutputFormat::kYaml) out << "---\n";
  PrintOne(out, format == OutputFormat::kJson ? OutputFormat::kJsonl : format, message, name, table);
}

void PrintList(std::ostream& out, OutputFormat format, const Listing& listing) {
  switch (format.kind) {
    case OutputFormat::kTable:
    case OutputFormat::kCsv:  // only a few verbs have it, and print it themselves
      out << listing.table(WidthOf(stdout), false);
      break;
    case OutputFormat::kWide:
      out << listing.table(0, true);
      break;
    case OutputFormat::kJsonPath:
      out << ReadJsonPath(ListJson(listing, false), format.path);
      break;
    case OutputFormat::kJson:
      out << ListJson(listing, true) << "\n";
      break;
    case OutputFormat::kJsonl:
      for (const Message* item : listing.items) out << ToJson(*item, false) << "\n";
      break;
    case OutputFormat::kYaml:
      out << JsonToYaml(ListJson(listing, false));
      break;
    case OutputFormat::kName:
      for (const std::string& name : listing.names) out << name << "\n";
  }
  out.flush();
}

}  // namespace chainfleet

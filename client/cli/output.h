// The output of verbs on stdout: tables for people; JSON, JSON lines, YAML, names and single values for programs.
//
// JSON is proto3 JSON with original field names. Default values are printed too, so that every record has the same
// keys. 64-bit integers are strings, as in proto3 JSON.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "google/protobuf/message.h"

namespace chainfleet {

struct OutputFormat {
  enum Kind { kTable, kWide, kJson, kJsonl, kYaml, kName, kJsonPath, kCsv };
  Kind kind = kTable;
  std::string path;  // used by kJsonPath

  OutputFormat() = default;
  OutputFormat(Kind chosen, std::string chosen_path = "") : kind(chosen), path(std::move(chosen_path)) {}
  bool operator==(Kind other) const { return kind == other; }
};

// "table", "json", ... or "jsonpath=PATH"; nullopt for any other text.
std::optional<OutputFormat> ParseOutputFormat(const std::string& text);

// On one line, or indented.
std::string ToJson(const google::protobuf::Message& message, bool indented);
// Block style, without default values.
std::string ToYaml(const google::protobuf::Message& message);

// Prints one result: `name` for kName; `table` makes the text for people.
void PrintOne(std::ostream& out, OutputFormat format, const google::protobuf::Message& message, const std::string& name,
              const std::function<std::string()>& table);

// Prints one of several records that follow each other: JSON on one line, YAML as a document after "---". A stream of
// indented records cannot be taken apart.
void PrintRecord(std::ostream& out, OutputFormat format, const google::protobuf::Message& message,
                 const std::string& name, const std::function<std::string()>& table);

// Several results: {"KEY": [...]} as JSON and YAML, one object per line as JSON lines.
struct Listing {
  std::string key;
  std::vector<const google::protobuf::Message*> items;
  std::vector<std::string> names;  // one per item
  // Lines of at most `max_width` characters (0: any); `wide` shows more columns.
  std::function<std::string(size_t max_width, bool wide)> table;
};
void PrintList(std::ostream& out, OutputFormat format, const Listing& listing);

}  // namespace chainfleet

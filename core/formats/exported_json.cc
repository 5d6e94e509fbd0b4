#include "core/formats/exported_json.h"

#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "core/base/escaped.h"
#include "core/base/utf8.h"

namespace chainfleet {
namespace {

using Json = nlohmann::json;

constexpr int kMaxJsonDepth = 64;       // graphs within graphs, which are refused by their operator
constexpr int64_t kBytesPerToken = 10;  // large models have fewer tokens
constexpr int64_t kMemoryOfToken = 64;  // for a key or value, besides the bytes of its text
constexpr size_t kShown = 120;

// Counts keys, values and depth without parsing: json's filter of its parser takes quadratic time. Returns how many
// keys and values there are.
absl::StatusOr<int64_t> CheckSize(const std::string& text, int64_t max_tokens) {
  int64_t tokens = 0;
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') in_string = !in_string;
    if (in_string && c == '\\') ++i;
    if (in_string ? c == '"' : c == ',' || c == '[' || c == '{') ++tokens;
    if (in_string) continue;
    depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    if (depth > kMaxJsonDepth) {
      return absl::InvalidArgumentError(absl::StrCat("is nested more than ", kMaxJsonDepth, " deep"));
    }
  }
  if (tokens <= max_tokens) return tokens;
  return absl::InvalidArgumentError(absl::StrCat("has more than ", max_tokens, " keys and values"));
}

[[noreturn]] void ThrowType(const char* wanted, const Json& value) {
  throw Json::type_error::create(302, absl::StrCat("type must be ", wanted, ", but is ", value.type_name()), &value);
}

}  // namespace

absl::StatusOr<Json> ParseExportedJson(const std::string& text, int64_t max_bytes, const AdmitBytes& admit) {
  CHAINFLEET_ASSIGN_OR_RETURN(const int64_t tokens, CheckSize(text, max_bytes / kBytesPerToken));
  CHAINFLEET_RETURN_IF_ERROR(admit(std::ssize(text) + tokens * kMemoryOfToken));
  Json description = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!description.is_object()) return absl::InvalidArgumentError("is no JSON object");
  return description;
}

int64_t ExportedInteger(const Json& value) {
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() && value.get<uint64_t>() > std::numeric_limits<int64_t>::max())) {
    ThrowType("a 64-bit integer", value);
  }
  return value.get<int64_t>();
}

double ExportedNumber(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "Infinity") return HUGE_VAL;
  if (value == "-Infinity") return -HUGE_VAL;
  if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  ThrowType("a number", value);
}

const std::string& ExportedKey(const Json& value) {
  if (!value.is_object() || value.size() != 1) ThrowType("an object of one key", value);
  return value.begin().key();
}

absl::Status CatchJson(const std::function<absl::Status()>& read) {
  try {
    return read();
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(ShownName(error.what()));
  }
}

std::string ShownName(std::string_view text) {
  const std::string_view begin = WholeCharacters(text, kShown);
  return absl::StrCat(Escaped(begin), begin.size() < text.size() ? "..." : "");
}

}  // namespace chainfleet

#include "client/cli/json_path.h"

#include <nlohmann/json.hpp>
#include <regex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace chainfleet {
namespace {

// One step: .NAME, [INDEX] or [*].
const std::regex& Step() {
  static const auto* const step = new std::regex(R"(\.([A-Za-z_0-9]+)|\[(\d{1,9})\]|\[\*\])");
  return *step;
}

std::string Bare(std::string path) {
  if (path.starts_with('{') && path.ends_with('}')) path = path.substr(1, path.size() - 2);
  return std::string(absl::StripPrefix(path, "$"));
}

// The values that one step leads to from `value`.
void Follow(const std::smatch& step, const nlohmann::json& value, std::vector<const nlohmann::json*>* found) {
  if (step[1].matched) {
    const auto field = value.is_object() ? value.find(step[1].str()) : value.end();
    if (field != value.end()) found->push_back(&*field);
  } else if (!value.is_array()) {
    return;
  } else if (step[2].matched) {
    const size_t index = std::stoul(step[2].str());
    if (index < value.size()) found->push_back(&value[index]);
  } else {
    for (const nlohmann::json& item : value) found->push_back(&item);
  }
}

}  // namespace

std::string CheckJsonPath(const std::string& path) {
  static const auto* const whole = new std::regex(R"((\.[A-Za-z_0-9]+|\[\d{1,9}\]|\[\*\])+)");
  if (std::regex_match(Bare(path), *whole)) return "";
  return absl::StrCat("\"", path, "\" is no path: write {.jobs[*].id}, with .NAME, [INDEX] and [*]");
}

std::string ReadJsonPath(const std::string& json, const std::string& path) {
  const nlohmann::json record = nlohmann::json::parse(json);
  const std::string bare = Bare(path);
  std::vector<const nlohmann::json*> values = {&record};
  for (std::sregex_iterator step(bare.begin(), bare.end(), Step()), end; step != end; ++step) {
    std::vector<const nlohmann::json*> next;
    for (const nlohmann::json* value : values) Follow(*step, *value, &next);
    values = std::move(next);
  }
  std::string text;
  for (const nlohmann::json* value : values) {
    absl::StrAppend(&text, value->is_string() ? value->get<std::string>() : value->dump(), "\n");
  }
  return text;
}

}  // namespace chainfleet

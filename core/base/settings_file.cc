#include "core/base/settings_file.h"

#include <fstream>
#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace chainfleet {
namespace {

// The values that a line gives to a flag; a list may have several lines.
struct SettingsLine {
  int number = 0;
  std::string name;
  std::vector<std::string> values;
};

// Returns `text` without spaces and quotes around it.
std::string Bare(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  const bool is_quoted =
      text.size() > 1 && text.front() == text.back() && (text.front() == '"' || text.front() == '\'');
  return std::string(is_quoted ? text.substr(1, text.size() - 2) : text);
}

// Returns the parts of a list, or of a line of it.
std::vector<std::string> PartsOf(absl::string_view list) {
  if (absl::StartsWith(list, "[")) list.remove_prefix(1);
  if (absl::EndsWith(list, "]")) list.remove_suffix(1);
  std::vector<std::string> parts;
  for (const absl::string_view part : absl::StrSplit(list, ',')) parts.push_back(Bare(part));
  return parts;
}

// Reads the lines that name a flag, as CLI11 does: it cuts comments outside lists, and ends a list with the next line
// that ends in ].
std::vector<SettingsLine> LinesOfSettings(const std::string& path) {
  std::vector<SettingsLine> lines;
  std::ifstream file(path);
  std::string text, name;
  bool in_list = false;
  for (int number = 1; std::getline(file, text); ++number) {
    absl::string_view line = absl::StripAsciiWhitespace(text);
    if (in_list) {
      in_list = !absl::EndsWith(line, "]");
      lines.push_back({number, name, PartsOf(line)});
      continue;
    }
    if (line.size() < 3 || line.front() == '#' || line.front() == ';') continue;
    const size_t equals = line.find('=');
    name = Bare(line.substr(0, equals == line.npos ? line.find('#') : equals));
    if (equals == line.npos) {
      lines.push_back({number, name, {}});
      continue;
    }
    line.remove_prefix(equals + 1);
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    in_list = line.size() > 1 && line.front() == '[' && line.back() != ']';
    lines.push_back({number, name, PartsOf(line)});
  }
  return lines;
}

}  // namespace

std::string WithLineOfSettings(const std::string& path, const std::string& said) {
  constexpr char kUnknown[] = "INI was not able to parse";  // CLI11's message
  const bool unknown = absl::StartsWith(said, kUnknown);
  const std::vector<SettingsLine> lines = LinesOfSettings(path);
  const SettingsLine* found = nullptr;
  size_t longest = 0;  // the text that `said` has by chance is short
  for (const SettingsLine& line : lines) {
    if (line.name.empty() || !absl::StrContains(said, line.name)) continue;
    for (const std::string& text : unknown ? std::vector<std::string>{line.name} : line.values) {
      if (!absl::StrContains(said, text) || (found != nullptr && text.size() <= longest)) continue;
      found = &line;
      longest = text.size();
    }
  }
  if (found == nullptr) return said;
  return absl::StrCat(path, ":", found->number, ": ", unknown ? absl::StrCat("no flag is named ", found->name) : said);
}

absl::Status CheckSettingsAreTogether(const std::string& path) {
  std::string last;
  std::map<std::string, int> lines;  // the last line of each flag
  for (const SettingsLine& line : LinesOfSettings(path)) {
    if (line.values.empty()) continue;
    const auto [earlier, is_new] = lines.try_emplace(line.name, line.number);
    if (!is_new && line.name != last) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", line.number, ": line ", earlier->second, " gives ", line.name,
                       " a value, too: keep one of the lines, or give a flag that may be repeated one list: "
                       "[\"A\", \"B\"]"));
    }
    earlier->second = line.number;
    last = line.name;
  }
  return absl::OkStatus();
}

}  // namespace chainfleet

#include "core/base/settings_file.h"

#include <fstream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace chainfleet {

std::string WithLineOfSettings(const std::string& path, const std::string& said) {
  constexpr char kUnknown[] = "INI was not able to parse";  // CLI11's message
  const bool unknown = absl::StartsWith(said, kUnknown);
  std::ifstream file(path);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::vector<std::string> sides = absl::StrSplit(
        absl::StrReplaceAll(line, {{"\"", ""}, {"'", ""}, {" ", ""}, {"\r", ""}}), absl::MaxSplits('=', 1));
    if (sides[0].empty() || sides[0][0] == '#' || !absl::StrContains(said, sides[0])) continue;
    if (!unknown && (sides.size() < 2 || !absl::StrContains(said, sides[1]))) continue;
    return absl::StrCat(path, ":", number, ": ", unknown ? absl::StrCat("no flag is named ", sides[0]) : said);
  }
  return said;
}

}  // namespace chainfleet

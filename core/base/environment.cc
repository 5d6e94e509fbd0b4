#include "core/base/environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "core/base/file_system.h"

namespace chainfleet {
std::string EnvironmentVariable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 && name[0] != 0 ? name.data() : "localhost";
}

std::string DefaultDataFolder() {
  if (const std::string folder = EnvironmentVariable("CHAINFLEET_DATA"); !folder.empty()) return folder;
  if (const std::string data = EnvironmentVariable("XDG_DATA_HOME"); !data.empty()) return data + "/chainfleet";
  const std::string home = EnvironmentVariable("HOME");
  return (home.empty() ? "." : home) + "/.local/share/chainfleet";
}

absl::StatusOr<std::optional<std::string>> TokenText(const std::string& variable) {
  const std::string file_variable = variable + "_FILE";
  const std::string token = EnvironmentVariable(variable), path = EnvironmentVariable(file_variable);
  if (!token.empty()) return token;
  if (path.empty()) {
    const bool set = std::getenv(variable.c_str()) != nullptr || std::getenv(file_variable.c_str()) != nullptr;
    return set ? std::optional<std::string>("") : std::nullopt;
  }
  absl::StatusOr<std::string> content = RealFileSystem()->Read(path);
  if (!content.ok()) return Annotate(content.status(), file_variable);
  return *std::move(content);
}

absl::StatusOr<std::string> BearerToken(const std::string& variable) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::optional<std::string> given, TokenText(variable));
  const std::string text = given.value_or("");
  const auto begin = std::ranges::find_if_not(text, absl::ascii_isspace);
  return std::string(begin, std::find_if(begin, text.end(), absl::ascii_isspace));
}

}  // namespace chainfleet

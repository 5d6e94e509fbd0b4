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

absl::StatusOr<std::string> TokenText() {
  const std::string token = EnvironmentVariable("CHAINFLEET_TOKEN"),
                    path = EnvironmentVariable("CHAINFLEET_TOKEN_FILE");
  if (!token.empty() || path.empty()) return token;
  absl::StatusOr<std::string> content = RealFileSystem()->Read(path);
  if (!content.ok()) return Annotate(content.status(), "CHAINFLEET_TOKEN_FILE");
  return content;
}

absl::StatusOr<std::string> BearerToken() {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string text, TokenText());
  const auto begin = std::ranges::find_if_not(text, absl::ascii_isspace);
  return std::string(begin, std::find_if(begin, text.end(), absl::ascii_isspace));
}

}  // namespace chainfleet

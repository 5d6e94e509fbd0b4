#include "core/base/environment.h"

#include <cstdlib>

#include "absl/strings/ascii.h"
#include "core/base/file_system.h"

namespace chainfleet {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string DefaultDataFolder() {
  if (const std::string folder = Variable("CHAINFLEET_DATA"); !folder.empty()) return folder;
  if (const std::string data = Variable("XDG_DATA_HOME"); !data.empty()) return data + "/chainfleet";
  const std::string home = Variable("HOME");
  return (home.empty() ? "." : home) + "/.local/share/chainfleet";
}

absl::StatusOr<std::string> BearerToken() {
  const std::string token = Variable("CHAINFLEET_TOKEN"), path = Variable("CHAINFLEET_TOKEN_FILE");
  if (!token.empty() || path.empty()) return token;
  const absl::StatusOr<std::string> content = RealFileSystem()->Read(path);
  if (!content.ok()) return Annotate(content.status(), "CHAINFLEET_TOKEN_FILE");
  return std::string(absl::StripAsciiWhitespace(*content));
}

}  // namespace chainfleet

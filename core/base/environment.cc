#include "core/base/environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/file_system.h"

namespace chainfleet {
namespace {

constexpr size_t kFewestCharacters = 22, kFewestHexDigits = 32;  // 128 bits
constexpr absl::Duration kInterval = absl::Seconds(1);

std::string FileVariable(const std::string& variable) { return variable + "_FILE"; }

absl::StatusOr<std::string> ReadTokenFile(const std::string& variable, const std::string& path) {
  absl::StatusOr<std::string> content = RealFileSystem()->Read(path);
  if (!content.ok()) return Annotate(content.status(), FileVariable(variable));
  return content;
}

}  // namespace

std::string EnvironmentVariable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.emplace_back(*variable);
  return variables;
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

std::string FirstWord(const std::string& text) {
  const auto begin = std::ranges::find_if_not(text, absl::ascii_isspace);
  return std::string(begin, std::find_if(begin, text.end(), absl::ascii_isspace));
}

absl::StatusOr<std::optional<std::string>> TokenText(const std::string& variable) {
  const std::string file_variable = FileVariable(variable);
  const std::string token = EnvironmentVariable(variable), path = EnvironmentVariable(file_variable);
  if (!token.empty()) return token;
  if (path.empty()) {
    const bool set = std::getenv(variable.c_str()) != nullptr || std::getenv(file_variable.c_str()) != nullptr;
    return set ? std::optional<std::string>("") : std::nullopt;
  }
  return ReadTokenFile(variable, path);
}

absl::StatusOr<std::string> BearerToken(const std::string& variable) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::optional<std::string> given, TokenText(variable));
  return FirstWord(given.value_or(""));
}

absl::Status CheckStrength(const std::string& token) {
  const bool hex = std::ranges::all_of(token, [](unsigned char c) { return absl::ascii_isxdigit(c); });
  if (token.size() >= (hex ? kFewestHexDigits : kFewestCharacters)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the token has fewer than 128 bits: use ", kFewestCharacters,
                                                 " characters or more, or ", kFewestHexDigits,
                                                 " hexadecimal digits, as `openssl rand -hex 16` makes them"));
}

absl::StatusOr<std::string> StrongToken(const std::string& variable) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::optional<std::string> given, TokenText(variable));
  if (!given) return "";
  std::string token = FirstWord(*given);
  CHAINFLEET_RETURN_IF_ERROR(Annotate(CheckStrength(token), variable));
  return token;
}

absl::StatusOr<Reread<std::string>> OpenMetricsToken() {
  return Reread<std::string>::Open(
      kMetricsToken, [] { return StrongToken(kMetricsToken); }, kInterval);
}

absl::StatusOr<Reread<std::string>> OpenCallerToken() {
  const std::string path = EnvironmentVariable(FileVariable(kCallerToken));
  if (path.empty() || !EnvironmentVariable(kCallerToken).empty()) return BearerToken();
  const auto read = [path]() -> absl::StatusOr<std::string> {
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string text, ReadTokenFile(kCallerToken, path));
    return FirstWord(text);
  };
  return Reread<std::string>::Open(kCallerToken, read);
}

}  // namespace chainfleet

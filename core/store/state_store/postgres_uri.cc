#include "core/store/state_store/postgres_uri.h"

#include <libpq-fe.h>

#include <algorithm>
#include <memory>
#include <string_view>

namespace chainfleet {
namespace {

// True if there is more than one @, or an @ after the authority: a password is then not encoded.
bool MisplacesUser(std::string_view uri) {
  const size_t scheme = uri.find("://");
  if (scheme == std::string_view::npos) return false;
  uri.remove_prefix(scheme + 3);
  const size_t at = uri.find('@');
  return at != std::string_view::npos && (at > uri.find_first_of("/?") || uri.find('@', at + 1) != uri.npos);
}

bool IsPortOrList(std::string_view value) {
  return std::ranges::all_of(value, [](char c) { return (c >= '0' && c <= '9') || c == ','; });
}

using ParsedUri = std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)>;

// Null if libpq cannot parse it.
ParsedUri ParseUri(const std::string& uri) {
  char* error = nullptr;
  ParsedUri options(PQconninfoParse(uri.c_str(), &error), &PQconninfoFree);
  PQfreemem(error);
  return options;
}

}  // namespace

absl::Status CheckPostgresUri(const std::string& uri) {
  const absl::Status wrong = absl::InvalidArgumentError(
      "PostgreSQL: the connection URI cannot be read; it is not repeated here, as it may hold a password: write "
      "postgresql://USER:PASSWORD@HOST:PORT/DATABASE with what is no letter or digit in USER and PASSWORD percent-"
      "encoded (% as %25, / as %2F, @ as %40)");
  if (MisplacesUser(uri)) return wrong;
  const ParsedUri options = ParseUri(uri);
  if (options == nullptr) return wrong;
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    const bool port = std::string_view(option->keyword) == "port" && option->val != nullptr;
    if (port && !IsPortOrList(option->val)) return wrong;
  }
  return absl::OkStatus();
}

bool HasPassword(const std::string& uri) {
  const ParsedUri options = ParseUri(uri);
  for (const PQconninfoOption* option = options.get(); option != nullptr && option->keyword != nullptr; ++option) {
    if (option->dispchar[0] == '*' && option->val != nullptr && option->val[0] != 0) return true;
  }
  return false;
}

}  // namespace chainfleet

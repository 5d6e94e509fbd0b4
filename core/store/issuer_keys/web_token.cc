#include "core/store/issuer_keys/web_token.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/store/issuer_keys/json_text.h"

namespace chainfleet {
namespace {

using Json = nlohmann::json;

constexpr size_t kLongestToken = 8192;
constexpr int kDeepest = 8;
constexpr double kYear10000 = 253402300800;  // seconds since 1970; a Timestamp of protobuf ends before

absl::Status Malformed(std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("the JWT ", std::string(what)));
}

// JSON parsers differ on names that are given twice, so the issuer may have meant another value than we read.
absl::StatusOr<Json> ParseObject(const std::string& part) {
  const std::optional<std::string> text = DecodeBase64Url(part);
  if (!text) return Malformed("is not base64url");
  std::vector<std::set<std::string>> names;
  bool is_clear = true;
  const auto look = [&](int depth, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) names.emplace_back();
    if (event == Json::parse_event_t::object_end) names.pop_back();
    if (event == Json::parse_event_t::key) is_clear &= names.back().insert(value.get<std::string>()).second;
    is_clear &= depth <= kDeepest;
    return true;
  };
  Json json = Json::parse(*text, look, /*allow_exceptions=*/false);
  if (!json.is_object()) return Malformed("has a part that is no JSON object");
  if (!is_clear) return Malformed("gives a name twice, or is nested too deep");
  return json;
}

void AddClaims(const std::string& name, const Json& value, std::multimap<std::string, std::string>* claims) {
  if (value.is_string()) claims->emplace(name, value.get<std::string>());
  if (value.is_array()) {
    for (const Json& item : value) {
      if (item.is_string()) claims->emplace(name, item.get<std::string>());
    }
  }
  if (!value.is_object()) return;
  for (const auto& [inner, item] : value.items()) AddClaims(absl::StrCat(name, ".", inner), item, claims);
}

// Seconds since 1970. False: the claim is there, and is no number or no time that a Timestamp has.
bool ReadTime(const Json& claims, const char* name, absl::Time* time) {
  const auto found = claims.find(name);
  if (found == claims.end()) return true;
  if (!found->is_number()) return false;
  const double seconds = found->get<double>();
  if (!(seconds >= 0 && seconds < kYear10000)) return false;
  *time = absl::UnixEpoch() + absl::Seconds(seconds);
  return true;
}

absl::Status ReadHeader(const Json& header, WebToken* token) {
  token->algorithm = TextOf(header, "alg");
  token->key_id = TextOf(header, "kid");
  if (header.contains("crit")) return Malformed("has critical headers, which this server does not know");
  const std::string type = absl::AsciiStrToLower(TextOf(header, "typ"));
  const bool is_known = !header.contains("typ") || type == "jwt" || type == "at+jwt" || type == "application/at+jwt";
  return is_known ? absl::OkStatus() : Malformed("is neither an ID token nor an access token");
}

absl::Status ReadClaims(const Json& claims, WebToken* token) {
  token->issuer = TextOf(claims, "iss");
  token->subject = TextOf(claims, "sub");
  if (token->issuer.empty() || token->subject.empty()) return Malformed("lacks iss or sub");
  if (!claims.contains("exp") || !ReadTime(claims, "exp", &token->expires_at) ||
      !ReadTime(claims, "nbf", &token->not_before)) {
    return Malformed("lacks exp, or has a time that is no number of seconds from 1970 to 9999");
  }
  for (const auto& [name, value] : claims.items()) AddClaims(name, value, &token->claims);
  return absl::OkStatus();
}

}  // namespace

bool WebToken::Has(const std::string& claim, std::string_view value) const {
  const auto [begin, end] = claims.equal_range(claim);
  return std::any_of(begin, end, [value](const auto& entry) { return entry.second == value; });
}

absl::StatusOr<WebToken> ParseWebToken(const std::string& text) {
  if (text.size() > kLongestToken) return Malformed(absl::StrCat("is longer than ", kLongestToken, " bytes"));
  const std::vector<std::string> parts = absl::StrSplit(text, '.');
  if (parts.size() != 3) return Malformed("has no three parts: encrypted tokens are not taken");
  CHAINFLEET_ASSIGN_OR_RETURN(const Json header, ParseObject(parts[0]));
  CHAINFLEET_ASSIGN_OR_RETURN(const Json claims, ParseObject(parts[1]));
  std::optional<std::string> signature = DecodeBase64Url(parts[2]);
  if (!signature) return Malformed("is not base64url");
  WebToken token{.signed_text = absl::StrCat(parts[0], ".", parts[1]), .signature = *std::move(signature)};
  CHAINFLEET_RETURN_IF_ERROR(ReadHeader(header, &token));
  CHAINFLEET_RETURN_IF_ERROR(ReadClaims(claims, &token));
  return token;
}

}  // namespace chainfleet

// Texts of tokens and keys: members of JSON objects, and bytes in base64 with the alphabet of URLs and without padding
// (RFC 7515).
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"

namespace chainfleet {

// "" if the object has no such member, or it is no text.
inline std::string TextOf(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// nullopt: has other characters, padding or spaces included.
inline std::optional<std::string> DecodeBase64Url(const std::string& text) {
  const auto is_known = [](unsigned char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_'; };
  std::string bytes;
  if (!std::ranges::all_of(text, is_known) || !absl::WebSafeBase64Unescape(text, &bytes)) return std::nullopt;
  return bytes;
}

}  // namespace chainfleet

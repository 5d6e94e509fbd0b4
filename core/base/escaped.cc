#include "core/base/escaped.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/utf8.h"

namespace chainfleet {
namespace {

bool IsEscaped(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x61c || c == 0x200e || c == 0x200f ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == kNoCharacter;
}

}  // namespace

std::string Escaped(std::string_view text, std::string_view marked) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const auto [code, bytes] = FirstCharacter(text.substr(at));
    if (marked.find(text[at]) != std::string_view::npos) out += '\\';
    if (IsEscaped(code)) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<uint32_t>(code));
    } else {
      out += text.substr(at, bytes);
    }
    at += bytes;
  }
  return out;
}

std::string Quoted(std::string_view text) { return absl::StrCat("\"", Escaped(text, "\"\\"), "\""); }

std::string WordOrQuoted(std::string_view text) {
  const bool one_word = text.find_first_of(" \"") == std::string_view::npos && Escaped(text) == text;
  return one_word ? std::string(text) : Quoted(text);
}

}  // namespace chainfleet

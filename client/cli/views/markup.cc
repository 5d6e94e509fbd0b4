#include "client/cli/views/markup.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"

namespace chainfleet {

std::string Escape(const std::string& text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += absl::ascii_iscntrl(static_cast<unsigned char>(c)) && c != '\n' ? ' ' : c;
    }
  }
  return escaped;
}

std::string Coordinate(double value) {
  if (!std::isfinite(value)) return "0";
  std::string text = absl::StrFormat("%.2f", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string ToId(const std::string& text) {
  std::string id;
  for (const char c : text) id += absl::ascii_isalnum(static_cast<unsigned char>(c)) ? absl::ascii_tolower(c) : '-';
  return id;
}

}  // namespace chainfleet

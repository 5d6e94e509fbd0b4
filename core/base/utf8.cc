#include "core/base/utf8.h"

#include <algorithm>

namespace chainfleet {
namespace {

// The byte at which the character `index` begins, counted from 0.
size_t StartOf(size_t index, std::string_view text) {
  const auto start = std::ranges::find_if(text, [&](char byte) { return BeginsCharacter(byte) && index-- == 0; });
  return static_cast<size_t>(start - text.begin());
}

}  // namespace

Character FirstCharacter(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  char32_t code = lead & (0x7f >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return {};
    code = code << 6 | (next & 0x3f);
  }
  const char32_t least = bytes == 4 ? 0x10000 : bytes == 3 ? 0x800 : 0x80;
  if (code < least || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {};
  return {code, bytes};
}

std::string_view WholeCharacters(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && !BeginsCharacter(text[bytes])) --bytes;
  return text.substr(0, bytes);
}

std::string ValidUtf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const auto [code, bytes] = FirstCharacter(text);
    valid += code == kNoCharacter && bytes == 1 ? "\xef\xbf\xbd" : text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  return valid;
}

size_t CountCharacters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, BeginsCharacter));
}

std::string Cropped(std::string_view text, size_t characters) {
  const size_t count = CountCharacters(text);
  std::string cropped(text);
  if (count <= characters) return cropped;
  const size_t dots = std::min<size_t>(3, characters), tail = (characters - dots) / 2;
  const size_t head = StartOf(characters - dots - tail, text);
  return cropped.replace(head, StartOf(count - tail, text) - head, dots, '.');
}

}  // namespace chainfleet

// Decodes, counts and cuts UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace chainfleet {

inline constexpr char32_t kNoCharacter = 0xfffd;  // replaces bytes that are not UTF-8

struct Character {
  char32_t code = kNoCharacter;
  size_t bytes = 1;
};

// Returns the first character of `text`. REQUIRES: `text` is not empty.
Character FirstCharacter(std::string_view text);

inline bool BeginsCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

// Returns the first characters of `text` that are whole within `bytes` bytes: all of it if it is no longer.
std::string_view WholeCharacters(std::string_view text, size_t bytes);

// Returns `text` with U+FFFD in place of each byte that is no part of a character.
std::string ValidUtf8(std::string_view text);

size_t CountCharacters(std::string_view text);

// Replaces the middle of `text` by "..." if it has more than `characters`, so that it has as many.
std::string Cropped(std::string_view text, size_t characters);

}  // namespace chainfleet

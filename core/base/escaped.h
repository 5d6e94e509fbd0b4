// Makes text of others safe to print on a terminal and in a line of a log.
#pragma once

#include <string>
#include <string_view>

namespace chainfleet {

// Replaces by "\u" and hexadecimal digits: terminal controls (C0, DEL and C1), line breaks and bidirectional
// characters, with which a line could mislead its reader; also bytes that are not UTF-8: terminals differ on them, and
// JSON forbids them. Puts a backslash before each character of `marked`.
std::string Escaped(std::string_view text, std::string_view marked = "");

// Escaped, in quotation marks: the same in JSON.
std::string Quoted(std::string_view text);

// `text` as it is where that is one word that needs no escapes, else quoted.
std::string WordOrQuoted(std::string_view text);

}  // namespace chainfleet

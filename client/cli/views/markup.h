// Text and numbers as HTML and SVG take them. Pure functions.
#pragma once

#include <string>

namespace chainfleet {

// `text` as content or quoted attribute: & < > " ' become references, control characters spaces. Everything that a user
// or a server could have chosen goes through here.
std::string Escape(const std::string& text);

// A length in the drawing's units with at most two decimals; 0 for what is not finite, which no attribute may hold.
std::string Coordinate(double value);

// An id made of `text`: a-z, 0-9 and '-', anything else becomes '-'.
std::string ToId(const std::string& text);

}  // namespace chainfleet

// Formats text and numbers for HTML and SVG. Pure functions.
#pragma once

#include <string>

namespace chainfleet {

// Escapes `text` for content or a quoted attribute: & < > " ' become references, control characters become spaces.
// Every text that a user or a server may choose must pass this.
std::string Escape(const std::string& text);

// A length in the drawing's units with at most two decimals; 0 for a non-finite value, which attributes must not have.
std::string Coordinate(double value);

// Converts `text` to an id of a-z, 0-9 and '-'; other characters become '-'.
std::string ToId(const std::string& text);

}  // namespace chainfleet

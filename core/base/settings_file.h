// Files of NAME = VALUE lines, from which programs read their flags.
#pragma once

#include <string>

namespace chainfleet {

// Puts "FILE:LINE: " before `said`, the error of a parser that keeps no line numbers. Finds the line by the flag's name
// and value, or by the name alone if no such flag exists. Returns `said` unchanged if no line matches.
std::string WithLineOfSettings(const std::string& path, const std::string& said);

}  // namespace chainfleet

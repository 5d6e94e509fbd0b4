// Files of NAME = VALUE lines, from which programs read their flags.
#pragma once

#include <string>

namespace chainfleet {

// `said`, what a parser that keeps no line numbers found wrong, behind "FILE:LINE: " of the line that it names: that
// with its name and its value, or with its name alone if no flag has it. `said` alone if no line is meant.
std::string WithLineOfSettings(const std::string& path, const std::string& said);

}  // namespace chainfleet

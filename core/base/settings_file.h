// Files of NAME = VALUE lines, from which programs read their flags.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace chainfleet {

// Puts "FILE:LINE: " before `said`, the error of a parser that keeps no line numbers. Finds the line by the flag's name
// and a value, or by the name alone if no such flag exists. Returns `said` unchanged if no line matches.
std::string WithLineOfSettings(const std::string& path, const std::string& said);

// INVALID_ARGUMENT, with file and line, if two lines that are not adjacent give values to one flag. CLI11 would ignore
// the later one. OK if there is no such file.
absl::Status CheckSettingsAreTogether(const std::string& path);

}  // namespace chainfleet

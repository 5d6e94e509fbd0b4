// The part of JSONPath that scripts use to take values out of a record: {.jobs[*].id}, .chains[0].state.
#pragma once

#include <string>

namespace chainfleet {

// The values at `path`, one a line; text without quotes, objects and lists as JSON. A path may stand in braces. Values
// that a record lacks are left out.
std::string ReadJsonPath(const std::string& json, const std::string& path);

// "" if the path is well-formed, else why it is not.
std::string CheckJsonPath(const std::string& path);

}  // namespace chainfleet

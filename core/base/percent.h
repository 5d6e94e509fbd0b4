// Percent-encoded parts of URIs.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace chainfleet {

// nullopt for an escape other than % and two hex digits, and for a zero byte, which would cut a path off in system
// calls.
std::optional<std::string> PercentDecoded(absl::string_view text);

}  // namespace chainfleet

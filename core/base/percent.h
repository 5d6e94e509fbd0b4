// URIs: where a URI stands in place of a path, and percent-encoded parts.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace chainfleet {

// True if `file` is given as a URI, for the server to read, instead of a path or the name of a stored file.
inline bool IsUri(absl::string_view file) { return file.find("://") != file.npos; }

// Encodes every byte except A-Za-z0-9-._~ as %XX; keeps '/' if `keep_slash`.
std::string PercentEncoded(absl::string_view text, bool keep_slash = false);

// nullopt for an escape other than % and two hex digits, and for a zero byte, which would cut a path off in system
// calls.
std::optional<std::string> PercentDecoded(absl::string_view text);

}  // namespace chainfleet

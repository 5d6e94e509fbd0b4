// Pages of lists: how long they may be, and tokens bound to the arguments of the call that made them.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/status.h"

namespace chainfleet {

// `arguments`: every argument that must stay the same from page to page, as one text; `cursor`: where the next page
// begins.
std::string MakePageToken(const std::string& arguments, const std::string& cursor);

// The cursor, or INVALID_ARGUMENT if the token is not of a call with these arguments. "" gives "".
absl::StatusOr<std::string> CursorOf(const std::string& arguments, const std::string& token);

// What was asked, at least 1, at most limits::kMaxPageSize; 50 if nothing was.
int32_t ClampPageSize(int32_t asked);

}  // namespace chainfleet

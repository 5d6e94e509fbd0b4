// Page sizes of lists, and page tokens that are bound to the arguments of their call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/status.h"

namespace chainfleet {

// `arguments`: all arguments that must stay the same on every page, as one text. `cursor`: the start of the next page,
// readable to the caller. Names, ids and numbers of the caller's own items only: sequence numbers that all tenants
// share would tell how much the others do.
std::string MakePageToken(const std::string& arguments, const std::string& cursor);

// Returns the cursor; "" for "". Callers can forge it. BadPageToken: the token belongs to a call with other arguments.
absl::StatusOr<std::string> CursorOf(const std::string& arguments, const std::string& token);

// INVALID_ARGUMENT / BAD_PAGE_TOKEN. Also for a cursor that is not, or no longer, the id of an item of the caller.
absl::Status BadPageToken();

// Clamps the requested size to 1..limits::kMaxPageSize; 50 if none was requested.
int32_t ClampPageSize(int32_t asked);

// The room that is left in a page or reply: `max_items`, and limits::kPageBytes beyond the first item.
class PageRoom {
 public:
  explicit PageRoom(size_t max_items = SIZE_MAX) : max_items_(max_items) {}
  // Counts an item of `bytes`. False if it does not fit.
  bool Take(int64_t bytes);

 private:
  const size_t max_items_;
  size_t num_items_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace chainfleet

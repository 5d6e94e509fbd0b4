// Pages of lists: how long they may be, and tokens bound to the arguments of the call that made them.
#pragma once

#include <cstddef>
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

// What still fits into one page or reply: `max_items`, and limits::kPageBytes beyond the first item.
class PageRoom {
 public:
  explicit PageRoom(size_t max_items = SIZE_MAX) : max_items_(max_items) {}
  // Counts an item of `bytes`, if it fits.
  bool Take(int64_t bytes);

 private:
  const size_t max_items_;
  size_t num_items_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace chainfleet

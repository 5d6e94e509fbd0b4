#include "server/control/page_token.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/content_limits.h"
#include "core/base/limits.h"

namespace chainfleet {
namespace {

// FNV-1a: detects mistakes, not attacks.
uint64_t Hash(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

std::string MakePageToken(const std::string& arguments, const std::string& cursor) {
  return absl::StrCat(absl::StrFormat("%016x", Hash(absl::StrCat(arguments, "\n", cursor))), ".", cursor);
}

absl::StatusOr<std::string> CursorOf(const std::string& arguments, const std::string& token) {
  if (token.empty()) return std::string();
  const size_t dot = token.find('.');
  if (dot != std::string::npos) {
    const std::string cursor = token.substr(dot + 1);
    if (MakePageToken(arguments, cursor) == token) return cursor;
  }
  return BadPageToken();
}

absl::Status BadPageToken() {
  return WithReason(
      absl::InvalidArgumentError("the page token belongs to a call with other arguments, or the last item "
                                 "before it is deleted: start again without it, or repeat the arguments"),
      "BAD_PAGE_TOKEN");
}

int32_t ClampPageSize(int32_t asked) {
  constexpr int32_t kDefault = 50;
  return asked <= 0 ? kDefault : std::min(asked, limits::kMaxPageSize);
}

bool PageRoom::Take(int64_t bytes) {
  if (num_items_ == max_items_ || (num_items_ > 0 && bytes_ + bytes > limits::kPageBytes)) return false;
  ++num_items_;
  bytes_ += bytes;
  return true;
}

}  // namespace chainfleet

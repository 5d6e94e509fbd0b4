#include "core/store/audit_log/audit_chain.h"

#include "absl/strings/str_cat.h"
#include "core/store/draw_codec/sha256.h"
#include "nlohmann/json.hpp"

namespace chainfleet {

absl::Status AuditChain::Follow(const std::string& line) {
  const auto parsed = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  const bool is_line = parsed.is_object() && parsed.contains("seq") && parsed["seq"].is_number_integer() &&
                       parsed.contains("previous") && parsed["previous"].is_string();
  if (!is_line) return absl::DataLossError(absl::StrCat("what follows line ", last_, " is no line of an audit log"));
  const auto number = parsed["seq"].get<int64_t>();
  if (last_ != 0 && number != last_ + 1) {
    return absl::DataLossError(absl::StrCat("line ", number, " follows line ", last_));
  }
  if (last_ != 0 && parsed["previous"] != digest_) {
    return absl::DataLossError(
        absl::StrCat("line ", last_, " is not the one that line ", number, " was written after"));
  }
  if (last_ == 0) first_ = number;
  last_ = number;
  digest_ = Sha256Hex(line);
  return absl::OkStatus();
}

}  // namespace chainfleet

// The JSON of .pt2 files, which may be hostile.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/formats/admit_bytes.h"

namespace chainfleet {

// INVALID_ARGUMENT: `text`, of up to `max_bytes`, is no JSON object, is too deep or has too many keys and values.
// Errors of `admit`, which is asked for the memory of the result before it is made.
absl::StatusOr<nlohmann::json> ParseExportedJson(const std::string& text, int64_t max_bytes, const AdmitBytes& admit);

// The functions below throw nlohmann::json::exception where `value` is of another type or lacks something.

int64_t ExportedInteger(const nlohmann::json& value);
// A number or "Infinity", "-Infinity", "NaN".
double ExportedNumber(const nlohmann::json& value);
// The only key of a union: {"as_int": 3}.
const std::string& ExportedKey(const nlohmann::json& value);

// Runs `read`; what it throws becomes INVALID_ARGUMENT.
absl::Status CatchJson(const std::function<absl::Status()>& read);

// `text` for a message: cut and safe to print.
std::string ShownName(std::string_view text);

}  // namespace chainfleet

#include "core/base/status.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "core/base/content_limits.h"
#include "core/base/limits.h"

namespace chainfleet {
namespace {

constexpr char kReasonUrl[] = "chainfleet/reason";
constexpr char kFieldsUrl[] = "chainfleet/fields";
constexpr char kBoundUrl[] = "chainfleet/bound";
constexpr char kRetryUrl[] = "chainfleet/retry";
// Unit and record separators never occur in field paths or messages.
constexpr char kUnit = '\x1f';
constexpr char kRecord = '\x1e';

std::string PayloadOf(const absl::Status& status, const char* url) {
  const auto payload = status.GetPayload(url);
  return payload.has_value() ? std::string(*payload) : std::string();
}

}  // namespace

absl::Status WithReason(absl::Status status, const std::string& reason) {
  status.SetPayload(kReasonUrl, absl::Cord(reason));
  return status;
}

std::string ReasonOf(const absl::Status& status) { return PayloadOf(status, kReasonUrl); }

std::string ReasonOrCode(const absl::Status& status) {
  std::string reason = ReasonOf(status);
  return reason.empty() ? absl::StatusCodeToString(status.code()) : reason;
}

absl::Status WithBound(absl::Status status, const std::string& bound) {
  status.SetPayload(kBoundUrl, absl::Cord(bound));
  return status;
}

std::string BoundOf(const absl::Status& status) { return PayloadOf(status, kBoundUrl); }

absl::Status BoundReached(const std::string& bound, const std::string& message, const std::string& reason) {
  return WithBound(WithReason(absl::ResourceExhaustedError(message), reason), bound);
}

absl::Status WithRetryAfter(absl::Status status, absl::Duration delay) {
  status.SetPayload(kRetryUrl, absl::Cord(absl::FormatDuration(delay)));
  return status;
}

absl::Duration RetryAfterOf(const absl::Status& status) {
  absl::Duration delay;
  if (absl::ParseDuration(PayloadOf(status, kRetryUrl), &delay)) return delay;
  const std::string reason = ReasonOf(status);
  const bool passes =
      reason == "NO_SERVING_WORKER" || reason == "OVERLOADED" || reason == "QUEUE_FULL" || reason == "UPLOADS_FULL";
  return passes ? absl::Seconds(1) : absl::ZeroDuration();
}

absl::Status InvalidFields(const std::vector<FieldViolation>& violations) {
  if (violations.empty()) return absl::OkStatus();
  std::string message, fields;
  const size_t listed = std::min(violations.size(), limits::kMaxViolations);
  for (size_t i = 0; i < listed; ++i) {
    const FieldViolation& v = violations[i];
    absl::StrAppend(&message, message.empty() ? "" : "; ", v.path, ": ", v.message);
    absl::StrAppend(&fields, v.path, std::string(1, kUnit), v.message, std::string(1, kRecord));
  }
  if (listed < violations.size()) absl::StrAppend(&message, "; and ", violations.size() - listed, " more");
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kFieldsUrl, absl::Cord(fields));
  return WithReason(std::move(status), "INVALID_FIELD");
}

std::vector<FieldViolation> FieldViolationsOf(const absl::Status& status) {
  std::vector<FieldViolation> violations;
  auto payload = status.GetPayload(kFieldsUrl);
  if (!payload.has_value()) return violations;
  const std::string fields(*payload);
  for (size_t begin = 0, end; (end = fields.find(kRecord, begin)) != std::string::npos; begin = end + 1) {
    const size_t middle = fields.find(kUnit, begin);
    violations.push_back({fields.substr(begin, middle - begin), fields.substr(middle + 1, end - middle - 1)});
  }
  return violations;
}

absl::Status Annotate(const absl::Status& status, const std::string& context) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), absl::StrCat(context, ": ", std::string(status.message())));
  status.ForEachPayload([&](auto url, const absl::Cord& payload) { annotated.SetPayload(url, payload); });
  return annotated;
}

}  // namespace chainfleet

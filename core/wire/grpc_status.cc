#include "core/wire/grpc_status.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "core/base/utf8.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace chainfleet {
namespace {

constexpr char kDomain[] = "chainfleet";
constexpr char kRequestUrl[] = "chainfleet/request";
constexpr char kBoundKey[] = "bound";  // key in ErrorInfo.metadata
// The message travels twice (grpc-message and in the details), and some hops send the details in base64.
constexpr size_t kMaxMessageBytes = 1000;
constexpr size_t kMaxDetailsBytes = 3500;

// A cut inside a UTF-8 sequence would make the proto string invalid.
std::string Cut(const std::string& text) {
  if (text.size() <= kMaxMessageBytes) return text;
  return std::string(WholeCharacters(text, kMaxMessageBytes)) + "...";
}

google::rpc::BadRequest ToBadRequest(const std::vector<FieldViolation>& violations) {
  google::rpc::BadRequest bad_request;
  size_t bytes = 0;
  for (const FieldViolation& violation : violations) {
    bytes += violation.path.size() + violation.message.size() + 8;
    if (bytes > kMaxDetailsBytes - kMaxMessageBytes) break;
    auto* field = bad_request.add_field_violations();
    field->set_field(violation.path);
    field->set_description(violation.message);
  }
  return bad_request;
}

absl::Status WithFields(absl::Status status, const google::rpc::BadRequest& bad_request) {
  std::vector<FieldViolation> violations;
  for (const auto& field : bad_request.field_violations()) violations.push_back({field.field(), field.description()});
  InvalidFields(violations).ForEachPayload([&](auto url, const absl::Cord& payload) {
    status.SetPayload(url, payload);
  });
  return status;
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  google::rpc::Status details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(Cut(std::string(status.message())));
  google::rpc::ErrorInfo info;
  info.set_reason(ReasonOrCode(status));
  info.set_domain(kDomain);
  if (const std::string bound = BoundOf(status); !bound.empty()) (*info.mutable_metadata())[kBoundKey] = bound;
  details.add_details()->PackFrom(info);
  if (const auto violations = FieldViolationsOf(status); !violations.empty()) {
    details.add_details()->PackFrom(ToBadRequest(violations));
  }
  if (const absl::Duration delay = RetryAfterOf(status); delay > absl::ZeroDuration()) {
    google::rpc::RetryInfo retry;
    const int64_t seconds = absl::ToInt64Seconds(delay);
    retry.mutable_retry_delay()->set_seconds(seconds);
    retry.mutable_retry_delay()->set_nanos(static_cast<int>(absl::ToInt64Nanoseconds(delay - absl::Seconds(seconds))));
    details.add_details()->PackFrom(retry);
  }
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), details.message(), details.SerializeAsString());
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return result;
  std::string reason;
  for (const auto& detail : details.details()) {
    google::rpc::ErrorInfo info;
    google::rpc::BadRequest bad_request;
    google::rpc::RequestInfo request;
    google::rpc::RetryInfo retry;
    if (detail.UnpackTo(&info)) {
      if (info.domain() != kDomain) continue;
      reason = info.reason();
      const auto bound = info.metadata().find(kBoundKey);
      if (bound != info.metadata().end()) result = WithBound(std::move(result), bound->second);
    } else if (detail.UnpackTo(&retry)) {
      const auto& delay = retry.retry_delay();
      result = WithRetryAfter(std::move(result), absl::Seconds(delay.seconds()) + absl::Nanoseconds(delay.nanos()));
    } else if (detail.UnpackTo(&bad_request)) {
      result = WithFields(std::move(result), bad_request);
    } else if (detail.UnpackTo(&request)) {
      result = WithRequestId(std::move(result), request.request_id());
    }
  }
  return reason.empty() ? result : WithReason(std::move(result), reason);
}

absl::Status ResetToUnavailable(const absl::Status& status) {
  if (!absl::IsCancelled(status) || !RequestIdOf(status).empty()) return status;
  return absl::UnavailableError("the server ended before it answered");
}

grpc::Status WithRequestId(const grpc::Status& status, const std::string& id) {
  if (status.ok()) return status;
  google::rpc::Status details;
  if (status.error_details().empty() || !details.ParseFromString(status.error_details())) {
    details.set_code(status.error_code());
    details.set_message(Cut(status.error_message()));
  }
  google::rpc::RequestInfo info;
  info.set_request_id(id);
  details.add_details()->PackFrom(info);
  return grpc::Status(status.error_code(), status.error_message(), details.SerializeAsString());
}

absl::Status WithRequestId(absl::Status status, const std::string& id) {
  status.SetPayload(kRequestUrl, absl::Cord(id));
  return status;
}

std::string RequestIdOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kRequestUrl);
  return payload.has_value() ? std::string(*payload) : std::string();
}

}  // namespace chainfleet

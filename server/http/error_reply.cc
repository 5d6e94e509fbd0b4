#include "server/http/error_reply.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "server/http/http_limits.h"

namespace chainfleet {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxErrorBytes = 1000;

// The text may quote what a client has sent: it is cut, and bytes that are no UTF-8 are replaced.
std::string Dump(const Json& body) { return body.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string Cut(std::string text) {
  if (text.size() <= kMaxErrorBytes) return text;
  return absl::StrCat(text.substr(0, kMaxErrorBytes), "...");
}

// The codes that google.rpc.Code names.
int CodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kAlreadyExists:
      return 409;
    case absl::StatusCode::kResourceExhausted:
      return ReasonOf(status) == "REPLY_TOO_LARGE" ? 400 : 429;
    case absl::StatusCode::kCancelled:
      return 499;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

}  // namespace

WebReply ErrorReply(int code, const std::string& message) {
  return {.code = code, .body = Dump({{"error", Cut(message)}})};
}

WebReply BodyTooLarge() {
  return ErrorReply(413, absl::StrCat("the body is larger than ", limits::kHttpBodyBytes / limits::kMiB,
                                      " MiB: send fewer rows at a time, or a data set with `chainfleet dataset put`"));
}

absl::Status NoRoom() {
  return BoundReached("http_bytes",
                      "the requests and replies of the HTTP port leave no room for this one: retry with backoff, and "
                      "read the replies that were asked for",
                      "QUEUE_FULL");
}

WebReply ErrorReply(const absl::Status& status, const std::string& request_id) {
  Json body = {{"error", Cut(std::string(status.message()))},
               {"code", absl::StatusCodeToString(status.code())},
               {"reason", ReasonOrCode(status)}};
  if (const std::string bound = BoundOf(status); !bound.empty()) body["bound"] = bound;
  for (const FieldViolation& field : FieldViolationsOf(status)) {
    body["fields"].push_back({{"field", field.path}, {"description", field.message}});
  }
  if (!request_id.empty()) body["request_id"] = request_id;
  WebReply reply{.code = CodeOf(status), .body = Dump(body)};
  if (reply.code == 401) reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  const absl::Duration delay = absl::Ceil(RetryAfterOf(status), absl::Seconds(1));
  if (delay > absl::ZeroDuration() || reply.code == 503) {
    reply.headers.emplace_back("Retry-After", absl::StrCat(std::max<int64_t>(absl::ToInt64Seconds(delay), 1)));
  }
  return reply;
}

}  // namespace chainfleet

#include "server/rpc/request_id.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/wire/grpc_status.h"

namespace chainfleet {
namespace {

constexpr size_t kLongestId = 64, kLongestKey = 128;

std::string Only(const CallMetadata& metadata, const char* key) {
  if (metadata.count(key) != 1) return "";
  const grpc::string_ref value = metadata.find(key)->second;
  return std::string(value.data(), value.size());
}

bool IsHex(std::string_view text, size_t size) {
  return text.size() == size && text.find_first_not_of("0123456789abcdef") == text.npos;
}
bool IsHexId(std::string_view text, size_t size) {
  return IsHex(text, size) && text.find_first_not_of('0') != text.npos;
}

// VERSION-TRACE-PARENT-FLAGS in lower-case hex; versions after 00 may append more fields.
std::string TraceId(const std::string& traceparent) {
  const std::vector<std::string> fields = absl::StrSplit(traceparent, '-');
  const bool well_formed = fields.size() >= 4 && IsHex(fields[0], 2) && fields[0] != "ff" &&
                           (fields[0] != "00" || fields.size() == 4) && IsHexId(fields[1], 32) &&
                           IsHexId(fields[2], 16) && IsHex(fields[3], 2);
  return well_formed ? fields[1] : "";
}

bool IsRequestId(std::string_view text) {
  return !text.empty() && text.size() <= kLongestId && std::ranges::all_of(text, [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  });
}

}  // namespace

std::string GivenRequestId(const CallMetadata& metadata) {
  std::string trace = TraceId(Only(metadata, "traceparent"));
  if (!trace.empty()) return trace;
  std::string id = Only(metadata, kRequestIdHeader);
  return IsRequestId(id) ? id : "";
}

std::string RequestIdOf(const grpc::CallbackServerContext& context) {
  return Only(context.client_metadata(), kRequestIdHeader);
}

absl::Status CheckRequestKey(const std::string& request_id) {
  const auto printable = [](unsigned char c) { return absl::ascii_isgraph(c); };
  if (request_id.size() <= kLongestKey && std::ranges::all_of(request_id, printable)) return absl::OkStatus();
  return InvalidFields({{"request_id", absl::StrCat("give at most ", kLongestKey, " printable ASCII characters")}});
}

}  // namespace chainfleet

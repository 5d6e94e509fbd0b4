// An HttpTransport that answers from a script and records the requests.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/store/blob_store/http_transport.h"

namespace chainfleet {

// Not thread-safe. A request beyond the end of the script gets UNAVAILABLE.
class ScriptedHttp final : public HttpTransport {
 public:
  struct Asked {
    std::string line;  // "PUT https://host/path?query"
    std::map<std::string, std::string> headers;
    std::string body;
    absl::Duration timeout;
  };
  std::deque<absl::StatusOr<HttpReply>> script;
  std::vector<Asked> asked;

  absl::StatusOr<HttpReply> Send(const HttpRequest& request) override {
    asked.push_back(
        {absl::StrCat(request.method, " ", request.url), request.headers, std::string(request.body), request.timeout});
    if (script.empty()) return absl::UnavailableError("the script has ended");
    absl::StatusOr<HttpReply> reply = std::move(script.front());
    script.pop_front();
    return reply;
  }
};

inline HttpReply S3Failure(int code, const std::string& s3_code, const std::string& message = "") {
  return {code, {}, absl::StrCat("<Error><Code>", s3_code, "</Code><Message>", message, "</Message></Error>")};
}

}  // namespace chainfleet

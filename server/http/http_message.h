// A request to the HTTP port, and its reply.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "core/base/fair_budget.h"
#include "server/http/web_stream.h"

namespace chainfleet {

struct WebHead {
  std::string verb;                                        // "GET" also for HEAD
  std::string path;                                        // percent-encoded, without the query
  std::vector<std::pair<std::string, std::string>> query;  // decoded
  // Names in lower case. A repeated header has its last value, but x-forwarded-for has all of them, joined by commas.
  std::map<std::string, std::string> headers;
  std::string peer;  // PeerName of the client, without a port if a trusted proxy named it

  // "" if the request has no such header.
  std::string Header(const std::string& name) const {
    const auto header = headers.find(name);
    return header == headers.end() ? "" : header->second;
  }
  // In lower case; "" if the body is as it is.
  std::string BodyEncoding() const {
    const std::string encoding = absl::AsciiStrToLower(Header("content-encoding"));
    return encoding == "identity" ? "" : encoding;
  }
};

struct WebRequest {
  WebHead head;
  std::string body;
  std::shared_ptr<BudgetShare> held;  // memory of the body, and of what is made of it
};

struct WebReply {
  int code = 200;
  std::string body;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  std::shared_ptr<const void> held;   // until the client has read the reply
  std::shared_ptr<WebStream> stream;  // in place of `body`; closed when the last copy of this pointer is gone
};

}  // namespace chainfleet

// Sends single HTTP requests for the S3 client: libcurl in production, scripted replies in tests.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/base/status.h"

namespace chainfleet {

struct HttpRequest {
  std::string method;  // GET, HEAD, PUT, POST, DELETE
  std::string url;
  std::map<std::string, std::string> headers;
  std::string_view body;         // borrowed for the call
  int64_t max_reply_bytes = 0;   // limit on the body
  absl::Duration stall_timeout;  // time without any progress
  absl::Duration timeout;        // time of the whole exchange
};

struct HttpReply {
  int code = 0;
  std::map<std::string, std::string> headers;  // lower-case names
  std::string body;
};

// Thread-safe.
class HttpTransport {
 public:
  virtual ~HttpTransport() = default;

  // Returns the server's reply with any code. UNAVAILABLE: no complete reply; the message is the network's, and the
  // request may have taken effect or not. RESOURCE_EXHAUSTED: the body is longer than max_reply_bytes.
  virtual absl::StatusOr<HttpReply> Send(const HttpRequest& request) = 0;
};

// libcurl with HTTP/1.1 and persistent connections, one for each call in flight. Follows no redirects. Honours
// http_proxy and related environment variables.
class CurlTransport final : public HttpTransport {
 public:
  // `ca_bundle`: a file of trusted certificates; empty for the system's.
  explicit CurlTransport(std::string ca_bundle);
  ~CurlTransport() override;
  absl::StatusOr<HttpReply> Send(const HttpRequest& request) override;
  // Ends current and later calls as UNAVAILABLE within about a second. Call at the end of the process.
  void Stop() { stopped_ = true; }

 private:
  struct Connection;
  std::unique_ptr<Connection> Take();

  const std::string ca_bundle_;
  std::atomic<bool> stopped_ = false;
  Mutex mutex_;
  std::vector<std::unique_ptr<Connection>> idle_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace chainfleet

// One HTTP request at a time, as a parameter of the S3 client: libcurl in production, a script of replies in tests.
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
  std::string_view body;         // of the caller, for the call
  int64_t max_reply_bytes = 0;   // of the body
  absl::Duration stall_timeout;  // without a sign of life
  absl::Duration timeout;        // of the whole exchange
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

  // Whatever the server answered. UNAVAILABLE: no whole answer, in the network's own words; whether the request had its
  // effect is unknown. RESOURCE_EXHAUSTED: the body is longer than asked for.
  virtual absl::StatusOr<HttpReply> Send(const HttpRequest& request) = 0;
};

// libcurl, HTTP/1.1 with connections that stay open, one for each call in flight. Follows no redirects; http_proxy and
// its family of environment variables hold.
class CurlTransport final : public HttpTransport {
 public:
  // `ca_bundle`: a file of trusted certificates, empty for the system's.
  explicit CurlTransport(std::string ca_bundle);
  ~CurlTransport() override;
  absl::StatusOr<HttpReply> Send(const HttpRequest& request) override;
  // Calls in flight, and later ones, end UNAVAILABLE within a second or so: for the end of the process.
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

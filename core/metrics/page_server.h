// Pages of text over HTTP, made anew for each GET: metrics, and lists for Prometheus.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/base/status.h"

namespace chainfleet {

// The content of a page; its type is "text/plain", "application/json", ...
struct TextPage {
  std::string content_type;
  std::function<std::string()> make;
  bool is_public = false;  // needs no token
};

// Answers until destroyed. One GET at a time makes a page. A client that sends nothing, or does not read, is
// disconnected after a second; 32 such clients at a time delay no other. Other paths are 404. With a token, pages that
// are not public want "Authorization: Bearer TOKEN". Other requests to them get 401.
class PageServer {
 public:
  // `address`: HOST:PORT, port 0 for any free port; pages by path; an empty `token`: all pages are public.
  // ALREADY_EXISTS / PORT_TAKEN; INVALID_ARGUMENT for a malformed address.
  static absl::StatusOr<std::unique_ptr<PageServer>> Start(const std::string& address,
                                                           std::map<std::string, TextPage> pages,
                                                           const std::string& token = "");
  ~PageServer();

  // Returns the address with the bound port.
  const std::string& address() const { return address_; }

 private:
  struct Impl;
  PageServer();
  std::string address_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chainfleet

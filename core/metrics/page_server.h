// Pages of text over HTTP, made anew for each GET: metrics, and what else Prometheus asks for.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/base/status.h"

namespace chainfleet {

// The whole of a page; its type is "text/plain", "application/json", ...
struct TextPage {
  std::string content_type;
  std::function<std::string()> make;
};

// Answers until it is destroyed. One GET at a time makes a page. A client that says nothing, or does not read, is cut
// after a second; 32 of them at a time hold up nobody else. Other paths are 404.
class PageServer {
 public:
  // `address`: HOST:PORT, port 0 for a free one; pages by path. ALREADY_EXISTS / PORT_TAKEN; INVALID_ARGUMENT for an
  // address that is none.
  static absl::StatusOr<std::unique_ptr<PageServer>> Start(const std::string& address,
                                                           std::map<std::string, TextPage> pages);
  ~PageServer();

  // With the port that was bound.
  const std::string& address() const { return address_; }

 private:
  struct Impl;
  PageServer();
  std::string address_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chainfleet

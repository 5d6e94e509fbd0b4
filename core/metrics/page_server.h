// Pages of text over HTTP or HTTPS, made anew for each GET: metrics, and lists for Prometheus.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/base/reread.h"
#include "core/base/status.h"
#include "core/tls/tls_files.h"

namespace chainfleet {

// The content of a page; its type is "text/plain", "application/json", ...
struct TextPage {
  std::string content_type;
  std::function<std::string()> make;
  bool is_public = false;  // needs no token
};

// Called for each request that gets 401, with the PeerName of its client and the path of the page. Must not block.
using OnRefusedPage = std::function<void(const std::string& peer, const std::string& path)>;

// Answers until destroyed. One page is made at a time, once for all GETs that wait for it. Other paths are 404, other
// methods 405. With a token, pages that are not public want "Authorization: Bearer TOKEN". Other requests to them get
// 401.
//
// A client that sends nothing, does not end its handshake or does not read is disconnected after two seconds. When all
// places for connections are taken, in all or for one host, a new connection takes the place of the oldest one that
// waits for no page.
class PageServer {
 public:
  // Pages by path; an empty `token`: all pages are public. With a certificate, only TLS is answered; its files are read
  // for each handshake. `on_refused` may be null. ALREADY_EXISTS / PORT_TAKEN; INVALID_ARGUMENT for a malformed
  // address.
  static absl::StatusOr<std::unique_ptr<PageServer>> Start(const Endpoint& endpoint,
                                                           std::map<std::string, TextPage> pages,
                                                           const Reread<std::string>& token = {},
                                                           OnRefusedPage on_refused = nullptr);
  ~PageServer();

  // Returns the address with the bound port.
  const std::string& address() const { return address_; }

 private:
  class Connections;
  PageServer();
  std::string address_;
  std::unique_ptr<Connections> connections_;
};

}  // namespace chainfleet

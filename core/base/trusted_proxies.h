// Finds the client of a request that reverse proxies have passed on.
#pragma once

#include <netinet/in.h>

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/status.h"

namespace chainfleet {

// In lower case. Each proxy appends the address that it was called from, or replaces the header by that address.
inline constexpr char kForwardedForHeader[] = "x-forwarded-for";

// The networks whose hosts are believed about where a request comes from. Empty by default: nobody is.
class TrustedProxies {
 public:
  // Each of `networks` is ADDRESS/BITS, of IPv4 or IPv6. INVALID_ARGUMENT quotes the one that is not.
  static absl::StatusOr<TrustedProxies> Parse(const std::vector<std::string>& networks);

  // Returns the client of a request from `peer`, a PeerName. `forwarded_for` is the request's x-forwarded-for; the
  // lines of a repeated header are joined by commas. If `peer` is trusted, the client is the rightmost address that is
  // not, as a PeerName without a port: clients can forge only what is left of it. Otherwise the client is `peer`: also
  // if the header has no such address, other text in its place, or kMaxForwardings trusted addresses right of it.
  std::string ClientOf(const std::string& peer, absl::string_view forwarded_for) const;

  static constexpr int kMaxForwardings = 16;

 private:
  struct Network {
    in6_addr address;
    size_t bits;
  };
  bool Trusts(const in6_addr& address) const;

  std::vector<Network> networks_;
};

}  // namespace chainfleet

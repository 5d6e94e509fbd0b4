// The address of a client that proxies name, and the peers that are believed about it.
#include "core/base/trusted_proxies.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "core/base/peer_name.h"

namespace chainfleet {
namespace {

constexpr char kProxy[] = "ipv4:10.0.0.7:4711";

TrustedProxies Trusting(const std::vector<std::string>& networks) { return TrustedProxies::Parse(networks).value(); }

TEST(TrustedProxies, NobodyIsBelievedByDefault) { EXPECT_EQ(TrustedProxies().ClientOf(kProxy, "192.0.2.1"), kProxy); }

TEST(TrustedProxies, OnlyPeersInTheNetworksAreBelieved) {
  const TrustedProxies proxies = Trusting({"10.0.0.0/29", "2001:db8:0:1::/63"});
  for (const char* peer : {"ipv4:10.0.0.0:1", "ipv4:10.0.0.7:1", "ipv6:%5B::ffff:10.0.0.7%5D:1",
                           "ipv6:%5B2001:db8::9%5D:1", "ipv6:[2001:db8:0:1:ffff::9]:1"}) {
    EXPECT_EQ(proxies.ClientOf(peer, "192.0.2.1"), "ipv4:192.0.2.1") << peer;
  }
  for (const char* peer : {"ipv4:10.0.0.8:1", "ipv4:11.0.0.7:1", "ipv6:%5B2001:db8:0:2::9%5D:1", "ipv6:%5B::a00:7%5D:1",
                           "unix:/run/socket", "inproc", ""}) {
    EXPECT_EQ(proxies.ClientOf(peer, "192.0.2.1"), peer);
  }
}

TEST(TrustedProxies, ANetworkMayBeOneAddressOrAllOfThem) {
  EXPECT_EQ(Trusting({"10.0.0.6/32"}).ClientOf(kProxy, "192.0.2.1"), kProxy);
  EXPECT_EQ(Trusting({"2001:db8::1/128"}).ClientOf("ipv6:%5B2001:db8::1%5D:1", "192.0.2.1"), "ipv4:192.0.2.1");
  EXPECT_EQ(Trusting({"0.0.0.0/0"}).ClientOf(kProxy, "2001:db8::1"), "ipv6:%5B2001:db8::1%5D");
  EXPECT_EQ(Trusting({"0.0.0.0/0"}).ClientOf("ipv6:%5B2001:db8::1%5D:1", "192.0.2.1"), "ipv6:%5B2001:db8::1%5D:1");
}

TEST(TrustedProxies, TheClientIsTheRightmostAddressThatNoProxyHas) {
  const TrustedProxies proxies = Trusting({"10.0.0.0/24"});
  EXPECT_EQ(proxies.ClientOf(kProxy, "198.51.100.9, 192.0.2.1"), "ipv4:192.0.2.1") << "the client sent the first one";
  EXPECT_EQ(proxies.ClientOf(kProxy, "198.51.100.9,192.0.2.1 ,\t10.0.0.8, 10.0.0.9"), "ipv4:192.0.2.1");
  EXPECT_EQ(proxies.ClientOf(kProxy, "::ffff:192.0.2.1"), "ipv4:192.0.2.1");
  EXPECT_EQ(proxies.ClientOf(kProxy, "what, 192.0.2.1"), "ipv4:192.0.2.1") << "a client cannot hide behind text";
}

TEST(TrustedProxies, HeadersWithoutAClientLeaveThePeer) {
  const TrustedProxies proxies = Trusting({"10.0.0.0/24"});
  for (const char* header :
       {"", " ", ",", "192.0.2.1,", "192.0.2.1, what", "unknown", "192.0.2.1:80", "[2001:db8::1]", "192.0.2",
        "192.0.2.256", "fe80::1%eth0", "10.0.0.8", "10.0.0.8, 10.0.0.9", "192.0.2.1, what, 10.0.0.9"}) {
    EXPECT_EQ(proxies.ClientOf(kProxy, header), kProxy) << header;
  }
}

TEST(TrustedProxies, AFewForwardingsAreRead) {
  const TrustedProxies proxies = Trusting({"10.0.0.0/24"});
  std::string header = "192.0.2.1";
  for (int i = 1; i < TrustedProxies::kMaxForwardings; ++i) header += ", 10.0.0.8";
  EXPECT_EQ(proxies.ClientOf(kProxy, header), "ipv4:192.0.2.1");
  EXPECT_EQ(proxies.ClientOf(kProxy, header + ", 10.0.0.8"), kProxy);
}

TEST(TrustedProxies, BoundsOnAHostKnowTheClient) {
  const TrustedProxies proxies = Trusting({"10.0.0.0/24"});
  EXPECT_EQ(HostOf(proxies.ClientOf(kProxy, "192.0.2.1")), HostOf("ipv4:192.0.2.1:4711"));
  EXPECT_EQ(HostOf(proxies.ClientOf(kProxy, "2001:db8::1")), HostOf("ipv6:%5B2001:db8::2%5D:4711"));
}

TEST(TrustedProxies, TextThatIsNoNetworkIsRefused) {
  for (const char* text : {"", "/", "10.0.0.7", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/x", "10.0.0/24",
                           "2001:db8::/129", "2001:db8::", "[::1]/128", "localhost/32", "10.0.0.0/8/8"}) {
    const auto proxies = TrustedProxies::Parse({"10.0.0.0/24", text});
    ASSERT_FALSE(proxies.ok()) << text;
    EXPECT_THAT(std::string(proxies.status().message()), testing::HasSubstr("ADDRESS/BITS, as in 10.0.0.7/32"));
    EXPECT_THAT(std::string(proxies.status().message()), testing::HasSubstr("\"" + std::string(text) + "\""));
  }
}

}  // namespace
}  // namespace chainfleet

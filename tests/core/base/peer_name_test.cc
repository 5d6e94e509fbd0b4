#include "core/base/peer_name.h"

#include <arpa/inet.h>

#include "gtest/gtest.h"

namespace chainfleet {
namespace {

TEST(HostOf, LeavesOutThePort) {
  EXPECT_EQ(HostOf("ipv4:10.0.0.1:4711"), "ipv4:10.0.0.1");
  EXPECT_EQ(HostOf("ipv4:10.0.0.1"), "ipv4:10.0.0.1");
  EXPECT_EQ(HostOf("unix:/run/socket:1"), "unix:/run/socket:1");
}

TEST(HostOf, TakesAllAddressesOfAnIpv6NetworkForOneHost) {
  for (const char* peer : {"ipv6:[2001:db8:1:2::1]:4711", "ipv6:%5B2001:db8:1:2:ffff::9%5D:80"}) {
    EXPECT_EQ(HostOf(peer), "ipv6:[2001:db8:1:2::]/64") << peer;
  }
  EXPECT_EQ(HostOf("ipv6:%5B2001:db8:1:3::1%5D:4711"), "ipv6:[2001:db8:1:3::]/64");
  for (const char* zone : {"ipv6:%5Bfe80::1%eth0%5D:80", "ipv6:%5Bfe80::1%25eth0%5D:80", "ipv6:[fe80::2%eth1]:80"}) {
    EXPECT_EQ(HostOf(zone), "ipv6:[fe80::]/64") << zone;
  }
}

TEST(HostOf, TakesAMappedAddressForItsIpv4Address) {
  EXPECT_EQ(HostOf("ipv6:[::ffff:10.0.0.1]:4711"), "ipv4:10.0.0.1");
  EXPECT_EQ(HostOf("ipv6:%5B::ffff:a00:1%5D:4711"), "ipv4:10.0.0.1");
}

TEST(HostOf, KeepsTextThatIsNoAddress) {
  EXPECT_EQ(HostOf("ipv6:[what]:1"), "ipv6:[what]");
  EXPECT_EQ(HostOf("ipv6:"), "ipv6:");
  EXPECT_EQ(HostOf(""), "");
}

TEST(HostOf, ReadsTheNamesThatPeerNameMakes) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(4711);
  ASSERT_EQ(inet_pton(AF_INET6, "2001:db8::7", &address.sin6_addr), 1);
  const auto* const plain = reinterpret_cast<const sockaddr*>(&address);
  EXPECT_EQ(HostOf(PeerName(plain, sizeof address)), "ipv6:[2001:db8::]/64");
}

}  // namespace
}  // namespace chainfleet

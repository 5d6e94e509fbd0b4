#include "core/base/host_connections.h"

#include "gtest/gtest.h"

namespace chainfleet {
namespace {

TEST(HostConnections, AddressesOfOneIpv6NetworkShareOneBound) {
  HostConnections connections(2);
  connections.Add("ipv6:%5B2001:db8:1:2::1%5D:4711");
  EXPECT_TRUE(connections.HasRoom("ipv6:%5B2001:db8:1:2::2%5D:80"));
  connections.Add("ipv6:%5B2001:db8:1:2:ffff::9%5D:80");
  EXPECT_FALSE(connections.HasRoom("ipv6:%5B2001:db8:1:2:1:2:3:4%5D:80"));
  EXPECT_TRUE(connections.HasRoom("ipv6:%5B2001:db8:1:3::1%5D:4711")) << "another network";
}

TEST(HostConnections, Ipv4AddressesAreHostsOfTheirOwn) {
  HostConnections connections(1);
  connections.Add("ipv4:10.0.0.1:1");
  EXPECT_FALSE(connections.HasRoom("ipv4:10.0.0.1:2"));
  EXPECT_TRUE(connections.HasRoom("ipv4:10.0.0.2:1"));
}

TEST(HostConnections, AClosedConnectionLeavesItsPlaceToAnotherAddressOfItsNetwork) {
  HostConnections connections(1);
  connections.Add("ipv6:%5B2001:db8::1%5D:1");
  connections.Remove("ipv6:%5B2001:db8::1%5D:1");
  EXPECT_TRUE(connections.HasRoom("ipv6:%5B2001:db8::2%5D:1"));
}

}  // namespace
}  // namespace chainfleet

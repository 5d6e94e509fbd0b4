// Tests the bound on the connections of one host. A test machine has no network with many addresses, so this program
// replaces accept4: each connection seems to come from the address that the test names.
#include "server/rpc/front_door.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/mutex.h"
#include "tests/support/fake_clock.h"

namespace chainfleet {
namespace {

constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// The address of the client that connects next. Thread-safe.
class ClientAddress {
 public:
  void Set(const std::string& number) {
    const MutexLock lock(&mutex_);
    number_ = number;
  }
  // Replaces the address and keeps the port. REQUIRES: an IPv6 address fits.
  void Replace(sockaddr* address, socklen_t* size) {
    const MutexLock lock(&mutex_);
    auto* const four = reinterpret_cast<sockaddr_in*>(address);
    if (::inet_pton(AF_INET, number_.c_str(), &four->sin_addr) == 1) return;
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = four->sin_port;
    EXPECT_EQ(::inet_pton(AF_INET6, number_.c_str(), &six.sin6_addr), 1) << number_;
    *reinterpret_cast<sockaddr_in6*>(address) = six;
    *size = sizeof six;
  }

 private:
  Mutex mutex_;
  std::string number_ CHAINFLEET_GUARDED_BY(mutex_);
};

ClientAddress& NextClient() {
  static auto* const address = new ClientAddress;
  return *address;
}

// Stands in for gRPC: greets each connection that the door hands over, and keeps it open.
class GreetingAcceptor final : public grpc::experimental::ExternalConnectionAcceptor {
 public:
  ~GreetingAcceptor() override {
    for (const int descriptor : descriptors_) ::close(descriptor);
  }
  void HandleNewConnection(NewConnectionParameters* connection) override {
    descriptors_.push_back(connection->fd);
    EXPECT_EQ(::send(connection->fd, "!", 1, MSG_NOSIGNAL), 1);
  }

 private:
  std::vector<int> descriptors_;
};

class FrontDoorTest : public testing::Test {
 protected:
  FrontDoorTest() { door_->Start(std::make_unique<GreetingAcceptor>()); }
  ~FrontDoorTest() override {
    for (const int descriptor : clients_) ::close(descriptor);
  }

  // Returns true if the door hands the connection over, false if the door closes it. A connection that is handed over
  // stays open.
  bool Admits(const std::string& address) {
    NextClient().Set(address);
    const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    clients_.push_back(descriptor);
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in door{};
    door.sin_family = AF_INET;
    door.sin_port = htons(static_cast<uint16_t>(door_->port()));
    door.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(descriptor, reinterpret_cast<const sockaddr*>(&door), sizeof door), 0);
    // Fails if the door has closed the connection already.
    ::send(descriptor, kHttp2Preface.data(), kHttp2Preface.size(), MSG_NOSIGNAL);
    char greeting = 0;
    const ssize_t got = ::recv(descriptor, &greeting, 1, 0);
    EXPECT_FALSE(got < 0 && errno == EAGAIN) << "the door does not answer " << address;
    return got == 1;
  }

  FakeClock clock_;
  const std::unique_ptr<FrontDoor> door_ =
      FrontDoor::Open({"127.0.0.1:0"}, {.connections = 100, .of_a_host = 3, .silent = 50, .silence = absl::Minutes(1)},
                      &clock_)
          .value();
  std::vector<int> clients_;
};

TEST_F(FrontDoorTest, AddressesOfOneIpv6NetworkShareABound) {
  for (const char* address : {"2001:db8:1:2::1", "2001:db8:1:2::2", "2001:db8:1:2:ffff::3"}) {
    EXPECT_TRUE(Admits(address)) << address;
  }
  EXPECT_FALSE(Admits("2001:db8:1:2::4"));
  EXPECT_TRUE(Admits("2001:db8:1:3::4")) << "another network";
}

// A door on an IPv6 address sees IPv4 clients as mapped addresses, which are all of one /64.
TEST_F(FrontDoorTest, EachIpv4AddressHasItsOwnBound) {
  for (const char* address : {"10.0.0.1", "::ffff:10.0.0.1", "10.0.0.1"}) EXPECT_TRUE(Admits(address)) << address;
  EXPECT_FALSE(Admits("10.0.0.1"));
  EXPECT_FALSE(Admits("::ffff:10.0.0.1"));
  EXPECT_TRUE(Admits("10.0.0.2"));
  EXPECT_TRUE(Admits("::ffff:10.0.0.3"));
}

}  // namespace
}  // namespace chainfleet

extern "C" int accept4(int listener, sockaddr* address, socklen_t* size, int flags) {
  const auto descriptor = static_cast<int>(::syscall(SYS_accept4, listener, address, size, flags));
  if (descriptor >= 0) chainfleet::NextClient().Replace(address, size);
  return descriptor;
}

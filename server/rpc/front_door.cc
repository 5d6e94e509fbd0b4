#include "server/rpc/front_door.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/host_connections.h"
#include "core/base/host_port.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/peer_name.h"
#include "server/rpc/call_limits.h"

namespace chainfleet {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", kTlsHandshake = "\x16\x03";
constexpr absl::Duration kDoorRound = absl::Seconds(1), kWithoutDescriptors = absl::Milliseconds(100);
constexpr absl::Duration kDoorLogInterval = absl::Seconds(10);

void SetOption(int descriptor, int level, int option, int value) {
  ::setsockopt(descriptor, level, option, &value, sizeof value);
}

const sockaddr* Plain(const sockaddr_storage& address) { return reinterpret_cast<const sockaddr*>(&address); }

// Tells an open descriptor from a later one with the same number. 0 means closed.
uint64_t InodeOf(int descriptor) {
  struct stat file {};
  return ::fstat(descriptor, &file) == 0 ? file.st_ino : 0;
}

// Returns a listening socket, or -1.
int ListenOn(const addrinfo& address) {
  const int descriptor =
      ::socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol);
  if (descriptor < 0) return -1;
  SetOption(descriptor, SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.ai_family == AF_INET6) SetOption(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (::bind(descriptor, address.ai_addr, address.ai_addrlen) == 0 && ::listen(descriptor, SOMAXCONN) == 0) {
    return descriptor;
  }
  ::close(descriptor);
  return -1;
}

// Returns true if a whole preface, or as many bytes, has arrived and begins with `opening`.
bool Begins(int descriptor, std::string_view opening) {
  char bytes[kPreface.size()];
  const ssize_t got = ::recv(descriptor, bytes, sizeof bytes, MSG_PEEK);
  return got == sizeof bytes && std::string_view(bytes, sizeof bytes).starts_with(opening);
}

int PortOf(int descriptor) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

DoorLimits DoorLimitsOfProcess() {
  rlimit descriptors{};
  ::getrlimit(RLIMIT_NOFILE, &descriptors);
  const auto all = static_cast<int>(std::min<rlim_t>(descriptors.rlim_cur, 1 << 20));
  const int kept = std::max(limits::kMinReservedDescriptors, all / 4);
  const int connections = std::clamp(all - kept, 16, limits::kMaxConnections);
  return {.connections = connections,
          .of_a_host = connections * 3 / 4,
          .silent = std::min(limits::kSilentConnections, connections / 2),
          .silence = limits::kSilence};
}

// Used by one thread, except where a comment says otherwise.
class FrontDoor::Connections {
 public:
  Connections(std::string_view opening, const DoorLimits& limits, const Clock* clock)
      : opening_(opening),
        limits_(limits),
        clock_(clock),
        stop_(::eventfd(0, EFD_CLOEXEC)),
        of_hosts_(limits.of_a_host) {}
  ~Connections() {
    CloseListeners();
    for (const Silent& connection : silent_) ::close(connection.descriptor);
    ::close(stop_);
  }
  // Only while Run is not running.
  void CloseListeners() {
    for (const int descriptor : listeners_) ::close(descriptor);
    listeners_.clear();
  }

  // With `port` "0" the first address takes a free port and the others take the same one.
  bool Listen(const std::string& host, std::string port) {
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    if (::getaddrinfo(host.c_str(), port.c_str(), &wanted, &found) != 0) return false;
    bool all = found != nullptr;
    for (const addrinfo* address = found; address != nullptr && all; address = address->ai_next) {
      if (port_ != 0) SetPort(address->ai_addr);
      const int descriptor = ListenOn(*address);
      all = descriptor >= 0;
      if (!all) break;
      listeners_.push_back(descriptor);
      SetOption(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);  // connections inherit both options
      SetOption(descriptor, SOL_SOCKET, SO_RCVBUF, limits::kReceiveBufferBytes);
      port_ = PortOf(descriptor);
    }
    ::freeaddrinfo(found);
    return all;
  }
  int port() const { return port_; }
  void SetAcceptor(std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor) {
    acceptor_ = std::move(acceptor);
  }

  // Any thread.
  void Cut(const std::string& peer) {
    const MutexLock lock(&mutex_);
    const int descriptor = DescriptorOf(peer);
    if (descriptor < 0) return;
    ::shutdown(descriptor, SHUT_RDWR);
    Log(LogLevel::kWarning, "connection closed: the client cancels too many calls", {{"peer", peer}});
  }

  // Any thread.
  int64_t BytesReceived(const std::string& peer) {
    const MutexLock lock(&mutex_);
    tcp_info info{};
    socklen_t size = sizeof info;
    const int descriptor = DescriptorOf(peer);
    if (descriptor < 0 || ::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
    return static_cast<int64_t>(info.tcpi_bytes_received);
  }

  // Makes Run return. Any thread.
  void Stop() { ::eventfd_write(stop_, 1); }

  void Run() {
    for (;;) {
      std::vector<pollfd> polled = {{stop_, POLLIN, 0}};
      for (const Silent& connection : silent_) polled.push_back({connection.descriptor, POLLIN, 0});
      const bool paused = clock_->Monotonic() < paused_until_;
      for (const int listener : listeners_) polled.push_back({paused ? -1 : listener, POLLIN, 0});
      const absl::Duration wait = paused ? kWithoutDescriptors : kDoorRound;
      ::poll(polled.data(), polled.size(), static_cast<int>(absl::ToInt64Milliseconds(wait)));
      if (polled[0].revents != 0) return;
      LookAtSilent(polled);
      if (clock_->Monotonic() - forgot_ >= kDoorRound) ForgetClosed();
      for (auto listener = polled.end() - static_cast<std::ptrdiff_t>(listeners_.size()); listener != polled.end();
           ++listener) {
        if (listener->revents != 0) AcceptAll(listener->fd);
      }
    }
  }

 private:
  struct Silent {
    int descriptor;
    std::string peer;
    absl::Duration since;
  };
  struct Handed {
    int descriptor;
    uint64_t inode;
    bool closed() const { return InodeOf(descriptor) != inode; }
  };

  // Returns -1 if gRPC has closed the connection.
  int DescriptorOf(const std::string& peer) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto connection = handed_.find(peer);
    return connection == handed_.end() || connection->second.closed() ? -1 : connection->second.descriptor;
  }

  void SetPort(sockaddr* address) const {
    const auto port = htons(static_cast<uint16_t>(port_));
    if (address->sa_family == AF_INET6) {
      reinterpret_cast<sockaddr_in6*>(address)->sin6_port = port;
    } else {
      reinterpret_cast<sockaddr_in*>(address)->sin_port = port;
    }
  }

  // `polled`: stop_, then silent_, in order.
  void LookAtSilent(const std::vector<pollfd>& polled) {
    const absl::Duration now = clock_->Monotonic();
    std::vector<Silent> still;
    for (size_t i = 0; i < silent_.size(); ++i) {
      if (polled[i + 1].revents != 0) {
        Look(silent_[i]);
      } else if (now - silent_[i].since >= limits_.silence) {
        Close(silent_[i]);
      } else {
        still.push_back(std::move(silent_[i]));
      }
    }
    silent_ = std::move(still);
  }

  // SO_RCVLOWAT wakes the poll when as many bytes as a preface have arrived or the connection has ended.
  void Look(const Silent& connection) {
    if (!Begins(connection.descriptor, opening_)) return Close(connection);
    SetOption(connection.descriptor, SOL_SOCKET, SO_RCVLOWAT, 1);
    {
      const MutexLock lock(&mutex_);
      const auto [handed, is_new] = handed_.try_emplace(connection.peer);
      if (!is_new) of_hosts_.Remove(connection.peer);  // an older connection of this peer, closed since
      handed->second = {connection.descriptor, InodeOf(connection.descriptor)};
    }
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters handed;
    handed.listener_fd = listeners_.front();
    handed.fd = connection.descriptor;
    acceptor_->HandleNewConnection(&handed);
  }

  void Close(const Silent& connection) {
    ::close(connection.descriptor);
    of_hosts_.Remove(connection.peer);
  }

  void AcceptAll(int listener) {
    for (;;) {
      sockaddr_storage address{};
      socklen_t size = sizeof address;
      const int descriptor =
          ::accept4(listener, reinterpret_cast<sockaddr*>(&address), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (descriptor >= 0) {
        Take({descriptor, PeerName(Plain(address), size), clock_->Monotonic()});
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        Say("connections wait: there is no descriptor or memory for them");
        if (!CloseASilent()) paused_until_ = clock_->Monotonic() + kWithoutDescriptors;
        return;
      } else if (errno != EINTR && errno != ECONNABORTED) {
        return;
      }
    }
  }

  void Take(Silent connection) {
    const auto is_refused = [&] { return IsFull() || !of_hosts_.HasRoom(connection.peer); };
    if (is_refused()) ForgetClosed();
    if (static_cast<int>(silent_.size()) >= limits_.silent || IsFull()) CloseASilent();
    if (is_refused()) {
      Say("connection refused: there are too many, in all or from its address");
      ::close(connection.descriptor);
      return;
    }
    of_hosts_.Add(connection.peer);
    SetOption(connection.descriptor, SOL_SOCKET, SO_RCVLOWAT, static_cast<int>(kPreface.size()));
    silent_.push_back(std::move(connection));
  }

  bool IsFull() { return static_cast<int>(silent_.size() + NumHanded()) >= limits_.connections; }

  size_t NumHanded() {
    const MutexLock lock(&mutex_);
    return handed_.size();
  }

  // Closes the oldest silent connection of the host with the most of them. False if there is none.
  bool CloseASilent() {
    if (silent_.empty()) return false;
    std::map<std::string, int> counts;
    for (const Silent& connection : silent_) ++counts[HostOf(connection.peer)];
    const auto busiest = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
    const auto oldest = std::ranges::find_if(
        silent_, [&](const Silent& connection) { return HostOf(connection.peer) == busiest->first; });
    Close(*oldest);
    silent_.erase(oldest);
    return true;
  }

  // gRPC does not report the connections that it closes.
  void ForgetClosed() {
    forgot_ = clock_->Monotonic();
    const MutexLock lock(&mutex_);
    std::erase_if(handed_, [this](const auto& entry) {
      if (!entry.second.closed()) return false;
      of_hosts_.Remove(entry.first);
      return true;
    });
  }

  void Say(const char* what) {
    if (clock_->Monotonic() - said_ < kDoorLogInterval) return;
    said_ = clock_->Monotonic();
    Log(LogLevel::kWarning, what,
        {{"connections", NumHanded()}, {"silent", silent_.size()}, {"limit", limits_.connections}});
  }

  const std::string_view opening_;  // the first bytes of a connection that gRPC understands
  const DoorLimits limits_;
  const Clock* const clock_;
  const int stop_;
  int port_ = 0;
  std::vector<int> listeners_;
  std::vector<Silent> silent_;  // oldest first
  Mutex mutex_;
  std::unordered_map<std::string, Handed> handed_ CHAINFLEET_GUARDED_BY(mutex_);  // by peer; only Run changes it
  HostConnections of_hosts_;                                                      // silent and handed connections
  absl::Duration said_ = -absl::InfiniteDuration(), paused_until_ = -absl::InfiniteDuration(), forgot_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
};

FrontDoor::FrontDoor(std::unique_ptr<Connections> connections) : connections_(std::move(connections)) {}

absl::StatusOr<std::unique_ptr<FrontDoor>> FrontDoor::Open(const Endpoint& endpoint, const DoorLimits& limits,
                                                           const Clock* clock) {
  CHAINFLEET_ASSIGN_OR_RETURN(const HostPort listen, ParseHostPort(endpoint.address));
  auto connections =
      std::make_unique<Connections>(endpoint.tls.certificate.empty() ? kPreface : kTlsHandshake, limits, clock);
  if (!connections->Listen(listen.BareHost(), std::to_string(listen.port))) {
    return absl::AlreadyExistsError(absl::StrCat("cannot listen on ", endpoint.address));
  }
  return std::unique_ptr<FrontDoor>(new FrontDoor(std::move(connections)));
}

FrontDoor::~FrontDoor() { Close(); }

void FrontDoor::Close() {
  connections_->Stop();
  thread_.reset();
  connections_->CloseListeners();
}

int FrontDoor::port() const { return connections_->port(); }

void FrontDoor::Cut(const std::string& peer) { connections_->Cut(peer); }

int64_t FrontDoor::BytesReceived(const std::string& peer) { return connections_->BytesReceived(peer); }

void FrontDoor::Start(std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor) {
  connections_->SetAcceptor(std::move(acceptor));
  thread_ = std::make_unique<ThreadPool>(1);
  thread_->Schedule([connections = connections_.get()] { connections->Run(); });
}

}  // namespace chainfleet

// Reads a page on a port of this host with GET, as Prometheus does.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace chainfleet {

// Returns a socket that is connected to `address`, "127.0.0.1:PORT", and waits 10 seconds for bytes; -1 if no server
// listens there.
inline int Dial(const std::string& address) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in target{};
  target.sin_family = AF_INET;
  target.sin_port = htons(static_cast<uint16_t>(std::atoi(address.substr(address.rfind(':') + 1).c_str())));
  target.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval limit{10, 0};
  ::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (::connect(descriptor, reinterpret_cast<const sockaddr*>(&target), sizeof target) == 0) return descriptor;
  ::close(descriptor);
  return -1;
}

// `address`: as for Dial; `headers`: lines that end in CR LF. Returns the whole HTTP response, "" if no server
// answers.
inline std::string Scrape(const std::string& address, const std::string& path = "/metrics",
                          const std::string& headers = "") {
  const int descriptor = Dial(address);
  std::string response;
  const std::string request =
      "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers + "\r\n";
  if (descriptor >= 0 &&
      ::send(descriptor, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size())) {
    char buffer[4096];
    for (ssize_t got; (got = ::recv(descriptor, buffer, sizeof buffer, 0)) > 0;)
      response.append(buffer, static_cast<size_t>(got));
  }
  ::close(descriptor);
  return response;
}

}  // namespace chainfleet

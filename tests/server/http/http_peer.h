// A client that sends bytes as they are, for requests that no well-behaved client makes.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"

namespace chainfleet {

struct PeerReply {
  int code = 0;  // 0: the connection ended without a reply
  std::string head, body;
};

class HttpPeer {
 public:
  explicit HttpPeer(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience{20, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ~HttpPeer() { ::close(socket_); }
  HttpPeer(const HttpPeer&) = delete;
  HttpPeer& operator=(const HttpPeer&) = delete;

  // The server may close the connection meanwhile.
  HttpPeer& Send(const std::string& bytes) {
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t more = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (more <= 0) break;
      sent += static_cast<size_t>(more);
    }
    return *this;
  }

  // Until `end` was read, the server has closed the connection, or 20 s have passed.
  std::string ReadUntil(const std::string& end) {
    std::string read;
    char byte;
    while (!read.ends_with(end) && ::recv(socket_, &byte, 1, 0) == 1) read += byte;
    return read;
  }

  PeerReply Read() {
    PeerReply reply{.head = ReadUntil("\r\n\r\n")};
    if (!reply.head.starts_with("HTTP/1.1 ")) return reply;
    reply.code = std::atoi(reply.head.c_str() + 9);
    if (reply.code == 100) return reply;
    const size_t length = reply.head.find("Content-Length: ");
    reply.body.resize(length == reply.head.npos ? 0
                                                : static_cast<size_t>(std::atoll(reply.head.c_str() + length + 16)));
    if (reply.body.empty()) return reply;
    const ssize_t read = ::recv(socket_, reply.body.data(), reply.body.size(), MSG_WAITALL);
    reply.body.resize(static_cast<size_t>(std::max<ssize_t>(read, 0)));
    return reply;
  }

 private:
  const int socket_;
};

// `headers`: whole lines.
inline std::string Get(const std::string& path, const std::string& headers = "", const std::string& verb = "GET") {
  return absl::StrCat(verb, " ", path, " HTTP/1.1\r\nHost: localhost\r\n", headers, "\r\n");
}
inline std::string Post(const std::string& path, const std::string& body, const std::string& headers = "") {
  return Get(path, absl::StrCat("Content-Length: ", body.size(), "\r\n", headers), "POST") + body;
}

}  // namespace chainfleet

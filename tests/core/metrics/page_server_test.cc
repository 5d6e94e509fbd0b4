// Connections to the pages: TLS, methods, and clients that take places and give nothing.
#include "core/metrics/page_server.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <list>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/host_port.h"
#include "core/base/mutex.h"
#include "core/tls/authority.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/http/http_peer.h"
#include "tests/support/scrape.h"
#include "tests/support/scrape_by_tls.h"

namespace chainfleet {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// Work that ends when the test says so.
class HeldWork {
 public:
  void Do() {
    MutexLock lock(&mutex_);
    ++begun_;
    changed_.SignalAll();
    while (!may_end_) changed_.Wait(&mutex_);
  }
  int WaitUntilBegun() {
    MutexLock lock(&mutex_);
    while (begun_ == 0) changed_.Wait(&mutex_);
    return begun_;
  }
  void LetEnd() {
    MutexLock lock(&mutex_);
    may_end_ = true;
    changed_.SignalAll();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int begun_ CHAINFLEET_GUARDED_BY(mutex_) = 0;
  bool may_end_ CHAINFLEET_GUARDED_BY(mutex_) = false;
};

class PageServerTest : public testing::Test {
 protected:
  void Start(const Endpoint& endpoint, std::map<std::string, TextPage> pages, const Reread<std::string>& token = {}) {
    auto server = PageServer::Start(endpoint, std::move(pages), token);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void Serve(std::function<std::string()> make, const TlsFiles& tls = {}) {
    Start({"127.0.0.1:0", tls}, {{"/page", {"text/plain", std::move(make)}}});
  }
  void Serve(const TlsFiles& tls = {}) {
    Serve([] { return std::string("a page\n"); }, tls);
  }
  const std::string& address() const { return server_->address(); }
  int port() const { return ParseHostPort(address()).value_or(HostPort{}).port; }

  std::unique_ptr<PageServer> server_;
};

TEST_F(PageServerTest, OtherMethodsAreRefused) {
  Serve();
  for (const std::string& request : {Get("/page", "", "HEAD"), Get("/page", "", "DELETE"), Post("/page", "text")}) {
    const PeerReply reply = HttpPeer(port()).Send(request).Read();
    EXPECT_EQ(reply.code, 405) << request;
    EXPECT_THAT(reply.head, HasSubstr("\r\nAllow: GET\r\n"));
  }
  EXPECT_EQ(HttpPeer(port()).Send(Post("/other", "text")).Read().code, 404);
}

TEST_F(PageServerTest, ABodyOfAGetIsNotRead) {
  Serve();
  EXPECT_EQ(HttpPeer(port()).Send(Get("/page", "Content-Length: 4\r\n") + "text").Read().code, 0);
}

TEST_F(PageServerTest, APathIsTakenAsItIs) {
  Serve();
  EXPECT_THAT(Scrape(address(), "/page?name=x"), EndsWith("a page\n"));
  for (const char* path : {"/page/", "/%70age", "//page", "/"}) {
    EXPECT_THAT(Scrape(address(), path), StartsWith("HTTP/1.1 404")) << path;
  }
}

// More than there are places, in all and for one host. The scrape does not wait for the end of their time.
TEST_F(PageServerTest, UnfinishedRequestsLeaveTheirPlacesToNewConnections) {
  Serve();
  std::list<HttpPeer> unfinished;
  for (int i = 0; i < 300; ++i) unfinished.emplace_back(port()).Send("GET /page HTTP/1.1\r\n");
  EXPECT_THAT(Scrape(address(), "/page"), EndsWith("a page\n"));
  EXPECT_EQ(unfinished.front().ReadUntil("never"), "") << "closed by the server";
}

TEST_F(PageServerTest, OtherRequestsAreAnsweredWhileAPageIsMade) {
  HeldWork page;
  Serve([&] {
    page.Do();
    return std::string("late\n");
  });
  HttpPeer client(port());
  client.Send(Get("/page"));
  page.WaitUntilBegun();
  EXPECT_THAT(Scrape(address(), "/other"), StartsWith("HTTP/1.1 404"));
  page.LetEnd();
  EXPECT_EQ(client.Read().body, "late\n");
}

TEST_F(PageServerTest, RequestsThatWaitForAPageShareIt) {
  HeldWork page;
  Serve([&] {
    page.Do();
    return std::string("late\n");
  });
  std::list<HttpPeer> clients;
  clients.emplace_back(port()).Send(Get("/page"));
  page.WaitUntilBegun();
  for (int i = 0; i < 8; ++i) clients.emplace_back(port()).Send(Get("/page"));
  // The daemon accepts these connections after those above. When it answers the second, it has read all of theirs.
  for (int i = 0; i < 2; ++i) EXPECT_THAT(Scrape(address(), "/other"), StartsWith("HTTP/1.1 404"));
  page.LetEnd();
  for (HttpPeer& client : clients) EXPECT_EQ(client.Read().body, "late\n");
  EXPECT_EQ(page.WaitUntilBegun(), 2) << "one for the first request and one for all later ones";
}

// The request of the oldest connection and a connection that takes its place come while the daemon's thread is held.
TEST_F(PageServerTest, AConnectionThatHadToLeaveWaitsForNoPage) {
  std::atomic<bool> is_held = false, is_made = false;
  HeldWork reading;
  const auto read = [&]() -> absl::StatusOr<std::string> {
    if (is_held) reading.Do();
    return "the-token";
  };
  const auto make = [&] {
    is_made = true;
    return std::string("a page\n");
  };
  Start({"127.0.0.1:0"},
        {{"/page", {"text/plain", make}}, {"/next", {"text/plain", [] { return std::string("next\n"); }}}},
        *Reread<std::string>::Open("token", read));
  const std::string token = "Authorization: Bearer the-token\r\n";
  HttpPeer oldest(port());
  std::list<HttpPeer> others;  // with the oldest one, as many as one host may have
  for (int i = 0; i < 95; ++i) others.emplace_back(port());
  is_held = true;
  others.back().Send(Get("/page", token + "Content-Length: 4\r\n"));  // stays: its body does not come
  reading.WaitUntilBegun();
  oldest.Send(Get("/page", token));
  HttpPeer newest(port());
  newest.Send(Get("/next", token));
  reading.LetEnd();
  EXPECT_EQ(newest.Read().body, "next\n");
  EXPECT_EQ(oldest.Read().code, 0);
  EXPECT_FALSE(is_made);
}

TEST_F(PageServerTest, ServesTheIPv4AddressOfANameThatHasOne) {
  Start({"localhost:0"}, {{"/page", {"text/plain", [] { return std::string("a page\n"); }}}});
  EXPECT_EQ(HttpPeer(port()).Send(Get("/page")).Read().body, "a page\n");
}

TEST_F(PageServerTest, ConnectionsThatWaitForAPageEndWithTheServer) {
  Mutex mutex;
  CondVar changed;
  int made = 0;
  Serve([&] {
    MutexLock lock(&mutex);
    ++made;
    changed.SignalAll();
    return std::string(1 << 20, 'x');
  });
  std::list<std::jthread> clients;
  for (int i = 0; i < 8; ++i) clients.emplace_back([at = address()] { Scrape(at, "/page"); });
  {
    MutexLock lock(&mutex);
    while (made == 0) changed.Wait(&mutex);
  }
  server_.reset();
  clients.clear();
}

class SecuredPageTest : public PageServerTest {
 protected:
  SecuredPageTest() {
    std::string folder = testing::TempDir() + "/pages-XXXXXX";
    folder_ = mkdtemp(folder.data());
    EXPECT_TRUE(InitAuthority(folder_, kValidity).ok());
    EXPECT_TRUE(IssueCertificate(folder_, "server", {"127.0.0.1"}, kValidity).ok());
    Serve(TlsFiles{folder_ + "/server.crt", folder_ + "/server.key", ""});
  }
  ~SecuredPageTest() override { std::filesystem::remove_all(folder_); }

  SecuredReply Read() const { return ScrapeByTls(Dial(address()), folder_ + "/ca.crt", "/page"); }

  static inline const Validity kValidity{absl::FromUnixSeconds(1'700'000'000), absl::FromUnixSeconds(2'400'000'000)};
  std::string folder_;
};

TEST_F(SecuredPageTest, ServesByTls) {
  const SecuredReply reply = Read();
  EXPECT_NE(reply.certificate, "");
  EXPECT_THAT(reply.text, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(reply.text, EndsWith("a page\n"));
}

TEST_F(SecuredPageTest, PlaintextGetsNoPage) {
  EXPECT_THAT(Scrape(address(), "/page"), testing::Not(testing::AnyOf(HasSubstr("HTTP"), HasSubstr("page"))));
  EXPECT_THAT(Read().text, EndsWith("a page\n"));
}

TEST_F(SecuredPageTest, AReplacedCertificateIsShownInTheNextHandshake) {
  const SecuredReply before = Read();
  ASSERT_TRUE(RenewCertificate(folder_, "server", kValidity).ok());
  const SecuredReply after = Read();
  EXPECT_NE(after.certificate, "");
  EXPECT_NE(after.certificate, before.certificate);
  EXPECT_THAT(after.text, EndsWith("a page\n"));
}

TEST_F(SecuredPageTest, HandshakesFailOnlyWhileTheKeyIsMissing) {
  std::filesystem::rename(folder_ + "/server.key", folder_ + "/other.key");
  EXPECT_EQ(Read().certificate, "");
  std::filesystem::rename(folder_ + "/other.key", folder_ + "/server.key");
  EXPECT_THAT(Read().text, EndsWith("a page\n"));
}

TEST_F(SecuredPageTest, ClientsWithoutAHandshakeDelayNobody) {
  std::list<HttpPeer> silent;
  for (int i = 0; i < 300; ++i) silent.emplace_back(port());
  EXPECT_THAT(Read().text, EndsWith("a page\n"));
}

// Two authorities of clients, "old" and "new", that have one name. The server trusts the old one at first.
class ClientAuthorityTest : public SecuredPageTest {
 protected:
  ClientAuthorityTest() {
    for (const char* authority : {"old", "new"}) {
      EXPECT_TRUE(InitAuthority(folder_ + "/" + authority, kValidity).ok());
      EXPECT_TRUE(IssueCertificate(folder_ + "/" + authority, "client", {}, kValidity).ok());
    }
    Trust({"old"});
    Serve(files_);
  }

  // Replaces the file of the authorities.
  void Trust(const std::vector<std::string>& authorities, const std::string& first_lines = "") const {
    std::ofstream file(folder_ + "/next.crt");
    file << first_lines;
    for (const std::string& authority : authorities) {
      file << std::ifstream(folder_ + "/" + authority + "/ca.crt").rdbuf();
    }
    file.close();
    std::filesystem::rename(folder_ + "/next.crt", files_.authorities);
  }

  // Returns the reply to a client with a certificate of this authority; "" if the client is refused.
  std::string ReadAs(const std::string& authority, int connection) const {
    return ScrapeByTls(connection, folder_ + "/ca.crt", "/page", folder_ + "/" + authority + "/client").text;
  }
  std::string ReadAs(const std::string& authority) const { return ReadAs(authority, Dial(address())); }

  const TlsFiles files_{folder_ + "/server.crt", folder_ + "/server.key", folder_ + "/clients.crt"};
};

TEST_F(ClientAuthorityTest, AReplacedAuthorityDecidesFromTheNextConnectionOn) {
  EXPECT_THAT(ReadAs("old"), EndsWith("a page\n"));
  EXPECT_EQ(ReadAs("new"), "");
  EXPECT_EQ(Read().text, "") << "a client without a certificate";
  Trust({"old", "new"});
  EXPECT_THAT(ReadAs("old"), EndsWith("a page\n"));
  EXPECT_THAT(ReadAs("new"), EndsWith("a page\n"));
  Trust({"new"});
  EXPECT_EQ(ReadAs("old"), "");
  EXPECT_THAT(ReadAs("new"), EndsWith("a page\n"));
}

// The handshake of a connection may come after others have replaced the authorities that it began with.
TEST_F(ClientAuthorityTest, AConnectionOutlivesTheAuthorityThatLetItIn) {
  const int connection = Dial(address());
  EXPECT_THAT(ReadAs("old"), EndsWith("a page\n")) << "a later connection, so the server has accepted the first one";
  Trust({"new"});
  EXPECT_THAT(ReadAs("new"), EndsWith("a page\n"));
  EXPECT_EQ(ReadAs("old"), "");
  EXPECT_THAT(ReadAs("old", connection), EndsWith("a page\n"));
}

TEST_F(ClientAuthorityTest, TheFormerAuthorityStaysInUseWhileTheFileIsWrong) {
  Trust({});
  EXPECT_THAT(ReadAs("old"), EndsWith("a page\n"));
  EXPECT_EQ(ReadAs("new"), "");
  std::filesystem::remove(files_.authorities);
  EXPECT_THAT(ReadAs("old"), EndsWith("a page\n"));
  Trust({"new"});
  EXPECT_THAT(ReadAs("new"), EndsWith("a page\n"));
}

TEST_F(ClientAuthorityTest, OnlyTheFirstMebibytesOfTheFileAreRead) {
  Trust({"new"}, std::string(kMaxTlsFileBytes, '\n'));
  EXPECT_EQ(ReadAs("new"), "");
  EXPECT_THAT(ReadAs("old"), EndsWith("a page\n"));
}

TEST_F(ClientAuthorityTest, AFileWithoutAnAuthorityEndsTheStart) {
  Trust({});
  const absl::Status started = PageServer::Start({"127.0.0.1:0", files_}, {}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(started)) << started;
  EXPECT_THAT(std::string(started.message()), HasSubstr(files_.authorities));
}

}  // namespace
}  // namespace chainfleet

// Bounds of the HTTP port, with time that the tests move and requests that no handler understands.
#include "server/http/http_server.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/process_limits.h"
#include "server/http/error_reply.h"
#include "server/http/http_limits.h"
#include "tests/server/http/http_peer.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"

namespace chainfleet {
namespace {

using testing::HasSubstr;

// The requests that the test's handler has received. Thread-safe.
struct Asked {
  Mutex mutex;
  CondVar changed;
  std::vector<WebRequest> requests CHAINFLEET_GUARDED_BY(mutex);
  std::vector<std::function<void(WebReply)>> waiting CHAINFLEET_GUARDED_BY(mutex);  // callers of /wait
  int cancelled CHAINFLEET_GUARDED_BY(mutex) = 0;
};

// /refused takes no body, /wait is answered by its cancellation; all other paths echo the body.
class Echo final : public WebApplication {
 public:
  explicit Echo(Asked* asked) : asked_(asked) {}

  Admission Admit(const WebHead& head) override { return {.takes_body = head.path != "/refused"}; }

  std::function<void()> Answer(WebRequest request, std::function<void(WebReply)> done) override {
    const WebHead head = request.head;
    WebReply reply{.body = request.body};
    {
      MutexLock lock(&asked_->mutex);
      asked_->requests.push_back(std::move(request));
      if (head.path == "/wait") asked_->waiting.push_back(done);
      asked_->changed.SignalAll();
    }
    if (head.path != "/wait") done(std::move(reply));
    return [this] {
      std::vector<std::function<void(WebReply)>> waiting;
      {
        MutexLock lock(&asked_->mutex);
        ++asked_->cancelled;
        waiting.swap(asked_->waiting);
        asked_->changed.SignalAll();
      }
      for (const auto& answer : waiting) answer({.code = 499});
    };
  }

 private:
  Asked* const asked_;
};

class HttpServerTest : public testing::Test {
 protected:
  // Lets the server look at its requests until `holds`.
  template <typename Condition>
  bool LookUntil(Condition holds) {
    for (int look = 0; look < 20'000; ++look) {
      executor_.RunFor(limits::kHttpWatch);
      MutexLock lock(&asked_.mutex);
      if (holds()) return true;
      asked_.changed.WaitWithTimeout(&asked_.mutex, absl::Milliseconds(1));
    }
    return false;
  }
  void WaitForRequest() {
    MutexLock lock(&asked_.mutex);
    while (asked_.requests.empty()) {
      ASSERT_FALSE(asked_.changed.WaitWithTimeout(&asked_.mutex, absl::Seconds(20))) << "no request";
    }
  }
  int port() const { return server_->port(); }

  FakeClock clock_;
  ManualExecutor executor_{&clock_};
  Asked asked_;
  const FairBudget bytes_{limits::kHttpBytes};
  std::unique_ptr<HttpServer> server_ =
      HttpServer::Start({"127.0.0.1:0"}, std::make_unique<Echo>(&asked_), bytes_, &clock_, &executor_).value();
};

TEST_F(HttpServerTest, AConnectionServesOneRequestAfterAnother) {
  HttpPeer peer(port());
  for (const char* body : {"one", "", "three"}) EXPECT_EQ(peer.Send(Post("/", body)).Read().body, body);
}

TEST_F(HttpServerTest, TheHandlerGetsPathQueryAndPeer) {
  HttpPeer peer(port());
  EXPECT_EQ(peer.Send(Get("/a%2Fb?x=%41&y", "X-Request-Id: seven\r\n")).Read().code, 200);
  MutexLock lock(&asked_.mutex);
  const WebHead& head = asked_.requests.at(0).head;
  EXPECT_EQ(head.path, "/a%2Fb");
  EXPECT_THAT(head.query, testing::ElementsAre(testing::Pair("x", "A"), testing::Pair("y", "")));
  EXPECT_EQ(head.Header("x-request-id"), "seven");
  EXPECT_THAT(head.peer, testing::StartsWith("ipv4:127.0.0.1:"));
}

TEST_F(HttpServerTest, ATrustedProxyNamesTheClientOfEachRequest) {
  server_ = HttpServer::Start({"127.0.0.1:0"}, std::make_unique<Echo>(&asked_), bytes_, &clock_, &executor_,
                              TrustedProxies::Parse({"127.0.0.1/32"}).value())
                .value();
  HttpPeer proxy(port());
  const std::string two_lines = "X-Forwarded-For: 10.1.2.4, 10.1.2.3\r\nX-Forwarded-For: 127.0.0.1\r\n";
  EXPECT_EQ(proxy.Send(Get("/", two_lines)).Read().code, 200);
  EXPECT_EQ(proxy.Send(Get("/", "X-Forwarded-For: 2001:db8::1\r\n")).Read().code, 200);
  EXPECT_EQ(proxy.Send(Get("/")).Read().code, 200);
  MutexLock lock(&asked_.mutex);
  EXPECT_EQ(asked_.requests.at(0).head.peer, "ipv4:10.1.2.3");
  EXPECT_EQ(asked_.requests.at(0).held->holder(), "ipv4:10.1.2.3") << "its bytes count as this client's";
  EXPECT_EQ(asked_.requests.at(1).head.peer, "ipv6:%5B2001:db8::1%5D");
  EXPECT_THAT(asked_.requests.at(2).head.peer, testing::StartsWith("ipv4:127.0.0.1:"));
}

TEST_F(HttpServerTest, NobodyElseNamesTheClient) {
  EXPECT_EQ(HttpPeer(port()).Send(Get("/", "X-Forwarded-For: 10.1.2.3\r\n")).Read().code, 200);
  MutexLock lock(&asked_.mutex);
  EXPECT_THAT(asked_.requests.at(0).head.peer, testing::StartsWith("ipv4:127.0.0.1:"));
  EXPECT_EQ(asked_.requests.at(0).held->holder(), "ipv4:127.0.0.1");
}

TEST_F(HttpServerTest, LargeBodiesAreRefusedAndTheirClientsReadWhy) {
  EXPECT_EQ(HttpPeer(port()).Send(Post("/", std::string(limits::kHttpBodyBytes, 'x'))).Read().code, 200);
  HttpPeer peer(port());
  const PeerReply reply = peer.Send(Post("/", std::string(limits::kHttpBodyBytes + 1, 'x'))).Read();
  EXPECT_EQ(reply.code, 413);
  EXPECT_THAT(reply.body, HasSubstr("16 MiB"));
  EXPECT_EQ(HttpPeer(port()).Send(Get("/", "Content-Length: 99999999999\r\n", "POST")).Read().code, 413);
  EXPECT_EQ(HttpPeer(port()).Send(Get("/", "Content-Length: 99999999999999999999\r\n", "POST")).Read().code / 100, 4);
  MutexLock lock(&asked_.mutex);
  EXPECT_EQ(asked_.requests.size(), 1u);
}

TEST_F(HttpServerTest, ChunkedBodiesAreBoundedToo) {
  const std::string head = Get("/", "Transfer-Encoding: chunked\r\n", "POST"), mib(limits::kMiB, 'x');
  EXPECT_EQ(HttpPeer(port()).Send(head + "3\r\nabc\r\n0\r\n\r\n").Read().body, "abc");
  HttpPeer peer(port());
  peer.Send(head);
  for (int i = 0; i < 17; ++i) peer.Send("100000\r\n" + mib + "\r\n");
  EXPECT_EQ(peer.Send("0\r\n\r\n").Read().code, 413);
}

TEST_F(HttpServerTest, LengthsThatContradictEachOtherAreRefused) {
  HttpPeer peer(port());
  EXPECT_EQ(peer.Send(Get("/", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "POST") + "abc").Read().code,
            400);
  EXPECT_EQ(HttpPeer(port()).Send(Get("/", "Content-Length: -3\r\n", "POST") + "abc").Read().code, 400);
  EXPECT_EQ(HttpPeer(port()).Send(Get("/", "Content-Length: abc\r\n", "POST") + "abc").Read().code, 400);
  MutexLock lock(&asked_.mutex);
  EXPECT_TRUE(asked_.requests.empty());
}

TEST_F(HttpServerTest, BodiesOfGzipAndDeflateAreTakenAsTheyAre) {
  const auto ask = [&](const std::string& encoding) {
    return HttpPeer(port()).Send(Post("/", "abc", absl::StrCat("Content-Encoding: ", encoding, "\r\n"))).Read();
  };
  for (const char* taken : {"gzip", "DEFLATE", "identity"}) EXPECT_EQ(ask(taken).body, "abc") << taken;
  for (const char* refused : {"br", "gzip, gzip"}) EXPECT_EQ(ask(refused).code, 415) << refused;
}

TEST_F(HttpServerTest, ABodyThatIsNotTakenIsNotKept) {
  EXPECT_EQ(HttpPeer(port()).Send(Post("/refused", "abc")).Read().body, "");
  // Neither is it asked for.
  EXPECT_EQ(HttpPeer(port()).Send(Get("/refused", "Content-Length: 3\r\nExpect: 100-continue\r\n", "POST")).Read().code,
            200);
  HttpPeer asks(port());
  EXPECT_EQ(asks.Send(Get("/", "Content-Length: 3\r\nExpect: 100-continue\r\n", "POST")).Read().code, 100);
  EXPECT_EQ(asks.Send("abc").Read().body, "abc");
}

TEST_F(HttpServerTest, HeadersAreBounded) {
  const std::string large = "X: " + std::string(limits::kHttpHeaderBytes, 'x') + "\r\n";
  EXPECT_EQ(HttpPeer(port()).Send(Get("/", large)).Read().code / 100, 4);
  EXPECT_EQ(HttpPeer(port()).Send("no HTTP at all\r\n\r\n").Read().code / 100 % 4, 0) << "4xx, or closed";
  EXPECT_EQ(HttpPeer(port()).Send(Get("/")).Read().code, 200);
}

TEST_F(HttpServerTest, ConnectionsOfOneAddressAreBounded) {
  RaiseDescriptorLimit();
  std::vector<std::unique_ptr<HttpPeer>> peers;
  for (unsigned i = 0; i < limits::kHttpConnectionsOfAHost; ++i) {
    peers.push_back(std::make_unique<HttpPeer>(port()));
    ASSERT_EQ(peers.back()->Send(Get("/")).Read().code, 200) << i;
  }
  EXPECT_EQ(HttpPeer(port()).Send(Get("/")).Read().code, 0) << "one more";
  EXPECT_EQ(peers.front()->Send(Get("/")).Read().code, 200);
  peers.pop_back();
  int code = 0;  // the server sees the end of a connection in its own time
  for (int attempt = 0; code == 0 && attempt < 1000; ++attempt) code = HttpPeer(port()).Send(Get("/")).Read().code;
  EXPECT_EQ(code, 200);
}

TEST_F(HttpServerTest, ABodyThatComesTooSlowlyEndsItsConnection) {
  HttpPeer slow(port());
  slow.Send(Get("/", "Content-Length: 100\r\nExpect: 100-continue\r\n", "POST"));
  ASSERT_EQ(slow.Read().code, 100) << "the server has the request";
  executor_.RunFor(limits::kHttpReceive);
  slow.Send("x");
  executor_.RunFor(2 * limits::kHttpWatch);
  EXPECT_EQ(slow.Read().head, "");
}

TEST_F(HttpServerTest, TheCallOfAClientThatHasGoneIsCancelled) {
  {
    HttpPeer peer(port());
    peer.Send(Get("/wait"));
    WaitForRequest();
    executor_.RunFor(3 * limits::kHttpReceive);  // answers may take their time
    MutexLock lock(&asked_.mutex);
    EXPECT_EQ(asked_.cancelled, 0);
  }
  EXPECT_TRUE(LookUntil([this] { return asked_.cancelled == 1; }));
}

TEST_F(HttpServerTest, TheServerEndsWhileRequestsWait) {
  HttpPeer peer(port());
  peer.Send(Get("/wait"));
  WaitForRequest();
  server_.reset();
  MutexLock lock(&asked_.mutex);
  EXPECT_EQ(asked_.cancelled, 1);
}

TEST_F(HttpServerTest, TheNextServerTakesThePortAtOnce) {
  const std::string address = absl::StrCat("127.0.0.1:", port());
  HttpPeer peer(port());
  EXPECT_EQ(peer.Send(Get("/")).Read().code, 200);
  server_.reset();
  const auto next = HttpServer::Start({address}, std::make_unique<Echo>(&asked_), bytes_, &clock_, &executor_);
  EXPECT_TRUE(next.ok()) << next.status();
}

TEST(ErrorReply, HasTheSecondsUntilTheNextAttemptWhereTheyAreKnown) {
  const auto retry_after = [](const absl::Status& status) {
    for (const auto& [name, value] : ErrorReply(status).headers) {
      if (name == "Retry-After") return value;
    }
    return std::string("none");
  };
  const absl::Status refused = WithReason(absl::ResourceExhaustedError("full"), "TENANT_LIMIT");
  EXPECT_EQ(retry_after(refused), "none");
  EXPECT_EQ(retry_after(WithRetryAfter(refused, absl::Milliseconds(2100))), "3");
  EXPECT_EQ(retry_after(WithRetryAfter(refused, absl::Milliseconds(1))), "1");
  EXPECT_EQ(retry_after(NoRoom()), "1");
  EXPECT_EQ(retry_after(absl::UnavailableError("the server is ending")), "1");
}

TEST(ErrorReply, NamesTheBoundThatRefused) {
  EXPECT_THAT(ErrorReply(NoRoom()).body, HasSubstr(R"("bound":"http_bytes")"));
  EXPECT_THAT(ErrorReply(absl::ResourceExhaustedError("full")).body, testing::Not(HasSubstr("bound")));
}

TEST_F(HttpServerTest, ATakenPortIsRefused) {
  const auto second = HttpServer::Start({absl::StrCat("127.0.0.1:", port())}, std::make_unique<Echo>(&asked_), bytes_,
                                        &clock_, &executor_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("--http-listen"));
}

}  // namespace
}  // namespace chainfleet

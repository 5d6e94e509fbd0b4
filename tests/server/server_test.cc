// Needs the server of with_postgres.py.
#include "server/server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

#include "core/tls/authority.h"
#include "tests/support/recording_store.h"
#include "tests/support/scrape.h"
#include "tests/support/store_harness.h"

namespace chainfleet {
namespace {

bool Listens(int port) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in target{};
  target.sin_family = AF_INET;
  target.sin_port = htons(static_cast<uint16_t>(port));
  target.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int connected = ::connect(descriptor, reinterpret_cast<const sockaddr*>(&target), sizeof target);
  ::close(descriptor);
  return connected == 0;
}

// An address of this host on which nobody listens.
std::string FreeAddress() {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof own;
  EXPECT_EQ(::bind(descriptor, reinterpret_cast<const sockaddr*>(&own), size), 0);
  EXPECT_EQ(::getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &size), 0);
  ::close(descriptor);
  return "127.0.0.1:" + std::to_string(ntohs(own.sin_port));
}

class ServerTest : public testing::Test {
 protected:
  ~ServerTest() override { std::filesystem::remove_all(folder_); }
  bool IsLed() {
    const auto connection = PostgresConnection::Open(harness_.uri(), "test").value();
    SqlStatement led = connection->Prepare("SELECT count(*) FROM leader WHERE renewed_at > '-infinity'").value();
    return led.Step().value() && led.Int(0) == 1;
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("server-" + std::to_string(::getpid()));
  PostgresHarness harness_{PostgresServer()};
};

TEST_F(ServerTest, LeadsUntilItsLastWriteIsDone) {
  auto leader = PostgresLeader::Connect({harness_.uri(), "a:7400", "store"}).value();
  ASSERT_NE(leader->TakeOver()->store, nullptr);
  auto store = std::make_unique<RecordingStore>();
  std::atomic<bool> armed = false, writing = false, led = false;
  std::atomic<int> port = 0;
  // A write that lasts beyond the end of what the server ends first, and then for as long as many questions take.
  store->BeforeEachCall([&] {
    if (!armed || writing.exchange(true)) return;
    while (Listens(port)) continue;
    bool always = true;
    for (int i = 0; i < 50; ++i) always = always && IsLed();
    led = always;
  });
  auto server = Server::Start(
      {.data_directory = folder_.string(), .listen = "127.0.0.1:0", .metrics_listen = "off", .http_listen = "off"},
      Lead{std::move(leader), std::move(store)}, [](const absl::Status&) {});
  ASSERT_TRUE(server.ok()) << server.status();
  port = (*server)->port();
  armed = true;
  (*server)->coordinator().catalog().BeginUpload({"an-object"}, [](const absl::StatusOr<std::string>&) {});
  while (!writing) continue;
  server->reset();
  EXPECT_TRUE(led);
  EXPECT_FALSE(IsLed());
}

TEST_F(ServerTest, TheFolderOfAnotherHostIsRefused) {
  std::function<void()> at_pause;  // null: a standby does not wait
  const auto lead = [&](const char* folder, bool moved = false) {
    return WaitToLead({.data_directory = (folder_ / folder).string(),
                       .state = harness_.uri(),
                       .listen = "127.0.0.1:0",
                       .metrics_listen = "off",
                       .http_listen = "off",
                       .objects_moved = moved},
                      [&](absl::Duration) {
                        const bool waits = at_pause != nullptr;
                        if (waits) std::exchange(at_pause, nullptr)();
                        return waits;
                      });
  };
  auto first = lead("a");
  ASSERT_TRUE(first.ok() && *first) << first.status();
  const std::vector<StateChange> upload{change::BeginUpload{"upload", {"an-object"}}};
  ASSERT_TRUE((*first)->store->Apply(upload, absl::UnixEpoch()).ok());
  const absl::Status refused = lead("b").status();
  EXPECT_EQ(ReasonOf(refused), "OTHER_STORE");
  EXPECT_THAT(std::string(refused.message()), testing::AllOf(testing::HasSubstr((folder_ / "a" / "blobs").string()),
                                                             testing::HasSubstr((folder_ / "b" / "blobs").string())));
  EXPECT_TRUE(lead("a").ok()) << "a standby on the same folder";
  EXPECT_THAT(std::string(lead("b", true).status().message()), testing::HasSubstr("stop all others first"));
  absl::StatusOr<std::optional<Lead>> moved;
  at_pause = [&] {
    ASSERT_TRUE((*first)->leader->Resign().ok());
    moved = lead("b", true);
    ASSERT_TRUE(moved.ok() && *moved) << moved.status();
  };
  EXPECT_EQ(ReasonOf(lead("a").status()), "OTHER_STORE") << "a standby, once the objects were moved away";
  EXPECT_EQ(ReasonOf(lead("a").status()), "OTHER_STORE");
}

// Its ports have the certificate, too, and clients meet it when the standby takes over.
TEST_F(ServerTest, AStandbyShowsWhenItsCertificateExpires) {
  const std::string pki = (folder_ / "pki").string();
  std::filesystem::create_directories(pki);
  const Validity validity{absl::FromUnixSeconds(1'700'000'000), absl::FromUnixSeconds(2'400'000'000)};
  ASSERT_TRUE(InitAuthority(pki, validity).ok());
  ASSERT_TRUE(IssueCertificate(pki, "server", {"127.0.0.1"}, validity).ok());
  ServerOptions options{.data_directory = (folder_ / "a").string(),
                        .state = harness_.uri(),
                        .listen = "127.0.0.1:0",
                        .metrics_listen = "off",
                        .http_listen = "off"};
  const auto leader = WaitToLead(options, [](absl::Duration) { return false; });
  ASSERT_TRUE(leader.ok() && *leader) << leader.status();
  std::string page;
  const auto scrape_once = [&](absl::Duration) {
    page = Scrape(options.metrics_listen);
    return false;
  };
  options.metrics_listen = FreeAddress();
  ASSERT_TRUE(WaitToLead(options, scrape_once).ok());
  EXPECT_THAT(page, testing::AllOf(testing::HasSubstr("\nchainfleet_leader 0\n"),
                                   testing::Not(testing::HasSubstr("\nchainfleet_tls_certificate_expiry"))));
  options.tls = {pki + "/server.crt", pki + "/server.key", ""};
  options.metrics_listen = FreeAddress();
  ASSERT_TRUE(WaitToLead(options, scrape_once).ok());
  EXPECT_THAT(page, testing::HasSubstr("\nchainfleet_tls_certificate_expiry_timestamp_seconds{certificate=\"server\"} "
                                       "2400000000\n"));
}

}  // namespace
}  // namespace chainfleet

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

#include "tests/support/recording_store.h"
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

}  // namespace
}  // namespace chainfleet

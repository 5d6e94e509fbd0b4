#include "core/metrics/metrics.h"

#include <algorithm>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "core/base/mutex.h"
#include "core/metrics/scrape_targets.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/scrape.h"

namespace chainfleet {
namespace {

using testing::HasSubstr;

// Returns the value of a series as text; "" if the series does not exist.
std::string ValueOf(const std::string& scrape, const std::string& series) {
  const size_t begin = scrape.find("\n" + series + " ");
  if (begin == std::string::npos) return "";
  const size_t value = begin + series.size() + 2;
  return scrape.substr(value, scrape.find_first_of("\r\n", value) - value);
}

class MetricsTest : public testing::Test {
 protected:
  std::string ServedScrape() {
    const auto address = registry_.Serve("127.0.0.1:0");
    EXPECT_TRUE(address.ok()) << address.status();
    return Scrape(*address);
  }
  MetricsRegistry registry_{"server"};
};

TEST_F(MetricsTest, ServesWhatWasCountedSetAndObserved) {
  registry_.AddCounter("chainfleet_things_total", "Things.", {{"kind", "a"}}).Add(3);
  registry_.AddGauge("chainfleet_level", "Level.").Set(-1.5);
  Histogram& histogram = registry_.AddHistogram("chainfleet_wait_seconds", "Wait.", {0.1, 1});
  for (const double seconds : {0.05, 0.5, 5.0}) histogram.Observe(seconds);
  const std::string scrape = ServedScrape();
  EXPECT_THAT(scrape, testing::StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(scrape, HasSubstr("# HELP chainfleet_things_total Things."));
  EXPECT_EQ(ValueOf(scrape, "chainfleet_things_total{kind=\"a\"}"), "3");
  EXPECT_EQ(ValueOf(scrape, "chainfleet_level"), "-1.5");
  EXPECT_EQ(ValueOf(scrape, "chainfleet_wait_seconds_bucket{le=\"0.1\"}"), "1");
  EXPECT_EQ(ValueOf(scrape, "chainfleet_wait_seconds_bucket{le=\"1\"}"), "2");
  EXPECT_EQ(ValueOf(scrape, "chainfleet_wait_seconds_count"), "3");
}

TEST_F(MetricsTest, TheSameNameAndLabelsAreOneSeries) {
  Counter& first = registry_.AddCounter("chainfleet_things_total", "Things.", {{"kind", "a"}});
  Counter& again = registry_.AddCounter("chainfleet_things_total", "Things.", {{"kind", "a"}});
  EXPECT_EQ(&first, &again);
  EXPECT_NE(&first, &registry_.AddCounter("chainfleet_things_total", "Things.", {{"kind", "b"}}));
}

TEST_F(MetricsTest, SeriesMadeAtAScrapeAreGoneWhenLeftOut) {
  int chains = 2;
  registry_.AtScrape([&] {
    GaugeFamily family{"chainfleet_chain_things", "Things of a chain.", {}};
    for (int i = 0; i < chains; ++i) family.samples.push_back({{{"chain", std::to_string(i)}}, 10.0 + i});
    return std::vector<GaugeFamily>{family};
  });
  const auto address = registry_.Serve("127.0.0.1:0");
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_EQ(ValueOf(Scrape(*address), "chainfleet_chain_things{chain=\"1\"}"), "11");
  chains = 0;
  EXPECT_THAT(Scrape(*address), testing::Not(HasSubstr("chainfleet_chain_things")));
}

TEST_F(MetricsTest, RefreshesGaugesAtEveryScrape) {
  Gauge& gauge = registry_.AddGauge("chainfleet_scrapes", "Scrapes so far.");
  double scrapes = 0;
  registry_.BeforeScrape([&] { gauge.Set(++scrapes); });
  const auto address = registry_.Serve("127.0.0.1:0");
  ASSERT_TRUE(address.ok()) << address.status();
  Scrape(*address);
  EXPECT_EQ(ValueOf(Scrape(*address), "chainfleet_scrapes"), "2");
}

TEST_F(MetricsTest, ReportsBuildAndProcessMetrics) {
  const std::string scrape = ServedScrape();
  EXPECT_THAT(scrape, HasSubstr("chainfleet_build_info{program=\"server\",version=\""));
  EXPECT_GT(std::stod(ValueOf(scrape, "chainfleet_process_cpu_seconds_total")), 0);
  EXPECT_GT(std::stod(ValueOf(scrape, "chainfleet_process_resident_memory_bytes")), 1e6);
  EXPECT_GT(std::stod(ValueOf(scrape, "chainfleet_process_open_fds")), 3);
}

TEST_F(MetricsTest, ServesOtherPagesBesideTheMetrics) {
  registry_.AddPage("/sd", {"application/json", [] {
                              return HttpSdJson({{"h1:7410", {{"worker", "w1"}}}, {"h2:7410", {{"worker", "w2"}}}});
                            }});
  const auto address = registry_.Serve("127.0.0.1:0");
  ASSERT_TRUE(address.ok()) << address.status();
  const std::string page = Scrape(*address, "/sd");
  EXPECT_THAT(page, HasSubstr("application/json"));
  EXPECT_THAT(page, HasSubstr(R"([{"labels":{"worker":"w1"},"targets":["h1:7410"]},)"));
  EXPECT_THAT(Scrape(*address, "/sd/more"), testing::StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Scrape(*address), HasSubstr("chainfleet_build_info"));
}

TEST_F(MetricsTest, PagesWithATokenAnswerOnlyRequestsThatSendIt) {
  registry_.AddPage("/sd", {"application/json", [] { return std::string("[targets]"); }});
  const auto address = registry_.Serve("127.0.0.1:0", "the-token");
  ASSERT_TRUE(address.ok()) << address.status();
  for (const std::string path : {"/metrics", "/sd"}) {
    for (const char* sent : {"", "Authorization: Bearer \r\n", "Authorization: Bearer the-tokem\r\n",
                             "Authorization: Bearer the-toke\r\n", "Authorization: Bearer the-token2\r\n",
                             "Authorization: Basic the-token\r\n", "Authorization: the-token\r\n"}) {
      const std::string refused = Scrape(*address, path, sent);
      EXPECT_THAT(refused, testing::StartsWith("HTTP/1.1 401")) << sent;
      EXPECT_THAT(refused, HasSubstr("\r\nWWW-Authenticate: Bearer\r\n"));
      EXPECT_THAT(refused, HasSubstr("CHAINFLEET_METRICS_TOKEN"));
      EXPECT_THAT(refused, testing::Not(testing::AnyOf(HasSubstr("chainfleet_"), HasSubstr("targets"))));
    }
    EXPECT_THAT(Scrape(*address, path, "Authorization: Bearer the-token\r\n"), testing::StartsWith("HTTP/1.1 200"));
  }
}

TEST_F(MetricsTest, ATokenThatChangesIsRefusedAtOnce) {
  std::string token = "the-token";
  const auto read = [&token]() -> absl::StatusOr<std::string> { return token; };
  const auto address = registry_.Serve("127.0.0.1:0", *Reread<std::string>::Open("token", read));
  const auto with = [&](const std::string& sent) {
    return Scrape(*address, "/metrics", "Authorization: Bearer " + sent + "\r\n");
  };
  EXPECT_THAT(with("the-token"), testing::StartsWith("HTTP/1.1 200"));
  token = "another-token";
  EXPECT_THAT(with("the-token"), testing::StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(with("another-token"), testing::StartsWith("HTTP/1.1 200"));
}

TEST_F(MetricsTest, RequestsWithoutTheTokenAreReported) {
  std::vector<std::string> peers, paths;
  const auto address = registry_.Serve("127.0.0.1:0", "the-token", {}, [&](const std::string& peer, const auto& path) {
    peers.push_back(peer);
    paths.push_back(path);
  });
  ASSERT_TRUE(address.ok()) << address.status();
  for (const char* path : {"/metrics", "/healthz", "/nowhere"}) Scrape(*address, path);
  Scrape(*address, "/metrics", "Authorization: Bearer the-token\r\n");
  registry_.StopServing();
  EXPECT_THAT(paths, testing::ElementsAre("/metrics"));
  EXPECT_THAT(peers, testing::ElementsAre(testing::StartsWith("ipv4:127.0.0.1:")));
}

TEST_F(MetricsTest, TheHealthPageNeedsNoToken) {
  const auto address = registry_.Serve("127.0.0.1:0", "the-token");
  ASSERT_TRUE(address.ok()) << address.status();
  const std::string health = Scrape(*address, "/healthz");
  EXPECT_THAT(health, testing::StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(health, testing::EndsWith("\r\n\r\nok\n"));
}

// A client that connects and sends nothing.
class SilentClient {
 public:
  explicit SilentClient(const std::string& address) : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in target{};
    target.sin_family = AF_INET;
    target.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    target.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(descriptor_, reinterpret_cast<const sockaddr*>(&target), sizeof target), 0);
  }
  ~SilentClient() { ::close(descriptor_); }
  SilentClient(const SilentClient&) = delete;

 private:
  const int descriptor_;
};

// The scrape times out after 10 s, and the server disconnects such a client after 2 s.
TEST_F(MetricsTest, SilentClientsDelayNoScrapeForLong) {
  const auto address = registry_.Serve("127.0.0.1:0");
  ASSERT_TRUE(address.ok()) << address.status();
  std::list<SilentClient> silent;
  for (int more = 0; more < 6; more += 2) {
    silent.emplace_back(*address);
    silent.emplace_back(*address);
    EXPECT_THAT(Scrape(*address), HasSubstr("chainfleet_build_info")) << silent.size();
  }
}

TEST_F(MetricsTest, PagesAreMadeOneAtATime) {
  Mutex mutex;
  CondVar changed;
  int running = 0, most = 0;
  registry_.BeforeScrape([&] {
    MutexLock lock(&mutex);
    most = std::max(most, ++running);
    changed.SignalAll();
    // Gives another page the time to start, if it may.
    while (running < 2 && !changed.WaitWithTimeout(&mutex, absl::Milliseconds(200))) {
    }
    --running;
  });
  const auto address = registry_.Serve("127.0.0.1:0");
  ASSERT_TRUE(address.ok()) << address.status();
  std::list<std::jthread> clients;
  for (int i = 0; i < 2; ++i) clients.emplace_back([&] { EXPECT_NE(Scrape(*address), ""); });
  clients.clear();
  EXPECT_EQ(most, 1);
}

TEST_F(MetricsTest, RefusesATakenPortByItsAddress) {
  const auto taken = registry_.Serve("127.0.0.1:0");
  ASSERT_TRUE(taken.ok()) << taken.status();
  MetricsRegistry second("server");
  const auto refused = second.Serve(*taken);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReasonOf(refused.status()), "PORT_TAKEN");
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr(*taken));
}

TEST_F(MetricsTest, RefusesAddressesThatAreNone) {
  for (const char* address : {"", "localhost", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:99999"}) {
    EXPECT_FALSE(registry_.Serve(address).ok()) << address;
  }
}

}  // namespace
}  // namespace chainfleet

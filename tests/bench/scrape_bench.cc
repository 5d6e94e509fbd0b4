// What a scrape of the server costs at 20,000 running chains of 20 jobs on 1,000 workers: the dispatcher's figures, as
// a sum made under its lock or as copies of all jobs, and the whole page over HTTP with its size.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/limits.h"
#include "core/base/thread_pool.h"
#include "core/store/state_store/memory_state_store.h"
#include "server/control/dispatcher.h"
#include "server/telemetry/fleet_gauges.h"
#include "tests/support/scrape.h"

namespace chainfleet {
namespace {

constexpr int kJobs = 20, kChainsOfJob = 1000, kWorkers = 1000;
constexpr int kChainsOfWorker = kJobs * kChainsOfJob / kWorkers;

std::string WorkerName(int worker) { return absl::StrCat("gpu-node-", worker); }
std::string JobName(int job) { return absl::StrCat("fashion-emcmc-", job, "-aaaaaa"); }

StoredState RunningJobs() {
  StoredState state;
  for (int j = 0; j < kJobs; ++j) {
    auto plan = std::make_shared<JobPlan>();
    plan->job = JobName(j);
    plan->spec.model.kind = GaussianPotential{1000, 1};
    plan->spec.num_steps = 1'000'000;
    plan->spec.chains = kChainsOfJob;
    StoredJob job{.row = {.sequence = j + 1, .id = plan->job, .plan = plan}};
    for (int32_t c = 0; c < kChainsOfJob; ++c) {
      const int worker = (j * kChainsOfJob + c) / kChainsOfWorker;
      job.chains.push_back({.id = {plan->job, c},
                            .state = ChainState::kLeased,
                            .lease_epoch = 1,
                            .worker = WorkerName(worker),
                            .incarnation = "life",
                            .step = 123'000,
                            .num_draws = 1230});
    }
    state.jobs.push_back(std::move(job));
  }
  return state;
}

class Fleet {
 public:
  Fleet() : dispatcher_(&clock_, threads_.get(), &store_, RunningJobs(), Options()) {
    for (int w = 0; w < kWorkers; ++w) dispatcher_.Synchronize(Report(w), [](const auto&) {});
    registry_.AtScrape([this] { return Gauges(); });
    const auto served = registry_.Serve("127.0.0.1:0");
    CHAINFLEET_CHECK(served.ok()) << served.status().ToString();
    address_ = *served;
  }
  ~Fleet() { threads_.reset(); }

  std::vector<GaugeFamily> Gauges() {
    const auto diagnostics = [](const std::string&) {
      return std::vector<Diagnostic>{{0, "energy", 128, 1000, 1.0123456, 12345.678, 2345.678},
                                     {0, "theta.norm", 128, 1000, 1.1123456, 1234.5678, 234.5678}};
    };
    return FleetGauges(dispatcher_.Summary(static_cast<size_t>(kMostSeriesOfAKind)), diagnostics,
                       dispatcher_.Demand().workers, clock_.Wall());
  }
  Dispatcher& dispatcher() { return dispatcher_; }
  const std::string& address() const { return address_; }

 private:
  static DispatcherOptions Options() {
    DispatcherOptions options;
    options.lease_ttl = absl::Hours(1);
    return options;
  }
  static SynchronizeRequest Report(int worker) {
    SynchronizeRequest request;
    request.protocol_version = kProtocolVersion;
    request.worker = WorkerName(worker);
    request.incarnation = "life";
    request.seq = 1;
    request.host = absl::StrCat("gpu-node-", worker, ".cluster.example");
    request.store_incarnation = "store";
    request.devices = {{"cuda:0", int64_t{80} << 30, kChainsOfWorker}};
    for (int i = 0; i < kChainsOfWorker; ++i) {
      const int chain = worker * kChainsOfWorker + i;
      const ChainStats stats{12345.678901 + chain, 1.2345678e-5, 1e-4, 463.21987, 0.98765432 * chain};
      request.chains.push_back({{JobName(chain / kChainsOfJob), chain % kChainsOfJob}, 1, 123'456 + chain, stats});
    }
    return request;
  }

  SystemClock clock_;
  std::unique_ptr<ThreadPool> threads_ = std::make_unique<ThreadPool>(2);
  MemoryStateStore store_{std::make_shared<MemoryDatabase>("store")};
  Dispatcher dispatcher_;
  MetricsRegistry registry_{"server"};
  std::string address_;
};

Fleet& TheFleet() {
  static auto* const fleet = new Fleet;
  return *fleet;
}

void BM_Sums(benchmark::State& state) {
  Fleet& fleet = TheFleet();
  for (auto _ : state) {
    const FleetSummary summary = fleet.dispatcher().Summary(static_cast<size_t>(kMostSeriesOfAKind));
    CHAINFLEET_CHECK(summary.jobs.size() == kJobs && summary.running.size() == 512);
  }
}
BENCHMARK(BM_Sums)->Name("scrape/sums")->UseRealTime()->Unit(benchmark::kMillisecond);

void BM_Copies(benchmark::State& state) {
  Fleet& fleet = TheFleet();
  for (auto _ : state) {
    const auto page = fleet.dispatcher().ListJobs({}, limits::kMaxPageSize, "");
    CHAINFLEET_CHECK(page.ok() && page->items.size() == kJobs);
  }
}
BENCHMARK(BM_Copies)->Name("scrape/copies")->UseRealTime()->Unit(benchmark::kMillisecond);

void BM_Page(benchmark::State& state) {
  Fleet& fleet = TheFleet();
  size_t bytes = 0;
  for (auto _ : state) bytes = Scrape(fleet.address()).size();
  CHAINFLEET_CHECK(bytes > 0);
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(BM_Page)->Name("scrape/page")->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace chainfleet

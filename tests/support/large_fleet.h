// A dispatcher with 20,000 chains that run on 1,000 workers, and the page of metrics about them, in this process.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "server/control/coordinator.h"
#include "server/telemetry/fleet_gauges.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"
#include "tests/support/memory_database.h"
#include "tests/support/scrape.h"

namespace chainfleet {

class LargeFleet {
 public:
  static constexpr int kChains = 20'000, kWorkers = 1000, kChainsOfWorker = kChains / kWorkers;

  // Deals the chains to `jobs` jobs in turn.
  explicit LargeFleet(int jobs)
      : jobs_(jobs), coordinator_(&clock_, &executor_, store_.get(), RunningJobs(), {.lease_ttl = absl::Hours(1)}) {
    for (int w = 0; w < kWorkers; ++w) dispatcher().Synchronize(Report(w), [](const auto&) {});
    executor_.RunUntilIdle();
    registry_.AtScrape([this] { return Gauges(); });
    const auto served = registry_.Serve("127.0.0.1:0");
    CHAINFLEET_CHECK(served.ok()) << served.status().ToString();
    address_ = *served;
  }
  ~LargeFleet() { registry_.StopServing(); }

  std::string Page() const { return Scrape(address_); }
  Dispatcher& dispatcher() { return coordinator_.dispatcher(); }
  MetricsRegistry& registry() { return registry_; }
  FleetSummary Summary() { return dispatcher().Summary(static_cast<size_t>(kMostSeriesOfAKind)); }

 private:
  static std::string WorkerName(int worker) { return absl::StrCat("gpu-node-", worker); }
  ChainId IdOf(int chain) const { return {absl::StrCat("fashion-emcmc-", chain % jobs_, "-aaaaaa"), chain / jobs_}; }

  StoredState RunningJobs() const {
    StoredState state;
    for (int j = 0; j < jobs_; ++j) {
      auto plan = std::make_shared<JobPlan>();
      plan->job = IdOf(j).job;
      plan->spec.model.kind = GaussianPotential{1000, 1};
      plan->spec.num_steps = 1'000'000;
      StoredJob job{.row = {.sequence = j + 1, .id = plan->job, .plan = plan}};
      for (int chain = j; chain < kChains; chain += jobs_) {
        job.chains.push_back({.id = IdOf(chain),
                              .state = ChainState::kLeased,
                              .lease_epoch = 1,
                              .worker = WorkerName(chain / kChainsOfWorker),
                              .incarnation = "life",
                              .step = 123'000,
                              .num_draws = 1230});
      }
      plan->spec.chains = static_cast<int32_t>(job.chains.size());
      state.jobs.push_back(std::move(job));
    }
    return state;
  }

  SynchronizeRequest Report(int worker) const {
    SynchronizeRequest request;
    request.protocol_version = kProtocolVersion;
    request.worker = WorkerName(worker);
    request.incarnation = "life";
    request.seq = 1;
    request.host = absl::StrCat("gpu-node-", worker, ".cluster.example");
    request.store_incarnation = "store";
    request.devices = {{"cuda:0", int64_t{80} << 30, kChainsOfWorker}};
    for (int chain = worker * kChainsOfWorker; chain < (worker + 1) * kChainsOfWorker; ++chain) {
      const ChainStats stats{12345.678901 + chain, 1.2345678e-5, 1e-4, 463.21987, 0.98765432 * chain};
      request.chains.push_back({IdOf(chain), 1, 123'456 + chain, stats});
    }
    return request;
  }

  std::vector<GaugeFamily> Gauges() {
    const auto diagnostics = [](const std::string&) {
      return std::vector<Diagnostic>{{0, "energy", 128, 1000, 1.0123456, 12345.678, 2345.678, 0, 0, 25642.1},
                                     {0, "theta.norm", 128, 1000, 1.1123456, 1234.5678, 234.5678}};
    };
    return FleetGauges(Summary(), diagnostics, dispatcher().Demand().workers);
  }

  const int jobs_;
  FakeClock clock_;
  ManualExecutor executor_{&clock_};
  const std::unique_ptr<StateStore> store_ = MemoryDatabase("store").Open();
  Coordinator coordinator_;
  MetricsRegistry registry_{"server"};
  std::string address_;
};

}  // namespace chainfleet

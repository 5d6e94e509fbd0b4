// chainfleet-load: many workers without compute against one real server. tests/load/load.sh starts the server, too.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/lib/client.h"
#include "core/base/random_bits.h"
#include "core/base/thread_pool.h"
#include "core/base/version.h"
#include "tests/load/load_worker.h"
#include "worker/rpc/coordinator_client.h"

namespace chainfleet {
namespace {

constexpr int kConnections = 16, kThreads = 4, kChainsPerJob = 1000;
constexpr absl::Duration kTick = absl::Seconds(5);
constexpr double kLeastCommits = 0.95;  // share of the expected commits, in the second half
constexpr double kMostBytesOfADraw = 200;

struct Options {
  std::string address = "127.0.0.1:7400";
  int workers = 1000, chains = 20'000;
  double commits_per_second = 2000;
  int64_t draws = 0;
  int seconds = 60;
  int server_pid = 0;
};

struct ServerUse {
  double cpu_seconds = 0, resident_mib = 0;
};

// Reads /proc. All values are 0 if the process is gone.
ServerUse UseOf(int pid) {
  ServerUse use;
  std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
  std::string text;
  std::getline(stat, text);
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  use.cpu_seconds = (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  std::ifstream statm(absl::StrCat("/proc/", pid, "/statm"));
  double pages = 0;
  statm >> pages >> pages;
  use.resident_mib = pages * static_cast<double>(sysconf(_SC_PAGESIZE)) / 0x1p20;
  return use;
}

// Chains so long that no run reaches their end, with draws that fit on the server's disk, which the server checks.
absl::StatusOr<std::string> Submit(Client* client, int chains) {
  v1::CreateJobRequest request;
  request.set_request_id(absl::StrCat("load-", absl::Hex(RandomBits())));
  v1::JobSpec& spec = *request.mutable_spec();
  spec.set_name("load");
  spec.mutable_model()->mutable_potential()->mutable_gaussian()->set_dimension(10);
  spec.mutable_sampler()->mutable_sgld();
  spec.mutable_step_size()->set_constant(0.1);
  spec.set_num_steps(1'000'000);
  spec.mutable_collect()->set_every_steps(100);
  spec.set_chains(chains);
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job job, client->CreateJob(request));
  return job.id();
}

// The middle of the run: later figures exclude the start, when chains are granted.
struct Middle {
  double at_seconds = 0, resident_mib = 0;
  int64_t commits = 0, draws = 0;
};

double SecondHalfRate(const LoadStats::Report& report, const Middle& middle, double seconds) {
  return static_cast<double>(report.commits.count() - middle.commits) / (seconds - middle.at_seconds);
}

// Returns the growth of the server's memory per draw in the second half; 0 without draws.
double BytesOfADraw(const LoadStats::Report& report, const Middle& middle, const ServerUse& after) {
  if (report.draws <= middle.draws) return 0;
  return (after.resident_mib - middle.resident_mib) * 0x1p20 / static_cast<double>(report.draws - middle.draws);
}

void Print(const LoadStats::Report& report, const ServerUse& before, const Middle& middle, const ServerUse& after,
           double seconds) {
  const auto percentiles = [](const Latencies& l) {
    return absl::StrFormat("p50 %.1f ms, p99 %.1f ms, of %d", l.Percentile(0.5), l.Percentile(0.99), l.count());
  };
  const Latencies later = report.commits.After(middle.commits);
  std::cout << absl::StrFormat("%-22s %.0f/s\n", "commits", static_cast<double>(report.commits.count()) / seconds)
            << absl::StrFormat("%-22s %s\n", "commit latency", percentiles(report.commits))
            << absl::StrFormat("%-22s %.0f/s, %s\n", "commits, second half", SecondHalfRate(report, middle, seconds),
                               percentiles(later))
            << absl::StrFormat("%-22s %s\n", "scheduling delay", percentiles(report.scheduling))
            << absl::StrFormat("%-22s %d\n", "draws", report.draws)
            << absl::StrFormat("%-22s %.2f cores, %.2f s for 1,000 commits\n", "server CPU",
                               (after.cpu_seconds - before.cpu_seconds) / seconds,
                               1000 * (after.cpu_seconds - before.cpu_seconds) /
                                   static_cast<double>(std::max<int64_t>(report.commits.count(), 1)))
            << absl::StrFormat("%-22s %.0f MiB, %.0f MiB at the start\n", "server memory", after.resident_mib,
                               before.resident_mib);
  if (report.draws > middle.draws) {
    std::cout << absl::StrFormat("%-22s %.1f bytes, over the last %d\n", "memory of a draw",
                                 BytesOfADraw(report, middle, after), report.draws - middle.draws);
  }
  for (const auto& [what, count] : report.failures)
    std::cout << absl::StrFormat("%-22s %d %s\n", "failed", count, what);
}

// Excludes calls of the `start`, before the jobs, that found no connection yet.
int64_t Failures(const LoadStats::Report& report, const LoadStats::Report& start) {
  int64_t failed = 0;
  for (const auto& [what, count] : report.failures) failed += count;
  for (const auto& [what, count] : start.failures) failed -= what.ends_with("UNAVAILABLE") ? count : 0;
  return failed;
}

// FAILED_PRECONDITION lists all failed expectations.
absl::Status Judge(int64_t failed, const Options& options, double second_half_rate, double bytes_of_a_draw) {
  std::vector<std::string> faults;
  if (failed > 0) faults.push_back(absl::StrCat(failed, " calls failed"));
  if (second_half_rate < kLeastCommits * options.commits_per_second) {
    faults.push_back(absl::StrFormat("%.0f commits a second in the second half, %.0f were asked for", second_half_rate,
                                     options.commits_per_second));
  }
  if (options.draws > 0 && bytes_of_a_draw > kMostBytesOfADraw) {
    faults.push_back(
        absl::StrFormat("a draw takes %.0f bytes, at most %.0f are allowed", bytes_of_a_draw, kMostBytesOfADraw));
  }
  return faults.empty() ? absl::OkStatus() : absl::FailedPreconditionError(absl::StrJoin(faults, "; "));
}

absl::Status Run(const Options& options) {
  SystemClock clock;
  ClientOptions client_options;
  client_options.addresses = {options.address};
  Client client(client_options, &clock, PauseThread);
  LoadStats stats;
  std::vector<std::unique_ptr<CoordinatorClient>> connections;
  for (int i = 0; i < kConnections; ++i) {
    connections.push_back(std::make_unique<CoordinatorClient>(CoordinatorClient::Options{.address = options.address}));
  }
  auto threads = std::make_unique<ThreadPool>(kThreads);
  std::vector<std::unique_ptr<LoadWorker>> workers;
  for (int i = 0; i < options.workers; ++i) {
    const LoadWorkerOptions worker{.id = absl::StrFormat("load-%04d", i),
                                   .chain_slots = (options.chains + options.workers - 1) / options.workers,
                                   .commit_period = absl::Seconds(options.chains / options.commits_per_second),
                                   .draws = options.draws};
    workers.push_back(std::make_unique<LoadWorker>(worker, connections[static_cast<size_t>(i % kConnections)].get(),
                                                   &clock, threads.get(), &stats));
    workers.back()->Start();
  }
  const absl::Cleanup stop = [&] {  // an early return must not destroy a worker that a call still uses
    for (const auto& worker : workers) worker->Stop();
    for (const auto& connection : connections) connection->Stop();
    threads.reset();
  };
  PauseThread(kTick);
  const ServerUse before = UseOf(options.server_pid);
  const LoadStats::Report start = stats.Take();
  const absl::Duration began = clock.Monotonic();
  for (int left = options.chains; left > 0; left -= kChainsPerJob) {
    const absl::Duration now = clock.Monotonic();
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string job, Submit(&client, std::min(left, kChainsPerJob)));
    stats.Submitted(job, now);
  }
  Middle middle;
  while (clock.Monotonic() - began < absl::Seconds(options.seconds)) {
    PauseThread(kTick);
    const LoadStats::Report report = stats.Take();
    const double now = absl::ToDoubleSeconds(clock.Monotonic() - began),
                 resident = UseOf(options.server_pid).resident_mib;
    std::cerr << absl::StrFormat("%4.0f s: %d chains granted, %d commits, %.0f MiB\n", now, report.scheduling.count(),
                                 report.commits.count(), resident);
    if (middle.at_seconds == 0 && now > options.seconds / 2.0) {
      middle = {now, resident, report.commits.count(), report.draws};
    }
  }
  const double seconds = absl::ToDoubleSeconds(clock.Monotonic() - began);
  const LoadStats::Report report = stats.Take();
  const ServerUse after = UseOf(options.server_pid);
  Print(report, before, middle, after, seconds);
  return Judge(Failures(report, start), options, SecondHalfRate(report, middle, seconds),
               BytesOfADraw(report, middle, after));
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Loads a chainfleet server with workers that only synchronize and commit.");
  app.set_version_flag("--version", kVersion);
  app.add_option("--address", options.address, "HOST:PORT of the server")->capture_default_str();
  app.add_option("--workers", options.workers, "Number of workers")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--chains", options.chains, "Number of chains, in jobs of 1,000")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--commits", options.commits_per_second, "Commits per second, over all chains")->capture_default_str();
  app.add_option("--draws", options.draws, "Draws per commit")->capture_default_str();
  app.add_option("--seconds", options.seconds, "Length of the run in seconds; each half needs at least 5")
      ->check(CLI::Range(10, 86'400))
      ->capture_default_str();
  app.add_option("--server-pid", options.server_pid, "Process whose CPU time and memory are reported")->required();
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Run(options);
  if (!status.ok()) std::cerr << "chainfleet-load: " << status << "\n";
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace chainfleet

int main(int argc, char** argv) { return chainfleet::Main(argc, argv); }

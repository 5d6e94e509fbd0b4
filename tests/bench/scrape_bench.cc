// The cost of a scrape of the server with 20,000 running chains of 20 jobs on 1,000 workers: the dispatcher's figures,
// as a sum under its lock or as a list of all jobs, and the whole page over HTTP with its size.
#include <benchmark/benchmark.h>

#include "core/base/check.h"
#include "core/base/limits.h"
#include "tests/support/large_fleet.h"

namespace chainfleet {
namespace {

constexpr int kJobs = 20;

LargeFleet& TheFleet() {
  static auto* const fleet = new LargeFleet(kJobs);
  return *fleet;
}

void BM_Sums(benchmark::State& state) {
  LargeFleet& fleet = TheFleet();
  for (auto _ : state) {
    const FleetSummary summary = fleet.Summary();
    CHAINFLEET_CHECK(summary.jobs.size() == kJobs && summary.running.size() == 512);
  }
}
BENCHMARK(BM_Sums)->Name("scrape/sums")->UseRealTime()->Unit(benchmark::kMillisecond);

void BM_List(benchmark::State& state) {
  LargeFleet& fleet = TheFleet();
  for (auto _ : state) {
    const auto page = fleet.dispatcher().ListJobs({}, limits::kMaxPageSize, "");
    CHAINFLEET_CHECK(page.ok() && page->items.size() == kJobs);
  }
}
BENCHMARK(BM_List)->Name("scrape/list")->UseRealTime()->Unit(benchmark::kMillisecond);

void BM_Page(benchmark::State& state) {
  LargeFleet& fleet = TheFleet();
  size_t bytes = 0;
  for (auto _ : state) bytes = fleet.Page().size();
  CHAINFLEET_CHECK(bytes > 0);
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(BM_Page)->Name("scrape/page")->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace chainfleet

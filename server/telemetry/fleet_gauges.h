// Gauges whose series come and go: of running chains, of jobs that are not over, of workers. docs/reference/metrics.md
// has the table.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/metrics/metrics.h"
#include "core/metrics/scrape_targets.h"
#include "server/control/fleet_summary.h"
#include "server/control/trace_table.h"
#include "server/control/views.h"

namespace chainfleet {

// Of chains, of jobs, of their points and of workers: further ones, in the order given, have no series and are counted
// (chainfleet_..._without_series).
inline constexpr int64_t kMostSeriesOfAKind = 512;
// Of all these series on the page. Where names are long, first series of chains are left out, then of whatever needs
// most, and counted as well.
inline constexpr int64_t kMostSeriesBytes = 900'000;

// Every family, in order, some of them without samples. `fleet` has kMostSeriesOfAKind running chains at most. A
// chain's labels are its job and index, so that its series goes on when another worker takes it. `diagnostics`: what
// TraceTable says of a job.
std::vector<GaugeFamily> FleetGauges(const FleetSummary& fleet,
                                     const std::function<std::vector<Diagnostic>(const std::string& job)>& diagnostics,
                                     const std::vector<WorkerView>& workers);

// Workers that serve metrics.
std::vector<ScrapeTarget> ScrapeTargets(const std::vector<WorkerView>& workers);

}  // namespace chainfleet

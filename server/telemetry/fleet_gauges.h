// Gauges whose series come and go: one per running chain, unfinished job and worker. docs/reference/metrics.md has the
// table.
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

// Bound on the series of each kind: chains, jobs, sweep points, workers. Further ones, in the order given, have no
// series and are counted (chainfleet_..._without_series).
inline constexpr int64_t kMostSeriesOfAKind = 512;
// Bound on all these series on the page. If long names exceed it, series of chains are left out first, then those of
// the kind that needs most; they are counted as well.
inline constexpr int64_t kMostSeriesBytes = 900'000;

// Returns every family, in order, some without samples. `fleet` has at most kMostSeriesOfAKind running chains. A
// chain's labels are its job and index, so that its series continues when another worker takes it. `diagnostics`
// returns TraceTable's diagnostics of a job.
std::vector<GaugeFamily> FleetGauges(const FleetSummary& fleet,
                                     const std::function<std::vector<Diagnostic>(const std::string& job)>& diagnostics,
                                     const std::vector<WorkerView>& workers);

// The workers that serve metrics.
std::vector<ScrapeTarget> ScrapeTargets(const std::vector<WorkerView>& workers);

}  // namespace chainfleet

// Lists further scrape targets in the format of Prometheus' http_sd.
#pragma once

#include <string>
#include <vector>

#include "core/metrics/metrics.h"

namespace chainfleet {

struct ScrapeTarget {
  std::string address;  // HOST:PORT of the target's GET /metrics
  Labels labels;
};

// Returns [{"targets": ["HOST:PORT"], "labels": {...}}, ...].
std::string HttpSdJson(const std::vector<ScrapeTarget>& targets);

}  // namespace chainfleet

// Where else to scrape, in the words of Prometheus' http_sd.
#pragma once

#include <string>
#include <vector>

#include "core/metrics/metrics.h"

namespace chainfleet {

struct ScrapeTarget {
  std::string address;  // HOST:PORT of its GET /metrics
  Labels labels;
};

// [{"targets": ["HOST:PORT"], "labels": {...}}, ...]
std::string HttpSdJson(const std::vector<ScrapeTarget>& targets);

}  // namespace chainfleet

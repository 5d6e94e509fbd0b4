#include "core/metrics/scrape_targets.h"

#include "nlohmann/json.hpp"

namespace chainfleet {

std::string HttpSdJson(const std::vector<ScrapeTarget>& targets) {
  nlohmann::json list = nlohmann::json::array();
  for (const ScrapeTarget& target : targets) {
    list.push_back({{"targets", {target.address}}, {"labels", target.labels}});
  }
  return list.dump();
}

}  // namespace chainfleet

#include "server/predict/serving/placement.h"

#include <cstdint>
#include <map>

#include "core/base/rng_key.h"

namespace chainfleet {
namespace {

// FNV-1a.
uint64_t Hash(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

uint64_t Affinity(const std::string& worker, const ChainId& chain) {
  return Fold(RngKey{Hash(worker)}, Hash(ToString(chain))).value;
}

int64_t NumChains(const std::vector<ChainDraws>& chains) {
  int64_t count = 0;
  for (size_t i = 0; i < chains.size(); ++i) count += i == 0 || chains[i].chain != chains[i - 1].chain ? 1 : 0;
  return count;
}

}  // namespace

std::vector<ChainGroup> GroupChains(const std::vector<ChainDraws>& chains, const std::vector<std::string>& workers) {
  if (workers.empty()) return {{"", chains}};
  const auto num_workers = static_cast<int64_t>(workers.size()),
             room = (NumChains(chains) + num_workers - 1) / num_workers;
  std::map<std::string, std::vector<ChainDraws>> chains_of;
  std::vector<ChainDraws>* last = nullptr;
  for (const ChainDraws& chain : chains) {
    if (last != nullptr && last->back().chain == chain.chain) {
      last->push_back(chain);
      continue;
    }
    const std::string* best = nullptr;
    for (const std::string& worker : workers) {
      if (NumChains(chains_of[worker]) >= room) continue;
      if (best == nullptr || Affinity(worker, chain.chain) > Affinity(*best, chain.chain)) best = &worker;
    }
    last = &chains_of[*best];
    last->push_back(chain);
  }
  std::vector<ChainGroup> groups;
  for (auto& [worker, group] : chains_of) {
    if (!group.empty()) groups.push_back({worker, std::move(group)});
  }
  return groups;
}

}  // namespace chainfleet

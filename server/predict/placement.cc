#include "server/predict/placement.h"

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

}  // namespace

std::vector<ChainGroup> GroupChains(const std::vector<ChainDraws>& chains, const std::vector<std::string>& workers) {
  if (workers.empty()) return {{"", chains}};
  const size_t room = (chains.size() + workers.size() - 1) / workers.size();
  std::map<std::string, std::vector<ChainDraws>> chains_of;
  for (const ChainDraws& chain : chains) {
    const std::string* best = nullptr;
    for (const std::string& worker : workers) {
      if (chains_of[worker].size() >= room) continue;
      if (best == nullptr || Affinity(worker, chain.chain) > Affinity(*best, chain.chain)) best = &worker;
    }
    chains_of[*best].push_back(chain);
  }
  std::vector<ChainGroup> groups;
  for (auto& [worker, group] : chains_of) {
    if (!group.empty()) groups.push_back({worker, std::move(group)});
  }
  return groups;
}

}  // namespace chainfleet

#include "server/predict/serving/placement.h"

#include <cstdint>
#include <map>
#include <utility>

#include "core/base/rng_key.h"

namespace chainfleet {
namespace {

// FNV-1a.
uint64_t Hash(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

// The chains that one worker gets.
struct ChainsOfWorker {
  std::vector<ChainDraws> entries;
  int64_t num_chains = 0;  // adjacent entries of one chain count as one

  void Add(const ChainDraws& entry) {
    if (entries.empty() || entries.back().chain != entry.chain) ++num_chains;
    entries.push_back(entry);
  }
};

struct HashedWorker {
  RngKey key;
  ChainsOfWorker* chains;
};

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
  std::map<std::string, ChainsOfWorker> chains_of;
  std::vector<HashedWorker> hashed;  // each once, not once for each chain
  for (const std::string& worker : workers) hashed.push_back({RngKey{Hash(worker)}, &chains_of[worker]});
  ChainsOfWorker* last = nullptr;
  for (const ChainDraws& chain : chains) {
    if (last != nullptr && last->entries.back().chain == chain.chain) {
      last->Add(chain);
      continue;
    }
    const uint64_t label = Hash(ToString(chain.chain));
    ChainsOfWorker* best = nullptr;
    uint64_t best_affinity = 0;
    for (const HashedWorker& worker : hashed) {
      if (worker.chains->num_chains >= room) continue;
      const uint64_t affinity = Fold(worker.key, label).value;
      if (best != nullptr && affinity <= best_affinity) continue;
      best = worker.chains;
      best_affinity = affinity;
    }
    last = best;
    last->Add(chain);
  }
  std::vector<ChainGroup> groups;
  for (auto& [worker, group] : chains_of) {
    if (!group.entries.empty()) groups.push_back({worker, std::move(group.entries)});
  }
  return groups;
}

}  // namespace chainfleet

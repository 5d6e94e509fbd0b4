#include "server/control/solo_turns.h"

#include <algorithm>

namespace chainfleet {

void SoloTurns::End(const std::string& worker, absl::Duration rested) {
  turns_.erase(worker);
  rested_[worker] = rested;
}

bool SoloTurns::Displaces(const std::string& worker, const ChainId& chain) const {
  const auto turn = turns_.find(worker);
  return turn != turns_.end() && turn->second.chain != chain;
}

bool SoloTurns::HasTurn(const ChainId& chain) const {
  return std::ranges::any_of(turns_, [&](const auto& turn) { return turn.second.chain == chain; });
}

bool SoloTurns::Rests(const std::string& worker, absl::Duration now) const {
  const auto rested = rested_.find(worker);
  return rested != rested_.end() && rested->second > now;
}

void SoloTurns::ForgetRests(absl::Duration now) {
  std::erase_if(rested_, [now](const auto& rested) { return rested.second <= now; });
}

}  // namespace chainfleet

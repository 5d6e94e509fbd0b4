// The workers that are kept for one suspect chain each: first its other chains are handed back, then the
// suspect runs there alone, until it commits or its lease ends. Plain data: no lock, clock or I/O; times are of the
// monotonic clock. A restart of the server finds running turns in the leases and forgets the rest.
#pragma once

#include <map>
#include <string>

#include "absl/time/time.h"
#include "core/base/ids.h"

namespace chainfleet {

// Not thread-safe.
class SoloTurns {
 public:
  struct Turn {
    ChainId chain;
    bool began = false;  // the chain is leased to the worker
  };

  // At most one for a worker and one for a chain.
  void Plan(const std::string& worker, const ChainId& chain) { turns_[worker] = {chain, false}; }
  void Begin(const std::string& worker, const ChainId& chain) { turns_[worker] = {chain, true}; }
  // The worker is not cleared for another turn before `rested`: what runs there meanwhile gets on.
  void End(const std::string& worker, absl::Duration rested);

  // By worker.
  const std::map<std::string, Turn>& turns() const { return turns_; }
  bool Keeps(const std::string& worker) const { return turns_.contains(worker); }
  // Must `chain` make room for the one that `worker` is kept for?
  bool Displaces(const std::string& worker, const ChainId& chain) const;
  bool HasTurn(const ChainId& chain) const;

  bool Rests(const std::string& worker, absl::Duration now) const;
  void ForgetRests(absl::Duration now);

 private:
  std::map<std::string, Turn> turns_;
  std::map<std::string, absl::Duration> rested_;
};

}  // namespace chainfleet

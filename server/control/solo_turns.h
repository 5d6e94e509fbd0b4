// Reserves workers for one suspect chain each. The worker first hands its other chains back, then runs the suspect
// alone, until it commits or its lease ends. Plain data: no lock, clock or I/O; times are monotonic. After a restart
// the leases show running turns; other turns are forgotten.
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

  // Plans at most one turn for each worker and each chain.
  void Plan(const std::string& worker, const ChainId& chain) { turns_[worker] = {chain, false}; }
  void Begin(const std::string& worker, const ChainId& chain) { turns_[worker] = {chain, true}; }
  // The worker gets no other turn before `rested`, so that its other chains make progress.
  void End(const std::string& worker, absl::Duration rested);

  // Returns the turns by worker.
  const std::map<std::string, Turn>& turns() const { return turns_; }
  bool Keeps(const std::string& worker) const { return turns_.contains(worker); }
  // Returns true if `chain` must leave `worker` for the suspect.
  bool Displaces(const std::string& worker, const ChainId& chain) const;
  bool HasTurn(const ChainId& chain) const;

  bool Rests(const std::string& worker, absl::Duration now) const;
  void ForgetRests(absl::Duration now);

 private:
  std::map<std::string, Turn> turns_;
  std::map<std::string, absl::Duration> rested_;
};

}  // namespace chainfleet

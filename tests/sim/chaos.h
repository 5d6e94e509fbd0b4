// The faults of a run. The seed decides the kinds of faults and their rate.
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "tests/sim/world.h"

namespace chainfleet {

// For one thread; the world outlives it and its tasks.
class Chaos {
 public:
  explicit Chaos(World* world);

  // Injects faults from now on for `length`, then heals all of them.
  void Begin(absl::Duration length);

  // Returns the number of faults that may cost a chain an attempt.
  int num_losses() const { return losses_; }

 private:
  using Fault = void (Chaos::*)();

  void Strike();
  void End();
  // Runs `then` after a random time, short or longer than a lease, unless the chaos is over.
  template <typename Then>
  void AfterAWhile(Then then);

  void Stop(Process* process);
  void KillWorker();
  void StopWorker();
  void HangWorker();
  void DrainWorker();
  void CutWorkerOff();
  void TroubleLines();
  void KillServer();
  void StopServer();
  void StartSecondServer();
  void LosePower();
  void DieOnDisk();
  void FailCommit();
  void FillStore();
  void LoseBucket();
  void JumpClock();

  World* const world_;
  Site& site_;
  Dice& dice_;
  std::vector<Fault> kinds_;
  absl::Duration pace_;
  bool over_ = false;
  int losses_ = 0;
};

}  // namespace chainfleet

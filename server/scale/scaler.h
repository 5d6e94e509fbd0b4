// A cluster that runs workers as its jobs, one worker a job: what the ScaleLoop asks of it.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace chainfleet {

struct ClusterJob {
  enum class State { kPending, kRunning, kEnding };
  std::string id;
  State state = State::kPending;
  std::string worker_prefix;  // how the id of its worker begins
  std::string held = {};      // why it will never start by itself, as the cluster says; empty: it may
};

// Calls block, within a bound, and come from one thread at a time. An error says what the cluster said; its outcome is
// unknown, and the next List shows it.
class Scaler {
 public:
  virtual ~Scaler() = default;

  // For people and metrics: "Slurm".
  virtual std::string name() const = 0;

  // The jobs of this store's coordinators that have not ended, oldest first, whichever process asked for them.
  virtual absl::StatusOr<std::vector<ClusterJob>> List() = 0;

  // Asks for one more worker; the id of its job.
  virtual absl::StatusOr<std::string> Submit() = 0;

  // Takes the job out of the queue; one that runs by now is left alone.
  virtual absl::Status Withdraw(const std::string& job) = 0;

  // Tells the job's worker to hand its chains back and end.
  virtual absl::Status Drain(const std::string& job) = 0;

  // Ends the job, whatever it does.
  virtual absl::Status Kill(const std::string& job) = 0;
};

}  // namespace chainfleet

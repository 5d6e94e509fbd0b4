// The interface of a cluster that runs workers as jobs, one worker per job, for the ScaleLoop.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace chainfleet {

struct ClusterJob {
  enum class State { kPending, kRunning, kEnding };
  std::string id;
  State state = State::kPending;
  std::string worker_prefix;  // prefix of its worker's id
  std::string held = {};      // the cluster's reason why it will never start by itself; empty: it may start
};

// Calls block for a bounded time and come from one thread at a time. An error carries the cluster's message. After an
// error the outcome is unknown, and the next List shows it.
class Scaler {
 public:
  virtual ~Scaler() = default;

  // For logs and metrics: "Slurm".
  virtual std::string name() const = 0;

  // The jobs of this store's coordinators that have not ended, oldest first, whichever process submitted them.
  virtual absl::StatusOr<std::vector<ClusterJob>> List() = 0;

  // Submits a job for one more worker and returns its id.
  virtual absl::StatusOr<std::string> Submit() = 0;

  // Removes the job from the queue; a job that runs already is left alone.
  virtual absl::Status Withdraw(const std::string& job) = 0;

  // Tells the job's worker to hand its chains back and exit.
  virtual absl::Status Drain(const std::string& job) = 0;

  // Ends the job at once, whatever it is doing.
  virtual absl::Status Kill(const std::string& job) = 0;
};

}  // namespace chainfleet

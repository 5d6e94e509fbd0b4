// A whole worker in one simulated process: session, uploader and device loop over the real kernels, and its line to the
// coordinators.
#pragma once

#include <memory>
#include <string>

#include "tests/sim/process.h"
#include "tests/sim/site.h"
#include "tests/support/lossy_port.h"
#include "tests/support/worker_fixture.h"

namespace chainfleet {

// The device of a machine: the same for every process that runs there.
struct SimulatedDevice {
  absl::Duration step;  // of a batch, about
  int32_t slots = 4;
  size_t max_chains = 4;  // in one batch; more: out of memory
  int64_t upload_bytes = limits::kUploadQueueBytes;
};

// Stays where it is until the run is over, long after its death.
class WorkerNode {
 public:
  // `coordinator` outlives it. Its incarnation is `name` and `number`.
  WorkerNode(Site* site, CoordinatorPort* coordinator, const std::string& name, int number,
             const SimulatedDevice& device);

  Process& process() { return process_; }
  LossyPort& line() { return line_; }

  // No step begins for so long.
  void Hang(absl::Duration length);

  // SIGTERM: hands its chains back, and ends when it has, or when the deadline has passed.
  void Drain();
  bool draining() const { return draining_; }

 private:
  void ScheduleTurn(absl::Duration delay);
  void Wake();
  void EndWhenDrained();

  Site* const site_;
  Process process_;
  LossyPort line_;
  FakeWorker worker_;
  const SimulatedDevice device_;
  bool idle_ = false;  // its device waits for a wake or for the next look
  uint64_t turn_ = 0;  // the one that counts
  absl::Duration hangs_until_;
  bool draining_ = false;
  absl::Duration drain_deadline_;
};

}  // namespace chainfleet

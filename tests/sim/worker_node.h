// A whole worker in one simulated process: session, uploader and device loop over the real kernels, and its connection
// to the coordinators.
#pragma once

#include <memory>
#include <string>

#include "tests/sim/process.h"
#include "tests/sim/site.h"
#include "tests/support/lossy_port.h"
#include "tests/support/worker_fixture.h"

namespace chainfleet {

// The device of a machine, shared by all processes that run there.
struct SimulatedDevice {
  absl::Duration step;  // approximate time of a batch's step
  int32_t slots = 4;
  size_t max_chains = 4;  // in one batch; more chains run out of memory
  int64_t upload_bytes = limits::kUploadQueueBytes;
};

// The object lives until the end of the run, long after its process.
class WorkerNode {
 public:
  // `coordinator` outlives this object. The incarnation is `name` and `number`.
  WorkerNode(Site* site, CoordinatorPort* coordinator, const std::string& name, int number,
             const SimulatedDevice& device);

  Process& process() { return process_; }
  LossyPort& line() { return line_; }

  // No step begins for `length`.
  void Hang(absl::Duration length);

  // SIGTERM: hands its chains back; ends when that is done, or at the deadline.
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
  bool idle_ = false;  // the device waits for a wake or for its next check
  uint64_t turn_ = 0;  // number of the only valid turn
  absl::Duration hangs_until_;
  bool draining_ = false;
  absl::Duration drain_deadline_;
};

}  // namespace chainfleet

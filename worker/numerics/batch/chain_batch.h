// A batch of chains of one job stepping on one device: what the runtime drives. No torch in this header.
//
// Rows may be at different steps. Every number of a row is a pure function of (job, chain index, step, build): on a
// CPU the other chains of the batch, and interruptions of the chain, never change a bit. Not thread-safe: one
// thread drives a batch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/worker_protocol.h"

namespace chainfleet {

class ResidentDataset;  // worker/numerics/dataset/resident_dataset.h: a data set decoded in memory

// The report of one row after a step. On a GPU energy, anchor distance and `finite` may be those of the row's step
// before: the host waits for a step's own only at a row's first step here, a draw, a trace, the chain's end, and where
// the kernel itself needs its numbers.
struct RowReport {
  int32_t chain = 0;  // index within the job
  int64_t step = 0;   // after the step, from 1
  ChainStats stats;
  int64_t gradients = 0;         // of its potential that the step took, each over one batch of examples
  std::optional<bool> accepted;  // of a Metropolis kernel: its proposal
  std::vector<double> trace;     // the values of trace_quantities() where the plan says so, else empty
  bool finite = true;     // false: energy or theta is not finite; the row must be removed, its last draw stays valid
  bool draw_due = false;  // a draw is to be taken after this step
  bool done = false;      // step == total_steps
};

// Functions without a status may throw as LibTorch does; the batch is unusable then.
class ChainBatch {
 public:
  // `dataset` is null for analytic potentials, `module` (bytes of a TorchScript file) for all models that are none.
  // UNIMPLEMENTED or INVALID_ARGUMENT if the plan asks for what this build lacks; INVALID_ARGUMENT with field
  // violations if the job is wrong; FAILED_PRECONDITION if `device` ("cpu", "cuda:0") is not available.
  static absl::StatusOr<std::unique_ptr<ChainBatch>> Create(std::shared_ptr<const JobPlan> plan,
                                                            std::shared_ptr<const ResidentDataset> dataset,
                                                            const std::string& device,
                                                            std::shared_ptr<const std::string> module = nullptr);
  virtual ~ChainBatch() = default;

  // Adds chain `index` at its start, or at `resume_point` (the bytes of SaveResumePoint). INVALID_ARGUMENT if they do
  // not decode or are of another chain, FAILED_PRECONDITION if their format is newer or too old, ALREADY_EXISTS if the
  // batch has the chain, RESOURCE_EXHAUSTED if memory is short.
  virtual absl::Status AddChain(int32_t index, const std::optional<std::string>& resume_point) = 0;
  virtual void RemoveChain(int32_t index) = 0;
  virtual std::vector<int32_t> chains() const = 0;

  // One step of every row that is not done. RESOURCE_EXHAUSTED: out of memory, no row has moved; the batch may be
  // split. INTERNAL: the batch is unusable. LibTorch's exceptions end here.
  virtual absl::StatusOr<std::vector<RowReport>> Step() = 0;

  // The draw that the row's last report said is due: its state after that step, or, of a Metropolis kernel, the state
  // it left, weighted by the kept steps it was held for. With batch norm this passes over the whole data set.
  virtual Draw TakeDraw(int32_t index) const = 0;

  // At the end of a chain or of its lease: the state that a Metropolis kernel still holds, with its count so far; it is
  // a draw of its own. Nothing for other kernels. Before SaveResumePoint.
  virtual std::optional<Draw> GiveUpHeld(int32_t index) = 0;

  // Waits for the row's last step. False: energy or theta is not finite, so its state is none to go on from; the next
  // report says so. To be asked before SaveResumePoint.
  virtual bool IsFinite(int32_t index) = 0;

  virtual std::string SaveResumePoint(int32_t index) const = 0;

  // The tensors of one kind of a draw in order, for the draw codec: parameters, then statistics.
  virtual const std::vector<ParameterShape>& parameters() const = 0;

  // The quantities that are traced of each chain (docs/explanation/sampling.md).
  virtual const std::vector<std::string>& trace_quantities() const = 0;
};

// Version of the arithmetic: raised whenever the bits of a chain may change. Recorded with every segment.
inline constexpr int32_t kNumericsVersion = 1;

}  // namespace chainfleet

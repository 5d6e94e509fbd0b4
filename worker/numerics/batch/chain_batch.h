// A batch of chains of one job that step on one device; the runtime drives it. This header includes no torch.
//
// Rows may be at different steps. Every number of a row is a pure function of (job, chain index, step, build). On a CPU
// neither the other chains of the batch nor interruptions of the chain change a bit. Not thread-safe: one thread drives
// a batch.
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
struct ModelFile;       // worker/numerics/models/model_file.h

// The report of one row after a step. On a GPU energy, anchor distance and `finite` may belong to the row's previous
// step. The host waits for the values of the step itself only at a row's first step here, a draw, a trace, the chain's
// end, and where the kernel needs them.
struct RowReport {
  int32_t chain = 0;  // index within the job
  int64_t step = 0;   // after the step, from 1
  ChainStats stats;
  int64_t gradients = 0;         // evaluations of its gradient in the step, each on one minibatch
  std::optional<bool> accepted;  // the proposal of a Metropolis kernel
  std::vector<double> trace;     // values of trace_quantities() at steps where the plan traces, else empty
  bool finite = true;     // false: energy or theta is not finite; the row must be removed, its last draw stays valid
  bool draw_due = false;  // a draw must be taken after this step
  bool done = false;      // step == total_steps
};

// Functions that return no status may throw as LibTorch does; the batch is then unusable.
class ChainBatch {
 public:
  // `dataset` is null for analytic potentials; `module`, a stored network's file, is null for other models.
  // UNIMPLEMENTED or INVALID_ARGUMENT: this build lacks something that the plan needs. INVALID_ARGUMENT with field
  // violations: the job is wrong. FAILED_PRECONDITION: `device` ("cpu", "cuda:0") is not available.
  static absl::StatusOr<std::unique_ptr<ChainBatch>> Create(std::shared_ptr<const JobPlan> plan,
                                                            std::shared_ptr<const ResidentDataset> dataset,
                                                            const std::string& device,
                                                            std::shared_ptr<const ModelFile> module = nullptr);
  virtual ~ChainBatch() = default;

  // Adds chain `index` at its start, or at `resume_point` (the bytes of SaveResumePoint). `weights`: the bytes of its
  // file of init.weights, if the plan has such files; with a resume point only a file of draws, else null. A file of
  // draws outlives the chain in the batch, and its draws are those of the chain. INVALID_ARGUMENT: the bytes do not
  // decode, belong to another chain, or hold other parameters; or the job is of kind sbc, and the chain was added to it
  // later: the batch has simulated no targets for it. FAILED_PRECONDITION: their format is newer, or too old.
  // ALREADY_EXISTS: the batch has the chain. RESOURCE_EXHAUSTED: memory is short.
  virtual absl::Status AddChain(int32_t index, const std::optional<std::string>& resume_point,
                                const std::string* weights = nullptr) = 0;
  virtual void RemoveChain(int32_t index) = 0;
  virtual std::vector<int32_t> chains() const = 0;
  // Returns the steps that the chain has done: those of its resume point, and its steps in this batch.
  virtual int64_t StepsDone(int32_t index) const = 0;

  // Steps every row that is not done. RESOURCE_EXHAUSTED: memory ran out and no row has moved; the batch may be split.
  // INTERNAL: the batch is unusable. LibTorch's exceptions are converted here.
  virtual absl::StatusOr<std::vector<RowReport>> Step() = 0;

  // Returns the draw that the row's last report announced: its state after that step or, for a Metropolis kernel, the
  // state that it left, weighted by the number of kept steps for which it was held. With batch norm this passes over
  // the whole data set.
  virtual Draw TakeDraw(int32_t index) const = 0;

  // Called at the end of a chain or of its lease, before SaveResumePoint: returns the state that a Metropolis kernel
  // still holds, with its count so far, as a draw of its own. nullopt for other kernels.
  virtual std::optional<Draw> GiveUpHeld(int32_t index) = 0;

  // Waits for the row's last step. False: energy or theta is not finite, so the chain must not continue from this
  // state; the next report says so. Called before SaveResumePoint.
  virtual bool IsFinite(int32_t index) = 0;

  virtual std::string SaveResumePoint(int32_t index) const = 0;

  // The tensors of one kind of a draw in order, for the draw codec: parameters, then statistics.
  virtual const std::vector<ParameterShape>& parameters() const = 0;

  // The quantities that are traced for each chain (docs/explanation/sampling.md); in a job of kind sbc, their
  // differences from their values at the chain's true parameters.
  virtual const std::vector<std::string>& trace_quantities() const = 0;
};

// Version of the arithmetic. Raised whenever the bits of a chain may change; recorded with every segment.
inline constexpr int32_t kNumericsVersion = 1;

}  // namespace chainfleet

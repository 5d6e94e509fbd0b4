// Computes the per-chain sums of PartialPrediction from draws. This header includes no torch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/prediction.h"
#include "worker/numerics/predict/draw_stack.h"
#include "worker/numerics/predict/flatness_run.h"
#include "worker/numerics/predict/prediction_run.h"

namespace chainfleet {

class ResidentDataset;
struct ModelFile;
class StackCache;
struct DeviceRows;

// The cache that all predictors of a device share; null for the CPU. INVALID_ARGUMENT: unknown device.
absl::StatusOr<std::shared_ptr<StackCache>> MakeStackCache(const std::string& device);

// Stateless except for device buffers. Not thread-safe.
class Predictor {
 public:
  // `device` and `module` as for ChainBatch. On a GPU the draws of a list of layers are stacked; modules and analytic
  // regressions run on the CPU. `stacks` is the cache of that device; null: a new one. INVALID_ARGUMENT: this build
  // lacks the model.
  static absl::StatusOr<std::unique_ptr<Predictor>> Create(std::shared_ptr<const PredictPlan> plan,
                                                           const std::string& device,
                                                           std::shared_ptr<const ModelFile> module = nullptr,
                                                           std::shared_ptr<StackCache> stacks = nullptr);
  virtual ~Predictor() = default;

  // Returns the sums of each stack, in order. Outputs are float32, sums float64. On a CPU the bits do not depend on how
  // rows are cut into requests and stacks into calls; on a GPU this holds up to rounding. `members`: also returns the
  // outputs of each draw. `kept`: null, or a place for rows that were made for a GPU, for the caller's next calls with
  // the same inputs, at most kMaxDeviceRowBytes; a null pointee is set. INVALID_ARGUMENT: shapes or types do not fit
  // the plan.
  //
  // Draws of a stack are added in runs: the newest one, then the next 2, the next 4, ...; each run is summed separately
  // and then added to the runs before it. The sums over the newest 1, 3, 7, ... draws and those of the following ones
  // therefore add up to the sums of one call over all of them, in the same order.
  absl::StatusOr<std::vector<PartialPrediction>> Predict(std::vector<DrawStack> stacks, const InputTensor& inputs,
                                                         bool members = false,
                                                         std::shared_ptr<DeviceRows>* kept = nullptr);
  // Starts Predict. `inputs` and `kept` outlive the run.
  virtual absl::StatusOr<std::unique_ptr<PredictionRun>> Start(std::vector<DrawStack> stacks, const InputTensor& inputs,
                                                               bool members, std::shared_ptr<DeviceRows>* kept) = 0;

  // Adds the gradients of the predictions by the inputs to `sums`, which Predict returned for these arguments; to its
  // members, too. Runs on the CPU. INVALID_ARGUMENT: the outputs cannot be differentiated by the inputs.
  virtual absl::Status AddGradients(const std::vector<DrawStack>& stacks, const InputTensor& inputs,
                                    std::vector<PartialPrediction>* sums) const = 0;

  // Starts a prediction over rows of `data`, changed by `corruption` if given. With `per_draw_scores` the draws are
  // also compared with the labels or targets. `kept` is for these rows after the change. `data` and `kept` outlive the
  // run, which may outlive the predictor. INVALID_ARGUMENT also for a corruption that does not exist or does not fit
  // the inputs.
  virtual absl::StatusOr<std::unique_ptr<PredictionRun>> StartRows(std::vector<DrawStack> stacks,
                                                                   const ResidentDataset& data, int64_t first_row,
                                                                   int64_t num_rows, bool per_draw_scores,
                                                                   bool members = false,
                                                                   const Corruption* corruption = nullptr,
                                                                   std::shared_ptr<DeviceRows>* kept = nullptr) = 0;
  // Runs StartRows to its end.
  absl::StatusOr<std::vector<PartialPrediction>> PredictRows(std::vector<DrawStack> stacks, const ResidentDataset& data,
                                                             int64_t first_row, int64_t num_rows, bool per_draw_scores,
                                                             bool members = false,
                                                             const Corruption* corruption = nullptr,
                                                             std::shared_ptr<DeviceRows>* kept = nullptr);

  // Starts to measure the curvature of the likelihood around the newest draw of `theta` (core/domain/flatness.h) over
  // rows of `data`, at most limits::kMaxShardRows, and on the line to the newest draw of `theta_a`, which may be empty.
  // INVALID_ARGUMENT: shapes, targets or the plan do not fit.
  virtual absl::StatusOr<std::unique_ptr<FlatnessRun>> StartFlatness(const FlatnessPlan& plan, const DrawStack& theta,
                                                                     const DrawStack& theta_a,
                                                                     std::shared_ptr<const ResidentDataset> data,
                                                                     int64_t first_row, int64_t num_rows) = 0;
};

}  // namespace chainfleet

// Turns draws into the per-chain sums of PartialPrediction. No torch in this header.
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
class StackCache;
struct DeviceRows;

// The cache that the predictors of a device share on it; null for the CPU. INVALID_ARGUMENT for an unknown device.
absl::StatusOr<std::shared_ptr<StackCache>> MakeStackCache(const std::string& device);

// Stateless but for device buffers. Not thread-safe.
class Predictor {
 public:
  // `device` and `module` as for ChainBatch: on a GPU draws of a list of layers go stacked, modules and analytic
  // regressions stay on the CPU. `stacks`: of that device; null: one of its own. INVALID_ARGUMENT for a model this
  // build lacks.
  static absl::StatusOr<std::unique_ptr<Predictor>> Create(std::shared_ptr<const PredictPlan> plan,
                                                           const std::string& device,
                                                           std::shared_ptr<const std::string> module = nullptr,
                                                           std::shared_ptr<StackCache> stacks = nullptr);
  virtual ~Predictor() = default;

  // The sums of each stack, in their order. Outputs in float32, sums in float64: on a CPU the same bits however the
  // rows are cut into requests and the stacks into calls, on a GPU up to rounding. `members`: also what each draw says
  // by itself. `kept`: null, or where the rows that were made for a GPU stay for the caller's next calls about these
  // same inputs, at most kMaxDeviceRowBytes; null pointees are set. INVALID_ARGUMENT if shapes or types do not fit the
  // plan.
  //
  // Draws of a stack are added in runs: the newest one, then the next 2, the next 4, ..., each run alone and then to
  // the runs before it. So the sums over the newest 1, 3, 7, ... draws, and those of the next ones, add up to the sums
  // of one call over all of them, in the same order.
  virtual absl::StatusOr<std::vector<PartialPrediction>> Predict(std::vector<DrawStack> stacks,
                                                                 const InputTensor& inputs, bool members = false,
                                                                 std::shared_ptr<DeviceRows>* kept = nullptr) = 0;

  // Begins the same over rows of `data`, with `corruption` as it leaves them; with `per_draw_scores` also held against
  // its labels or targets; `kept` is of these rows as they are left. `data` and `kept` outlive the run, which outlives
  // the predictor if it has to. INVALID_ARGUMENT also for a corruption that is none, or not of such inputs.
  virtual absl::StatusOr<std::unique_ptr<PredictionRun>> StartRows(std::vector<DrawStack> stacks,
                                                                   const ResidentDataset& data, int64_t first_row,
                                                                   int64_t num_rows, bool per_draw_scores,
                                                                   bool members = false,
                                                                   const Corruption* corruption = nullptr,
                                                                   std::shared_ptr<DeviceRows>* kept = nullptr) = 0;
  // From its beginning to its end.
  absl::StatusOr<std::vector<PartialPrediction>> PredictRows(std::vector<DrawStack> stacks, const ResidentDataset& data,
                                                             int64_t first_row, int64_t num_rows, bool per_draw_scores,
                                                             bool members = false,
                                                             const Corruption* corruption = nullptr,
                                                             std::shared_ptr<DeviceRows>* kept = nullptr);

  // Begins to measure how the likelihood bends around the newest draw of `theta` (core/domain/flatness.h) over rows of
  // `data`, at most limits::kMaxShardRows, and on the way to the newest one of `theta_a`, which may have none.
  // INVALID_ARGUMENT if shapes, targets or the plan do not fit.
  virtual absl::StatusOr<std::unique_ptr<FlatnessRun>> StartFlatness(const FlatnessPlan& plan, const DrawStack& theta,
                                                                     const DrawStack& theta_a,
                                                                     std::shared_ptr<const ResidentDataset> data,
                                                                     int64_t first_row, int64_t num_rows) = 0;
};

}  // namespace chainfleet

// Turns draws into the per-chain sums of PartialPrediction. No torch in this header.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/prediction.h"

namespace chainfleet {

class ResidentDataset;

// The draws of one chain and one kind, stacked: theta is [num_draws, D] float32 in layout order, statistics of batch
// norm after the D parameters.
struct DrawStack {
  ChainId chain;
  DrawKind kind = DrawKind::kTheta;
  std::vector<double> weights;                                   // [S]
  std::vector<std::shared_ptr<const std::vector<float>>> theta;  // S vectors of D, or more
};

// Stateless but for device buffers. Not thread-safe.
class Predictor {
 public:
  // `device` and `module` as for ChainBatch. INVALID_ARGUMENT for a model this build lacks.
  static absl::StatusOr<std::unique_ptr<Predictor>> Create(std::shared_ptr<const PredictPlan> plan,
                                                           const std::string& device,
                                                           std::shared_ptr<const std::string> module = nullptr);
  virtual ~Predictor() = default;

  // Outputs and probabilities in float32, sums in float64: the same bits however the rows are cut into requests.
  // `members`: also what each draw says by itself. INVALID_ARGUMENT if shapes or types do not fit the plan.
  //
  // Draws are added in runs: the newest one, then the next 2, the next 4, ..., each run alone and then to the runs
  // before it. So the sums over the newest 1, 3, 7, ... draws, and those of the next ones, add up to the bits of one
  // call over all of them.
  virtual absl::StatusOr<PartialPrediction> Predict(const DrawStack& draws, const InputTensor& inputs,
                                                    bool members = false) = 0;

  // The same over rows of `data`; with `per_draw_scores` also held against its labels or targets.
  virtual absl::StatusOr<PartialPrediction> PredictRows(const DrawStack& draws, const ResidentDataset& data,
                                                        int64_t first_row, int64_t num_rows, bool per_draw_scores,
                                                        bool members = false) = 0;
};

}  // namespace chainfleet

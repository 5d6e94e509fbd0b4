// Measures the flatness of one draw (core/domain/flatness.h) in short parts, between which chains may step.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/status.h"
#include "core/domain/flatness.h"
#include "worker/numerics/predict/draw_stack.h"

namespace chainfleet {

class ResidentDataset;
struct ServedModel;

// On the CPU. Not thread-safe.
class FlatnessRun {
 public:
  virtual ~FlatnessRun() = default;

  // Computes one part: the gradients of a few rows, or the losses of all rows at one point of each line. True after the
  // last part. RESOURCE_EXHAUSTED: memory was short.
  virtual absl::StatusOr<bool> Advance() = 0;

  // Complete after Advance has returned true.
  virtual const Flatness& result() const = 0;
};

// Ranks 1 .. `size` of a diagonal to keep: at most `points`, log-spaced, including both ends.
std::vector<int64_t> FisherRanks(int64_t size, int64_t points);

// Uses rows [first_row, first_row + num_rows) of `data` and the newest draw of `theta`, which has one; `theta_a` may be
// empty. Gradients are float32, one example at a time (models/example_gradients.h). Their means and squared deviations
// are added in double, row after row (Welford, Technometrics 1962), so no bit depends on the parts or on threads. The
// random direction has the normals of key Fold(plan.seed, chain), stream kProbe. Errors: Predictor's.
absl::StatusOr<std::unique_ptr<FlatnessRun>> MakeFlatnessRun(std::shared_ptr<const ServedModel> model,
                                                             const FlatnessPlan& plan, const DrawStack& theta,
                                                             const DrawStack& theta_a,
                                                             std::shared_ptr<const ResidentDataset> data,
                                                             int64_t first_row, int64_t num_rows);

}  // namespace chainfleet

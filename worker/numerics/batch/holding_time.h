// Draws of Metropolis kernels. A state becomes one draw when the chain leaves it; its weight is the number of kept
// (thinned) steps for which it was held.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/domain/draw.h"
#include "worker/numerics/arena/theta_arena.h"

namespace chainfleet {

// The states held by the rows of a batch, in row order. Not thread-safe.
class HoldingTime {
 public:
  static constexpr int64_t kNumbers = 3;

  HoldingTime(std::shared_ptr<const Layout> layout, Device device) : held_(std::move(layout), device) {}

  void AddRow();
  // Removes `row`; the last row takes its place.
  void RemoveRow(int64_t row);
  // Keeps the first `rows`, also after an AddRow that threw.
  void Truncate(int64_t rows);

  void Moved(int64_t row) { rows_[row].moved = true; }

  // Called at a kept step: counts row `row` of `theta`. Returns the previous state if the row has moved away from it:
  // its theta, the last kept step at which it was held, and the number of kept steps as its weight.
  std::optional<Draw> Keep(int64_t row, int64_t step, const ThetaArena& theta);

  // Gives up the held state, if any.
  std::optional<Draw> Release(int64_t row);

  // For resume points: the arena, and the kNumbers numbers of a row.
  const ThetaArena& arena() const { return held_; }
  std::vector<double> Save(int64_t row) const;
  // `numbers` come from Save; numbers of another length mean that no state is held.
  void Restore(int64_t row, const std::vector<float>& theta, const std::vector<double>& numbers);

 private:
  struct Row {
    double weight = 0;
    int64_t step = 0;
    bool moved = false;  // since the last kept step
  };
  ThetaArena held_;
  std::vector<Row> rows_;
};

}  // namespace chainfleet

// Draws of Metropolis kernels: a state is drawn once, when it is left, and weighs the kept (thinned) steps it was held
// for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/numerics/arena/theta_arena.h"

namespace chainfleet {

// A state that was left, or is given up at a chain's end.
struct HeldDraw {
  std::vector<float> theta;  // [D]
  int64_t step = 0;          // the last kept step it was held at
  double weight = 0;         // the number of kept steps
};

// The states held by the rows of a batch, in row order. Not thread-safe.
class HoldingTime {
 public:
  static constexpr int64_t kNumbers = 3;

  HoldingTime(std::shared_ptr<const Layout> layout, Device device) : held_(std::move(layout), device) {}

  void AddRow();
  // The last row takes the place of `row`.
  void RemoveRow(int64_t row);
  // Keeps the first `rows`, also after an AddRow that threw.
  void Truncate(int64_t rows);

  void Moved(int64_t row) { rows_[row].moved = true; }

  // At a kept step: row `row` of `theta` is counted. Gives the state held before if the row has moved away from it.
  std::optional<HeldDraw> Keep(int64_t row, int64_t step, const ThetaArena& theta);

  // Gives up the state held, if any.
  std::optional<HeldDraw> Release(int64_t row);

  // For resume points: the arena, and kNumbers numbers of a row.
  const ThetaArena& arena() const { return held_; }
  std::vector<double> Save(int64_t row) const;
  // `numbers` as of Save; of another length they hold nothing.
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

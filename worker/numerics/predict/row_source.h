// The rows of a prediction, as a network's input.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "worker/numerics/dataset/corrupted_images.h"
#include "worker/numerics/dataset/input_rows.h"

namespace chainfleet {

// A view of stored rows, which must outlive it, changed by `corrupter` if there is one. Rows are changed a few at a
// time; a changed data set is never kept. Thread-safe.
class RowSource {
 public:
  // Row 0 is row `first` of `bytes` [any, input_shape...].
  RowSource(InputType type, const std::string& bytes, int64_t first, const std::vector<int64_t>& input_shape,
            const Normalisation& normalisation, const Corrupter* corrupter);

  int64_t row_size() const { return rows_.row_size(); }

  // Rows [start, start + count): they begin at the returned number in the returned rows, which are valid as long as
  // `scratch`. `again`: `scratch` is unchanged since the last call for these rows.
  std::pair<InputRows, int64_t> Read(int64_t start, int64_t count, std::vector<float>* scratch,
                                     bool again = false) const;

 private:
  const std::vector<int64_t>& input_shape_;
  const Normalisation& normalisation_;
  const Corrupter* const corrupter_;
  const int64_t first_;
  const InputRows rows_, stored_;  // standardised, and as stored
};

}  // namespace chainfleet

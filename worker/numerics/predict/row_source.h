// The rows that a prediction is about, as a network sees them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "worker/numerics/dataset/corrupted_images.h"
#include "worker/numerics/dataset/input_rows.h"

namespace chainfleet {

// A view of stored rows, which must outlive it, as `corrupter` leaves them if there is one: changed a few at a time, a
// changed data set is never kept. Thread-safe.
class RowSource {
 public:
  // Row 0 is row `first` of `bytes` [any, input_shape...].
  RowSource(InputType type, const std::string& bytes, int64_t first, const std::vector<int64_t>& input_shape,
            const Normalisation& normalisation, const Corrupter* corrupter);

  int64_t row_size() const { return rows_.row_size(); }

  // Rows [start, start + count): those from the given number on of what is returned, valid while `scratch` is. `again`:
  // `scratch` is as the last call for these rows left it.
  std::pair<InputRows, int64_t> Read(int64_t start, int64_t count, std::vector<float>* scratch,
                                     bool again = false) const;

 private:
  const std::vector<int64_t>& input_shape_;
  const Normalisation& normalisation_;
  const Corrupter* const corrupter_;
  const int64_t first_;
  const InputRows rows_, stored_;  // standardised, and before that
};

}  // namespace chainfleet

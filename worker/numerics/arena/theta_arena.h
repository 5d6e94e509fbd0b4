// The parameters of C chains in one flat float32 buffer [C, row_stride] on one device; gradient, momentum and theta_a
// are arenas of the same layout. No torch in this header: at::Tensor views of an arena are in tensor_view.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "worker/numerics/arena/device.h"
#include "worker/numerics/arena/layout.h"

namespace chainfleet {

// Movable; a deep copy only by Clone(). Rows start on 64 bytes. Not thread-safe, but distinct rows may be written by
// distinct threads. Allocation failures throw std::bad_alloc (CPU) or c10::Error (CUDA) to the edge of the runner.
class ThetaArena {
 public:
  ThetaArena(std::shared_ptr<const Layout> layout, Device device);
  ThetaArena(ThetaArena&&) = default;
  ThetaArena& operator=(ThetaArena&&) = default;

  const Layout& layout() const { return *layout_; }
  const std::shared_ptr<const Layout>& shared_layout() const { return layout_; }
  Device device() const { return device_; }
  int64_t rows() const { return rows_; }  // C
  int64_t row_stride() const { return layout_->row_stride(); }
  int64_t bytes() const { return capacity_ * row_stride() * static_cast<int64_t>(sizeof(float)); }  // on its device

  // Device memory. Moves when rows are added or removed: do not keep.
  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  float* row(int64_t r) { return data_.get() + r * row_stride(); }
  const float* row(int64_t r) const { return data_.get() + r * row_stride(); }

  // Appends a row of zeros.
  void AddRow();
  // Removes row `r`; the last row takes its place. Gives memory back when half of it is not used.
  void RemoveRow(int64_t r);
  // Keeps the first `rows`, or all if there are fewer; memory as in RemoveRow.
  void Truncate(int64_t rows);
  ThetaArena Clone() const;

  // The D parameters of row `r` from and to the host, in layout order without padding.
  std::vector<float> ReadRow(int64_t r) const;
  void WriteRow(int64_t r, const std::vector<float>& parameters);
  // Row `r` becomes a copy of row `r` of `other` (same layout and device).
  void CopyRow(int64_t r, const ThetaArena& other);

 private:
  void Resize(int64_t capacity);  // at least rows_

  std::shared_ptr<const Layout> layout_;
  Device device_;
  int64_t rows_ = 0;
  int64_t capacity_ = 0;
  std::shared_ptr<float> data_;
};

}  // namespace chainfleet

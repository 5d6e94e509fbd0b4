// The parameters of C chains in one flat float32 buffer [C, row_stride] on one device. Gradient, momentum and theta_a
// are arenas of the same layout. This header includes no torch: tensor_view.h has the at::Tensor views.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "worker/numerics/arena/device.h"
#include "worker/numerics/arena/layout.h"

namespace chainfleet {

// Movable; only Clone() makes a deep copy. Rows start on 64 bytes. Not thread-safe, but distinct threads may write
// distinct rows. Allocation failures throw std::bad_alloc (CPU) or c10::Error (CUDA), which the runner catches.
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

  // Device memory. The address changes when rows are added or removed: do not keep it.
  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  float* row(int64_t r) { return data_.get() + r * row_stride(); }
  const float* row(int64_t r) const { return data_.get() + r * row_stride(); }

  // Appends a row of zeros.
  void AddRow();
  // Removes row `r`; the last row takes its place. Frees memory when half of it is unused.
  void RemoveRow(int64_t r);
  // Keeps the first `rows` rows, or all if there are fewer. Frees memory as RemoveRow does.
  void Truncate(int64_t rows);
  ThetaArena Clone() const;

  // Copy the D parameters of row `r` to and from the host, in layout order without padding.
  std::vector<float> ReadRow(int64_t r) const;
  void WriteRow(int64_t r, const std::vector<float>& parameters);
  // Copies row `r` of `other` (same layout and device) to row `r`.
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

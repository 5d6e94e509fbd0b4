#include "worker/numerics/arena/theta_arena.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/base/check.h"
#include "worker/numerics/arena/tensor_view.h"
#include "worker/numerics/tensors/torch_errors.h"

namespace chainfleet {

ThetaArena::ThetaArena(std::shared_ptr<const Layout> layout, Device device)
    : layout_(std::move(layout)), device_(device) {}

void ThetaArena::AddRow() {
  // Grow by a quarter only: while rows move, the device holds both buffers, and it may be nearly full.
  if (rows_ == capacity_) Resize(capacity_ + std::max<int64_t>(1, capacity_ / 4));
  ++rows_;
  RowsView(*this)[rows_ - 1].zero_();
}

void ThetaArena::RemoveRow(int64_t r) {
  CHAINFLEET_CHECK(r >= 0 && r < rows_) << "row " << r << " of " << rows_;
  if (r != rows_ - 1) {
    const at::Tensor rows = RowsView(*this);
    rows[r].copy_(rows[rows_ - 1]);
  }
  Truncate(rows_ - 1);
}

void ThetaArena::Truncate(int64_t rows) {
  rows_ = std::min(rows_, rows);
  if (rows_ > capacity_ / 2 || rows_ == capacity_) return;
  // If there is no memory for both buffers, keep the larger one.
  CatchTorch("an arena that shrinks", [&] {
    Resize(rows_);
    return absl::OkStatus();
  }).IgnoreError();
}

void ThetaArena::Resize(int64_t capacity) {
  // LibTorch's allocators align to 64 bytes on the CPU and 512 on a GPU.
  auto owner = std::make_shared<at::Tensor>(
      at::zeros({capacity, row_stride()}, at::TensorOptions().dtype(at::kFloat).device(TorchDevice(device_))));
  if (rows_ > 0) owner->narrow(0, 0, rows_).copy_(RowsView(*this));
  float* data = owner->data_ptr<float>();
  data_ = std::shared_ptr<float>(std::move(owner), data);
  capacity_ = capacity;
}

ThetaArena ThetaArena::Clone() const {
  ThetaArena copy(layout_, device_);
  for (int64_t r = 0; r < rows_; ++r) copy.AddRow();
  if (rows_ > 0) RowsView(copy).copy_(RowsView(*this));
  return copy;
}

std::vector<float> ThetaArena::ReadRow(int64_t r) const {
  std::vector<float> parameters(layout_->num_parameters());
  const at::Tensor row = RowsView(*this)[r].cpu();
  layout_->Pack(row.data_ptr<float>(), parameters.data());
  return parameters;
}

void ThetaArena::WriteRow(int64_t r, const std::vector<float>& parameters) {
  CHAINFLEET_CHECK(static_cast<int64_t>(parameters.size()) == layout_->num_parameters());
  at::Tensor row = at::zeros({row_stride()}, at::kFloat);
  layout_->Unpack(parameters.data(), row.data_ptr<float>());
  RowsView(*this)[r].copy_(row);
}

void ThetaArena::CopyRow(int64_t r, const ThetaArena& other) {
  if (device_.is_cuda()) {
    RowsView(*this)[r].copy_(RowsView(other)[r]);
  } else {
    std::copy_n(other.row(r), row_stride(), row(r));  // a tensor copy costs microseconds even for short rows
  }
}

}  // namespace chainfleet

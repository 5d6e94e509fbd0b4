#include "worker/numerics/batch/holding_time.h"

namespace chainfleet {

void HoldingTime::AddRow() {
  held_.AddRow();
  rows_.emplace_back();
}

void HoldingTime::Truncate(int64_t rows) {
  held_.Truncate(rows);
  rows_.resize(static_cast<size_t>(rows));
}

void HoldingTime::RemoveRow(int64_t row) {
  held_.RemoveRow(row);
  rows_[row] = rows_.back();
  rows_.pop_back();
}

std::optional<Draw> HoldingTime::Keep(int64_t row, int64_t step, const ThetaArena& theta) {
  std::optional<Draw> left;
  if (rows_[row].moved) left = Release(row);
  if (rows_[row].weight == 0) held_.CopyRow(row, theta);
  rows_[row] = {rows_[row].weight + 1, step, false};
  return left;
}

std::optional<Draw> HoldingTime::Release(int64_t row) {
  if (rows_[row].weight == 0) return std::nullopt;
  Draw draw{rows_[row].step, rows_[row].weight, {held_.ReadRow(row)}};
  rows_[row] = {};
  return draw;
}

std::vector<double> HoldingTime::Save(int64_t row) const {
  return {rows_[row].weight, static_cast<double>(rows_[row].step), rows_[row].moved ? 1.0 : 0.0};
}

void HoldingTime::Restore(int64_t row, const std::vector<float>& theta, const std::vector<double>& numbers) {
  if (static_cast<int64_t>(numbers.size()) != kNumbers) return;
  held_.WriteRow(row, theta);
  rows_[row] = {numbers[0], static_cast<int64_t>(numbers[1]), numbers[2] != 0};
}

}  // namespace chainfleet

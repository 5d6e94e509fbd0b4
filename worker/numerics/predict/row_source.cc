#include "worker/numerics/predict/row_source.h"

namespace chainfleet {

RowSource::RowSource(InputType type, const std::string& bytes, int64_t first, const std::vector<int64_t>& input_shape,
                     const Normalisation& normalisation, const Corrupter* corrupter)
    : input_shape_(input_shape),
      normalisation_(normalisation),
      corrupter_(corrupter),
      first_(first),
      rows_(type, bytes.data(), input_shape, normalisation),
      stored_(type, bytes.data(), input_shape, {}) {}

std::pair<InputRows, int64_t> RowSource::Read(int64_t start, int64_t count, std::vector<float>* scratch,
                                              bool again) const {
  if (corrupter_ == nullptr) return {rows_, first_ + start};
  scratch->resize(count * row_size());
  for (int64_t i = 0; i < count && !again; ++i) {
    float* const image = scratch->data() + i * row_size();
    stored_.Read(first_ + start + i, image);
    corrupter_->Change(first_ + start + i, image);
  }
  const auto* bytes = reinterpret_cast<const char*>(scratch->data());
  return {InputRows(InputType::kFloat32, bytes, input_shape_, normalisation_), 0};
}

}  // namespace chainfleet

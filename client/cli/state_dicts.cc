#include "client/cli/state_dicts.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/strip.h"
#include "core/store/draw_codec/safetensors.h"

namespace chainfleet {
namespace {

constexpr char kDraws[] = "theta/";

bool AllOne(const TensorView& weights) {
  for (int64_t at = 0; at < weights.size_bytes; at += static_cast<int64_t>(sizeof(double))) {
    double weight = 0;
    std::memcpy(&weight, weights.data + at, sizeof weight);
    if (weight != 1) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> StateDictsOf(const std::string& bytes) {
  CHAINFLEET_ASSIGN_OR_RETURN(const Safetensors file, ParseSafetensors(bytes));
  std::vector<TensorView> drawn;
  for (const TensorView& tensor : file.tensors) {
    if (tensor.name.starts_with(kDraws) && !tensor.shape.empty()) drawn.push_back(tensor);
  }
  if (drawn.empty()) return std::vector<std::string>{bytes};
  const TensorView* const weights = file.Find("weight");
  if (weights != nullptr && (weights->type != TensorType::kFloat64 || !AllOne(*weights))) {
    return absl::InvalidArgumentError("its draws have weights: export them without --weighted, as often as they count");
  }
  const int64_t draws = drawn.front().shape.front();
  const auto is_other = [draws](const TensorView& tensor) { return tensor.shape.front() != draws; };
  if (std::ranges::any_of(drawn, is_other)) {
    return absl::InvalidArgumentError("its tensors have different numbers of draws");
  }
  if (draws > static_cast<int64_t>(bytes.size())) return absl::InvalidArgumentError("its draws have no values");
  std::vector<std::string> state_dicts;
  for (int64_t draw = 0; draw < draws; ++draw) {
    std::vector<TensorView> tensors = drawn;
    for (TensorView& tensor : tensors) {
      tensor.name = std::string(absl::StripPrefix(tensor.name, kDraws));
      tensor.shape.erase(tensor.shape.begin());
      tensor.size_bytes /= draws;
      tensor.data += draw * tensor.size_bytes;
    }
    state_dicts.push_back(WriteSafetensors(tensors, {}));
  }
  return state_dicts;
}

}  // namespace chainfleet

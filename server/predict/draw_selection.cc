#include "server/predict/draw_selection.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace chainfleet {
namespace {

std::string Render(const std::vector<int64_t>& shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

std::string RenderWanted(const PredictPlan& plan) {
  return absl::StrCat("[n", plan.input_shape.empty() ? "" : ", ", absl::StrJoin(plan.input_shape, ", "), "]");
}

// A network answers NaN with NaN, which must not be taken for an answer.
absl::Status CheckFinite(const InputTensor& inputs, uint64_t row_bytes) {
  if (inputs.type != InputType::kFloat32) return absl::OkStatus();
  for (size_t offset = 0; offset < inputs.bytes.size(); offset += sizeof(float)) {
    float value;
    std::memcpy(&value, inputs.bytes.data() + offset, sizeof value);
    if (!std::isfinite(value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("row ", offset / row_bytes, " of the inputs holds ", value, ": inputs must be finite"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<DrawKind>> ChooseKinds(const PinnedDraws& draws, const std::vector<DrawKind>& asked) {
  if (!draws.plan->model.has_data()) {
    return absl::InvalidArgumentError("job " + draws.plan->job +
                                      " samples an analytic potential: it makes no predictions");
  }
  for (const DrawKind kind : asked) {
    if (std::ranges::count(draws.kinds, kind) > 0) continue;
    const auto name = [](std::string* out, DrawKind k) { out->append(ToString(k)); };
    return absl::InvalidArgumentError(absl::StrCat("job ", draws.plan->job, " keeps no ", ToString(kind),
                                                   ": its kinds are ", absl::StrJoin(draws.kinds, ", ", name)));
  }
  std::vector<DrawKind> kinds = asked.empty() ? draws.kinds : asked;
  std::ranges::sort(kinds);
  kinds.erase(std::ranges::unique(kinds).begin(), kinds.end());
  return kinds;
}

absl::Status CheckInputs(const InputTensor& inputs, const PredictPlan& plan) {
  const std::vector<int64_t>& shape = inputs.shape;
  if (shape.empty() || shape.front() < 1 ||
      !std::equal(shape.begin() + 1, shape.end(), plan.input_shape.begin(), plan.input_shape.end())) {
    return absl::InvalidArgumentError(absl::StrCat("inputs have shape ", Render(shape), ": job ", plan.job, " takes ",
                                                   RenderWanted(plan), " with n >= 1"));
  }
  // Divided, not multiplied: a huge n must not overflow into a size that fits.
  uint64_t row_bytes = inputs.type == InputType::kUint8 ? sizeof(uint8_t) : sizeof(float);
  for (const int64_t extent : plan.input_shape) row_bytes *= static_cast<uint64_t>(extent);
  if (inputs.bytes.size() % row_bytes != 0 || inputs.bytes.size() / row_bytes != static_cast<uint64_t>(shape.front())) {
    return absl::InvalidArgumentError(absl::StrCat("inputs of shape ", Render(shape), " have ", inputs.bytes.size(),
                                                   " bytes: a row of this type has ", row_bytes));
  }
  return CheckFinite(inputs, row_bytes);
}

absl::Status CheckDataset(const Dataset& dataset, const PredictPlan& plan) {
  if (dataset.input_shape != plan.input_shape || dataset.num_rows < 1) {
    return absl::InvalidArgumentError(absl::StrCat("data set ", dataset.name, " has ", dataset.num_rows,
                                                   " rows of shape ", Render(dataset.input_shape), ": job ", plan.job,
                                                   " takes ", Render(plan.input_shape)));
  }
  if (plan.num_classes == 0 && dataset.target_type == TargetType::kLabels) {
    return absl::InvalidArgumentError(
        absl::StrCat("data set ", dataset.name, " has labels: job ", plan.job, " learns float32 targets"));
  }
  return absl::OkStatus();
}

absl::Status CheckEnough(const PinnedDraws& draws, int64_t readable, int64_t needed) {
  if (readable >= std::max<int64_t>(needed, 1)) return absl::OkStatus();
  return WithReason(
      absl::FailedPreconditionError(absl::StrCat("job ", draws.plan->job, " version ", draws.version, " has ", readable,
                                                 " readable draws, ", std::max<int64_t>(needed, 1), " are needed")),
      "TOO_FEW_DRAWS");
}

int64_t NumDraws(const PinnedDraws& draws) {
  int64_t count = 0;
  for (const ChainDraws& chain : draws.chains) count += chain.num_draws;
  return count;
}

}  // namespace chainfleet

#include "worker/numerics/predict/draw_pass.h"

#include <algorithm>

namespace chainfleet {

void AddOutputs(const ServedModel& model, const PassWork& work, size_t stack, int64_t s, int64_t start, int64_t count,
                const float* outputs, float* scratch) {
  const Likelihood& likelihood = *model.likelihood;
  PredictionSums& sums = (*work.sums)[stack];
  for (int64_t i = 0; i < count; i += kLanes) {
    LaneExamples examples{.outputs = outputs + i * likelihood.num_outputs()};
    examples.targets = work.targets == nullptr ? nullptr : work.targets + start + i;
    examples.count = std::min(kLanes, count - i);
    if (likelihood.has_log_variance()) {
      examples.log_variance = (*work.stacks[stack].theta[static_cast<size_t>(s)])[model.log_variance_at()];
    }
    sums.Add(examples, start + i, s, scratch);
  }
  sums.EndDraw(start, count, s);
}

}  // namespace chainfleet

#include "worker/numerics/predictor.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "worker/numerics/dataset/resident_dataset.h"
#include "worker/numerics/device.h"
#include "worker/numerics/flatness_run.h"
#include "worker/numerics/predict/draw_pass.h"
#include "worker/numerics/predict/stack_cache.h"
#include "worker/numerics/tensor_view.h"
#include "worker/numerics/torch_errors.h"

namespace chainfleet {
namespace {

// Checks what comes in; a DrawPass computes.
class PassPredictor final : public Predictor {
 public:
  PassPredictor(std::shared_ptr<const ServedModel> model, std::unique_ptr<DrawPass> pass)
      : model_(std::move(model)), plan_(model_->plan), pass_(std::move(pass)) {}

  absl::StatusOr<std::vector<PartialPrediction>> Predict(const std::vector<DrawStack>& stacks,
                                                         const InputTensor& inputs, bool members,
                                                         std::shared_ptr<DeviceRows>* kept) override {
    const std::vector<int64_t>& shape = inputs.shape;
    if (shape.empty() ||
        !std::equal(shape.begin() + 1, shape.end(), plan_->input_shape.begin(), plan_->input_shape.end())) {
      return absl::InvalidArgumentError(absl::StrCat("inputs: must be [n, ", absl::StrJoin(plan_->input_shape, ", "),
                                                     "] for job ", plan_->job, ", are [", absl::StrJoin(shape, ", "),
                                                     "]"));
    }
    const int64_t item = inputs.type == InputType::kUint8 ? 1 : sizeof(float);
    const int64_t size = shape[0] * NumValues(plan_->input_shape) * item;
    if (shape[0] < 0 || static_cast<int64_t>(inputs.bytes.size()) != size) {
      return absl::InvalidArgumentError(absl::StrCat("inputs: [", absl::StrJoin(shape, ", "), "] of ", item,
                                                     "-byte values takes ", size, " bytes, got ", inputs.bytes.size()));
    }
    const RowSource rows(inputs.type, inputs.bytes, 0, plan_->input_shape, plan_->normalisation, nullptr);
    return Run({.stacks = stacks, .rows = rows, .num_rows = shape[0], .kept = kept}, members);
  }

  absl::StatusOr<std::vector<PartialPrediction>> PredictRows(const std::vector<DrawStack>& stacks,
                                                             const ResidentDataset& data, int64_t first_row,
                                                             int64_t num_rows, bool per_draw_scores, bool members,
                                                             const Corruption* corruption,
                                                             std::shared_ptr<DeviceRows>* kept) override {
    const Dataset& description = data.description();
    CHAINFLEET_RETURN_IF_ERROR(model_->CheckRows(description, first_row, num_rows));
    if (per_draw_scores) CHAINFLEET_RETURN_IF_ERROR(model_->CheckTargets(description));
    std::optional<Corrupter> corrupter;
    if (corruption != nullptr) {
      CHAINFLEET_ASSIGN_OR_RETURN(corrupter, Corrupter::Create(*corruption, description.input_shape));
    }
    const std::vector<float> targets = per_draw_scores ? data.TargetNumbers() : std::vector<float>();
    const RowSource rows(description.input_type, data.input_bytes(), first_row, plan_->input_shape,
                         plan_->normalisation, corrupter ? &*corrupter : nullptr);
    const float* const of_rows = per_draw_scores ? targets.data() + first_row : nullptr;
    return Run({.stacks = stacks, .rows = rows, .num_rows = num_rows, .targets = of_rows, .kept = kept}, members);
  }

  absl::StatusOr<std::unique_ptr<FlatnessRun>> StartFlatness(const FlatnessPlan& plan, const DrawStack& theta,
                                                             const DrawStack& theta_a,
                                                             std::shared_ptr<const ResidentDataset> data,
                                                             int64_t first_row, int64_t num_rows) override {
    return MakeFlatnessRun(model_, plan, theta, theta_a, std::move(data), first_row, num_rows);
  }

 private:
  // `work` lacks the sums.
  absl::StatusOr<std::vector<PartialPrediction>> Run(PassWork work, bool members) {
    const std::vector<DrawStack>& stacks = work.stacks;
    for (const DrawStack& draws : stacks) CHAINFLEET_RETURN_IF_ERROR(model_->CheckDraws(draws));
    const auto run = [&]() -> absl::StatusOr<std::vector<PartialPrediction>> {
      std::vector<PartialPrediction> sums;
      for (const DrawStack& draws : stacks) sums.push_back(EmptySums(draws, work.num_rows));
      std::vector<PredictionSums> adders;
      for (size_t i = 0; i < stacks.size(); ++i) {
        adders.emplace_back(model_->likelihood.get(), stacks[i].weights, work.targets != nullptr, members, &sums[i]);
      }
      if (stacks.empty()) return sums;
      work.sums = &adders;
      pass_->Run(work);
      for (PredictionSums& adder : adders) adder.Finish();
      return sums;
    };
    return CatchTorch(absl::StrCat("a prediction of ", work.num_rows, " rows"), run);
  }

  PartialPrediction EmptySums(const DrawStack& draws, int64_t n) const {
    PartialPrediction sums;
    sums.chain = draws.chain;
    sums.kind = draws.kind;
    sums.num_draws = static_cast<int64_t>(draws.theta.size());
    sums.num_rows = n;
    sums.num_classes = plan_->num_classes;
    return sums;
  }

  const std::shared_ptr<const ServedModel> model_;
  const std::shared_ptr<const PredictPlan> plan_;
  const std::unique_ptr<DrawPass> pass_;
};

}  // namespace

std::unique_ptr<Predictor> MakePredictor(std::shared_ptr<const ServedModel> model, std::unique_ptr<DrawPass> pass) {
  return std::make_unique<PassPredictor>(std::move(model), std::move(pass));
}

absl::StatusOr<std::shared_ptr<StackCache>> MakeStackCache(const std::string& device) {
  CHAINFLEET_ASSIGN_OR_RETURN(const Device parsed, ParseDevice(device));
  return parsed.is_cuda() ? std::make_shared<StackCache>(TorchDevice(parsed)) : nullptr;
}

absl::StatusOr<std::unique_ptr<Predictor>> Predictor::Create(std::shared_ptr<const PredictPlan> plan,
                                                             const std::string& device,
                                                             std::shared_ptr<const std::string> module,
                                                             std::shared_ptr<StackCache> stacks) {
  if (stacks == nullptr) {
    CHAINFLEET_ASSIGN_OR_RETURN(stacks, MakeStackCache(device));
  }
  return CatchTorch("a predictor", [&]() -> absl::StatusOr<std::unique_ptr<Predictor>> {
    CHAINFLEET_ASSIGN_OR_RETURN(const auto model, MakeServedModel(std::move(plan), module.get()));
    // Modules go draw by draw anyhow, and an analytic regression is one product.
    const bool stacked = stacks != nullptr && model->plan->model.is_network() && model->script == nullptr;
    return MakePredictor(model, stacked ? MakeStackedPass(model, stacks) : MakeBlockPass(model));
  });
}

}  // namespace chainfleet

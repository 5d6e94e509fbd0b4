#include "worker/numerics/predict/predictor.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "worker/numerics/arena/device.h"
#include "worker/numerics/arena/tensor_view.h"
#include "worker/numerics/dataset/resident_dataset.h"
#include "worker/numerics/predict/draw_pass.h"
#include "worker/numerics/predict/flatness_run.h"
#include "worker/numerics/predict/input_gradients.h"
#include "worker/numerics/predict/stack_cache.h"
#include "worker/numerics/tensors/torch_errors.h"

namespace chainfleet {
namespace {

absl::StatusOr<std::vector<PartialPrediction>> RunToItsEnd(absl::StatusOr<std::unique_ptr<PredictionRun>> run) {
  CHAINFLEET_RETURN_IF_ERROR(run.status());
  CHAINFLEET_RETURN_IF_ERROR((*run)->Advance([] { return false; }).status());
  return (*run)->Take();
}

// The rows of a prediction and their targets.
struct AskedRows {
  InputType type;
  const std::string& bytes;
  int64_t first = 0, count = 0;
  std::optional<Corrupter> corrupter;
  std::vector<float> targets;  // targets of the whole data set, or empty
};

class PassRun final : public PredictionRun {
 public:
  PassRun(std::shared_ptr<const ServedModel> model, std::shared_ptr<DrawPass> pass, std::vector<DrawStack> stacks,
          AskedRows asked, bool members, std::shared_ptr<DeviceRows>* kept)
      : model_(std::move(model)),
        pass_(std::move(pass)),
        stacks_(std::move(stacks)),
        asked_(std::move(asked)),
        rows_(asked_.type, asked_.bytes, asked_.first, model_->plan->input_shape, model_->plan->normalisation,
              asked_.corrupter ? &*asked_.corrupter : nullptr),
        kept_(kept) {
    for (const DrawStack& draws : stacks_) sums_.push_back(SumsFor(draws));
    const bool scores = !asked_.targets.empty();
    for (size_t i = 0; i < stacks_.size(); ++i) {
      adders_.emplace_back(model_->likelihood.get(), stacks_[i].weights, scores, members, &sums_[i]);
    }
  }

  absl::StatusOr<bool> Advance(const Pause& pause) override {
    return CatchTorch(absl::StrCat("a prediction of ", asked_.count, " rows"), [&]() -> absl::StatusOr<bool> {
      const float* const targets = asked_.targets.empty() ? nullptr : asked_.targets.data() + asked_.first;
      const PassWork work = {stacks_, rows_, asked_.count, targets, &adders_, kept_};
      if (!stacks_.empty() && !pass_->Run(work, pause, &progress_)) return false;
      for (PredictionSums& adder : adders_) adder.Finish();
      return true;
    });
  }

  std::vector<PartialPrediction> Take() override { return std::move(sums_); }

 private:
  PartialPrediction SumsFor(const DrawStack& draws) const {
    PartialPrediction sums;
    sums.chain = draws.chain;
    sums.kind = draws.kind;
    sums.num_draws = static_cast<int64_t>(draws.theta.size());
    sums.num_rows = asked_.count;
    sums.sums = EmptySums(model_->plan->targets);
    return sums;
  }

  const std::shared_ptr<const ServedModel> model_;
  const std::shared_ptr<DrawPass> pass_;
  const std::vector<DrawStack> stacks_;
  const AskedRows asked_;
  const RowSource rows_;
  std::shared_ptr<DeviceRows>* const kept_;
  std::vector<PartialPrediction> sums_;
  std::vector<PredictionSums> adders_;
  PassProgress progress_;
};

// Checks the arguments; a DrawPass computes.
class PassPredictor final : public Predictor {
 public:
  PassPredictor(std::shared_ptr<const ServedModel> model, std::unique_ptr<DrawPass> pass)
      : model_(std::move(model)), plan_(model_->plan), pass_(std::move(pass)) {}

  absl::StatusOr<std::unique_ptr<PredictionRun>> Start(std::vector<DrawStack> stacks, const InputTensor& inputs,
                                                       bool members, std::shared_ptr<DeviceRows>* kept) override {
    const std::vector<int64_t>& shape = inputs.shape;
    if (shape.empty() ||
        !std::equal(shape.begin() + 1, shape.end(), plan_->input_shape.begin(), plan_->input_shape.end())) {
      return absl::InvalidArgumentError(absl::StrCat("inputs: must be [n, ", absl::StrJoin(plan_->input_shape, ", "),
                                                     "] for job ", plan_->job, ", are [", absl::StrJoin(shape, ", "),
                                                     "]"));
    }
    const int64_t item = ItemBytes(inputs.type);
    const int64_t size = shape[0] * NumValues(plan_->input_shape) * item;
    if (shape[0] < 0 || static_cast<int64_t>(inputs.bytes.size()) != size) {
      return absl::InvalidArgumentError(absl::StrCat("inputs: [", absl::StrJoin(shape, ", "), "] of ", item,
                                                     "-byte values takes ", size, " bytes, got ", inputs.bytes.size()));
    }
    return StartPass(std::move(stacks), {inputs.type, inputs.bytes, 0, shape[0], {}, {}}, members, kept);
  }

  absl::Status AddGradients(const std::vector<DrawStack>& stacks, const InputTensor& inputs,
                            std::vector<PartialPrediction>* sums) const override {
    return CatchTorch("gradients by the inputs", [&]() -> absl::Status {
      for (size_t i = 0; i < stacks.size(); ++i) {
        CHAINFLEET_RETURN_IF_ERROR(AddInputGradients(*model_, stacks[i], inputs, &(*sums)[i]));
      }
      return absl::OkStatus();
    });
  }

  absl::StatusOr<std::unique_ptr<PredictionRun>> StartRows(std::vector<DrawStack> stacks, const ResidentDataset& data,
                                                           int64_t first_row, int64_t num_rows, bool per_draw_scores,
                                                           bool members, const Corruption* corruption,
                                                           std::shared_ptr<DeviceRows>* kept) override {
    const Dataset& description = data.description();
    CHAINFLEET_RETURN_IF_ERROR(model_->CheckRows(description, first_row, num_rows));
    if (per_draw_scores) CHAINFLEET_RETURN_IF_ERROR(model_->CheckTargets(description));
    AskedRows asked = {description.input_type, data.input_bytes(), first_row, num_rows, {}, {}};
    if (corruption != nullptr) {
      CHAINFLEET_ASSIGN_OR_RETURN(asked.corrupter, Corrupter::Create(*corruption, description.input_shape));
    }
    if (per_draw_scores) asked.targets = data.TargetNumbers();
    return StartPass(std::move(stacks), std::move(asked), members, kept);
  }

  absl::StatusOr<std::unique_ptr<FlatnessRun>> StartFlatness(const FlatnessPlan& plan, const DrawStack& theta,
                                                             const DrawStack& theta_a,
                                                             std::shared_ptr<const ResidentDataset> data,
                                                             int64_t first_row, int64_t num_rows) override {
    return MakeFlatnessRun(model_, plan, theta, theta_a, std::move(data), first_row, num_rows);
  }

 private:
  absl::StatusOr<std::unique_ptr<PredictionRun>> StartPass(std::vector<DrawStack> stacks, AskedRows asked, bool members,
                                                           std::shared_ptr<DeviceRows>* kept) const {
    for (const DrawStack& draws : stacks) CHAINFLEET_RETURN_IF_ERROR(model_->CheckDraws(draws));
    return CatchTorch("the sums of a prediction", [&]() -> absl::StatusOr<std::unique_ptr<PredictionRun>> {
      return std::make_unique<PassRun>(model_, pass_, std::move(stacks), std::move(asked), members, kept);
    });
  }

  const std::shared_ptr<const ServedModel> model_;
  const std::shared_ptr<const PredictPlan> plan_;
  const std::shared_ptr<DrawPass> pass_;
};

}  // namespace

std::unique_ptr<Predictor> MakePredictor(std::shared_ptr<const ServedModel> model, std::unique_ptr<DrawPass> pass) {
  return std::make_unique<PassPredictor>(std::move(model), std::move(pass));
}

absl::StatusOr<std::vector<PartialPrediction>> Predictor::Predict(std::vector<DrawStack> stacks,
                                                                  const InputTensor& inputs, bool members,
                                                                  std::shared_ptr<DeviceRows>* kept) {
  return RunToItsEnd(Start(std::move(stacks), inputs, members, kept));
}

absl::StatusOr<std::vector<PartialPrediction>> Predictor::PredictRows(std::vector<DrawStack> stacks,
                                                                      const ResidentDataset& data, int64_t first_row,
                                                                      int64_t num_rows, bool per_draw_scores,
                                                                      bool members, const Corruption* corruption,
                                                                      std::shared_ptr<DeviceRows>* kept) {
  return RunToItsEnd(
      StartRows(std::move(stacks), data, first_row, num_rows, per_draw_scores, members, corruption, kept));
}

absl::StatusOr<std::shared_ptr<StackCache>> MakeStackCache(const std::string& device) {
  CHAINFLEET_ASSIGN_OR_RETURN(const Device parsed, ParseDevice(device));
  return parsed.is_cuda() ? std::make_shared<StackCache>(TorchDevice(parsed)) : nullptr;
}

absl::StatusOr<std::unique_ptr<Predictor>> Predictor::Create(std::shared_ptr<const PredictPlan> plan,
                                                             const std::string& device,
                                                             std::shared_ptr<const ModelFile> module,
                                                             std::shared_ptr<StackCache> stacks) {
  if (stacks == nullptr) {
    CHAINFLEET_ASSIGN_OR_RETURN(stacks, MakeStackCache(device));
  }
  return CatchTorch("a predictor", [&]() -> absl::StatusOr<std::unique_ptr<Predictor>> {
    CHAINFLEET_ASSIGN_OR_RETURN(const auto model, MakeServedModel(std::move(plan), module.get()));
    // Modules run draw by draw anyway, and an analytic regression is one product.
    const bool stacked = stacks != nullptr && model->plan->model.is_network() && model->script == nullptr;
    return MakePredictor(model, stacked ? MakeStackedPass(model, stacks) : MakeBlockPass(model));
  });
}

}  // namespace chainfleet

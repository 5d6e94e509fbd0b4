#include "worker/numerics/predictor.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "worker/numerics/dataset/resident_dataset.h"
#include "worker/numerics/device.h"
#include "worker/numerics/likelihoods/likelihood.h"
#include "worker/numerics/models/block_network.h"
#include "worker/numerics/models/fused_network.h"
#include "worker/numerics/models/scripted_network.h"
#include "worker/numerics/models/single_threaded.h"
#include "worker/numerics/prediction_sums.h"
#include "worker/numerics/torch_errors.h"

namespace chainfleet {
namespace {

// On the CPU whatever the device: a prediction is forward only, and its bits are promised. Each image's numbers are
// computed alone (models/block_network.h), so cutting rows into blocks and requests changes no bit.
class BlockPredictor final : public Predictor {
 public:
  // `draw_size`: parameters and statistics.
  BlockPredictor(std::shared_ptr<const PredictPlan> plan, const std::vector<ParameterShape>& parameters,
                 int64_t draw_size, std::unique_ptr<const Likelihood> likelihood,
                 std::function<std::unique_ptr<BlockNetwork>()> make_block)
      : plan_(std::move(plan)),
        draw_size_(draw_size),
        likelihood_(std::move(likelihood)),
        log_variance_at_(parameters.back().offset),
        make_block_(std::move(make_block)) {}

  absl::StatusOr<PartialPrediction> Predict(const DrawStack& draws, const InputTensor& inputs,
                                            bool members) override {
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
    return Run(draws, inputs.type, inputs.bytes, 0, shape[0], nullptr, members);
  }

  absl::StatusOr<PartialPrediction> PredictRows(const DrawStack& draws, const ResidentDataset& data, int64_t first_row,
                                                int64_t num_rows, bool per_draw_scores, bool members) override {
    const Dataset& description = data.description();
    if (description.input_shape != plan_->input_shape) {
      return absl::InvalidArgumentError(absl::StrCat("data set ", description.name, ": inputs must be [",
                                                     absl::StrJoin(plan_->input_shape, ", "), "] for job ", plan_->job,
                                                     ", are [", absl::StrJoin(description.input_shape, ", "), "]"));
    }
    if (first_row < 0 || num_rows < 0 || first_row > description.num_rows - num_rows) {
      return absl::InvalidArgumentError(absl::StrCat("data set ", description.name, " has ", description.num_rows,
                                                     " rows, asked for ", num_rows, " from ", first_row));
    }
    if (per_draw_scores) CHAINFLEET_RETURN_IF_ERROR(CheckTargets(description));
    const std::vector<float> targets = per_draw_scores ? data.TargetNumbers() : std::vector<float>();
    return Run(draws, description.input_type, data.input_bytes(), first_row, num_rows,
               per_draw_scores ? targets.data() : nullptr, members);
  }

 private:
  absl::Status CheckTargets(const Dataset& dataset) const {
    const bool numbers = dataset.target_type == TargetType::kFloat32;
    if (numbers != (plan_->num_classes == 0)) {
      return absl::InvalidArgumentError(absl::StrCat("data set ", dataset.name, " has ",
                                                     numbers ? "float32 targets" : "labels", ", job ", plan_->job,
                                                     " learns ", numbers ? "classes" : "numbers"));
    }
    if (dataset.num_classes <= plan_->num_classes) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("data set ", dataset.name, " has ", dataset.num_classes,
                                                   " classes, job ", plan_->job, " knows ", plan_->num_classes));
  }

  absl::Status CheckDraws(const DrawStack& draws) const {
    if (draws.weights.size() != draws.theta.size()) {
      return absl::InvalidArgumentError(absl::StrCat("chain ", ToString(draws.chain), ": ", draws.theta.size(),
                                                     " draws, ", draws.weights.size(), " weights"));
    }
    for (const auto& theta : draws.theta) {
      if (static_cast<int64_t>(theta->size()) != draw_size_) {
        return absl::InvalidArgumentError(absl::StrCat("chain ", ToString(draws.chain), ": a draw has ", theta->size(),
                                                       " parameters, the model of job ", plan_->job, " has ",
                                                       draw_size_));
      }
    }
    return absl::OkStatus();
  }

  // Rows [first, first + n) of `bytes`; `targets` of row 0 on, or null.
  absl::StatusOr<PartialPrediction> Run(const DrawStack& draws, InputType type, const std::string& bytes, int64_t first,
                                        int64_t n, const float* targets, bool members) {
    CHAINFLEET_RETURN_IF_ERROR(CheckDraws(draws));
    PartialPrediction sums;
    sums.chain = draws.chain;
    sums.kind = draws.kind;
    sums.num_draws = static_cast<int64_t>(draws.theta.size());
    sums.num_rows = n;
    sums.num_classes = plan_->num_classes;
    const InputRows rows(type, bytes.data(), plan_->input_shape, plan_->normalisation);
    return CatchTorch(absl::StrCat("a prediction of ", n, " rows"), [&]() -> absl::StatusOr<PartialPrediction> {
      PredictionSums adder(likelihood_.get(), draws.weights, targets != nullptr, members, &sums);
      while (static_cast<int64_t>(threads_.size()) < at::get_num_threads()) {
        threads_.push_back({make_block_(), LaneBuffer<float>(adder.scratch_size())});
      }
      RunSingleThreaded((n + kMaxBlockRows - 1) / kMaxBlockRows, [&](int64_t block) {
        const int64_t start = block * kMaxBlockRows, count = std::min(n - start, kMaxBlockRows);
        const float* of_block = targets == nullptr ? nullptr : targets + first + start;
        Thread* thread = &threads_[at::get_thread_num()];
        thread->network->Read(rows, first + start, count);
        AddBlock(draws, start, count, of_block, thread, &adder);
      });
      adder.Finish();
      return std::move(sums);
    });
  }

  struct Thread {
    std::unique_ptr<BlockNetwork> network;
    LaneBuffer<float> scratch;
  };

  // All draws over the rows [start, start + count) that the thread has read.
  void AddBlock(const DrawStack& draws, int64_t start, int64_t count, const float* targets, Thread* thread,
                PredictionSums* sums) const {
    const auto num_draws = static_cast<int64_t>(draws.theta.size());
    for (int64_t s = num_draws - 1; s >= 0; --s) {
      const float* draw = draws.theta[static_cast<size_t>(s)]->data();
      const float* outputs = thread->network->Outputs(draw);
      for (int64_t i = 0; i < count; i += kLanes) {
        LaneExamples examples{.outputs = outputs + i * likelihood_->num_outputs()};
        examples.targets = targets == nullptr ? nullptr : targets + i;
        examples.count = std::min(kLanes, count - i);
        if (likelihood_->has_log_variance()) examples.log_variance = draw[log_variance_at_];
        sums->Add(examples, start + i, s, thread->scratch.data());
      }
      sums->EndDraw(start, count, s);
    }
  }

  const std::shared_ptr<const PredictPlan> plan_;
  const int64_t draw_size_;
  const std::unique_ptr<const Likelihood> likelihood_;
  const int64_t log_variance_at_;  // in a draw, of a likelihood that has it
  const std::function<std::unique_ptr<BlockNetwork>()> make_block_;
  std::vector<Thread> threads_;
};

// The likelihood that an analytic regression is made of.
LikelihoodKind LikelihoodOf(const PotentialKind& regression) {
  const auto* linear = std::get_if<LinearRegressionPotential>(&regression);
  if (linear == nullptr) return BernoulliLikelihood();
  return GaussianLikelihood{.variance = linear->noise_variance};
}

absl::StatusOr<std::unique_ptr<Predictor>> OfNetwork(std::shared_ptr<const PredictPlan> plan,
                                                     const std::string* module) {
  CHAINFLEET_ASSIGN_OR_RETURN(NetworkShape network, InferNetwork(plan->model, plan->input_shape, plan->num_classes));
  CHAINFLEET_ASSIGN_OR_RETURN(auto script, ScriptOf(plan->model, module, network, at::kCPU));
  if (script != nullptr) network = script->shape();
  const int64_t draw_size = NumParameters(network.statistics.empty() ? network.parameters : network.statistics);
  auto likelihood = MakeLikelihood(LikelihoodOf(plan->model), plan->num_classes);
  return std::make_unique<BlockPredictor>(std::move(plan), network.parameters, draw_size, std::move(likelihood),
                                          [network, script] { return MakeBlockNetwork(network, script); });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Predictor>> Predictor::Create(std::shared_ptr<const PredictPlan> plan,
                                                             const std::string& device,
                                                             std::shared_ptr<const std::string> module) {
  CHAINFLEET_RETURN_IF_ERROR(ParseDevice(device).status());
  CHAINFLEET_RETURN_IF_ERROR(CheckNormalisation(plan->normalisation, plan->input_shape));
  if (plan->model.is_network()) {
    return CatchTorch("a predictor", [&] { return OfNetwork(std::move(plan), module.get()); });
  }
  if (!plan->model.has_data()) {
    return absl::InvalidArgumentError("job " + plan->job + " samples an analytic potential: it makes no predictions");
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<ParameterShape> parameters,
                              InferParameters(plan->model, plan->input_shape, plan->num_classes));
  auto likelihood = MakeLikelihood(LikelihoodOf(std::get<PotentialKind>(plan->model.kind)), plan->num_classes);
  return std::make_unique<BlockPredictor>(std::move(plan), parameters, NumParameters(parameters), std::move(likelihood),
                                          [parameters] { return MakeLinearBlock(parameters); });
}

}  // namespace chainfleet

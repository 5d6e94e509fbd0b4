#include "worker/numerics/predict/served_model.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "worker/numerics/dataset/input_rows.h"
#include "worker/numerics/models/stored_network.h"

namespace chainfleet {
namespace {

absl::Status SetNetwork(const ModelFile* module, ServedModel* model) {
  const PredictPlan& plan = *model->plan;
  CHAINFLEET_ASSIGN_OR_RETURN(model->network, InferNetwork(plan.model, plan.input_shape, NumClasses(plan.targets)));
  CHAINFLEET_ASSIGN_OR_RETURN(model->script, StoredNetworkOf(plan.model, module, model->network, at::kCPU));
  if (model->script != nullptr) model->network = model->script->shape();
  const NetworkShape& network = model->network;
  model->draw_size = network.draw_size();
  model->likelihood = MakeLikelihood(LikelihoodOf(plan.model), NumClasses(plan.targets), plan.target_units);
  model->make_block = [network, script = model->script] { return MakeBlockNetwork(network, script); };
  return absl::OkStatus();
}

// The likelihood that an analytic regression is made of.
LikelihoodKind LikelihoodOf(const PotentialKind& regression) {
  const auto* linear = std::get_if<LinearRegressionPotential>(&regression);
  if (linear == nullptr) return BernoulliLikelihood();
  return GaussianLikelihood{.variance = linear->noise_variance};
}

absl::Status SetRegression(ServedModel* model) {
  const PredictPlan& plan = *model->plan;
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<ParameterShape> parameters,
                              InferParameters(plan.model, plan.input_shape, NumClasses(plan.targets)));
  const LayerList layers = {{LinearLayer{.outputs = 1, .bias = parameters.size() > 1}}};
  CHAINFLEET_ASSIGN_OR_RETURN(model->network, InferNetwork(layers, plan.input_shape, 1, "model"));
  model->draw_size = NumParameters(parameters);
  model->likelihood = MakeLikelihood(LikelihoodOf(std::get<PotentialKind>(plan.model.kind)), NumClasses(plan.targets),
                                     plan.target_units);
  model->make_block = [parameters] { return MakeLinearBlock(parameters); };
  return absl::OkStatus();
}

}  // namespace

absl::Status ServedModel::CheckTargets(const Dataset& dataset) const {
  const Targets& targets = dataset.targets;
  if (targets.index() != plan->targets.index()) {
    const bool numbers = std::holds_alternative<Numbers>(targets);
    return absl::InvalidArgumentError(absl::StrCat("data set ", dataset.name, " has ", WordsOf(targets), ", job ",
                                                   plan->job, " learns ", numbers ? "classes" : "numbers"));
  }
  if (NumClasses(targets) <= NumClasses(plan->targets)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("data set ", dataset.name, " has ", NumClasses(targets),
                                                 " classes, job ", plan->job, " knows ", NumClasses(plan->targets)));
}

absl::Status ServedModel::CheckRows(const Dataset& dataset, int64_t first, int64_t count) const {
  if (dataset.input_shape != plan->input_shape) {
    return absl::InvalidArgumentError(absl::StrCat("data set ", dataset.name, ": inputs must be [",
                                                   absl::StrJoin(plan->input_shape, ", "), "] for job ", plan->job,
                                                   ", are [", absl::StrJoin(dataset.input_shape, ", "), "]"));
  }
  if (first >= 0 && count >= 0 && first <= dataset.num_rows - count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("data set ", dataset.name, " has ", dataset.num_rows, " rows, asked for ", count, " from ", first));
}

absl::Status ServedModel::CheckDraws(const DrawStack& draws) const {
  if (draws.weights.size() != draws.theta.size()) {
    return absl::InvalidArgumentError(absl::StrCat("chain ", ToString(draws.chain), ": ", draws.theta.size(),
                                                   " draws, ", draws.weights.size(), " weights"));
  }
  if (!draws.ids.empty() && draws.ids.size() != draws.theta.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("chain ", ToString(draws.chain), ": ", draws.theta.size(), " draws, ", draws.ids.size(), " ids"));
  }
  for (const auto& theta : draws.theta) {
    if (static_cast<int64_t>(theta->size()) != draw_size) {
      return absl::InvalidArgumentError(absl::StrCat("chain ", ToString(draws.chain), ": a draw has ", theta->size(),
                                                     " parameters, the model of job ", plan->job, " has ", draw_size));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const ServedModel>> MakeServedModel(std::shared_ptr<const PredictPlan> plan,
                                                                   const ModelFile* module) {
  CHAINFLEET_RETURN_IF_ERROR(CheckNormalisation(plan->normalisation, plan->input_shape));
  CHAINFLEET_RETURN_IF_ERROR(CheckTargetUnits(plan->target_units));
  if (!plan->model.is_network() && !plan->model.has_data()) {
    return absl::InvalidArgumentError("job " + plan->job + " samples an analytic potential: it makes no predictions");
  }
  auto model = std::make_shared<ServedModel>();
  model->plan = std::move(plan);
  CHAINFLEET_RETURN_IF_ERROR(model->plan->model.is_network() ? SetNetwork(module, model.get())
                                                             : SetRegression(model.get()));
  return std::shared_ptr<const ServedModel>(std::move(model));
}

}  // namespace chainfleet

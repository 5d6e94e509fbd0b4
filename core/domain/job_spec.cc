#include "core/domain/job_spec.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/content_limits.h"
#include "core/domain/batch_norm_rules.h"
#include "core/domain/chain_memory.h"
#include "core/domain/chain_trace.h"
#include "core/domain/microcanonical_rules.h"
#include "core/domain/posthoc_rules.h"
#include "core/domain/sbc_rules.h"
#include "core/domain/sweep_points.h"

namespace chainfleet {
namespace {

using Violations = std::vector<FieldViolation>;

void Append(Violations more, Violations* violations) {
  violations->insert(violations->end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

void RequireAtLeast(const std::string& path, int64_t value, int64_t least, Violations* violations) {
  if (value < least) violations->push_back({path, absl::StrCat("must be at least ", least, ", is ", value)});
}

void RequireBetween(const std::string& path, const std::optional<int64_t>& value, int64_t least, int64_t most,
                    Violations* violations) {
  if (value && (*value < least || *value > most)) {
    violations->push_back({path, absl::StrCat("must be ", least, " to ", most, ", is ", *value)});
  }
}

void RequireFiniteNotNegative(const std::string& path, double value, Violations* violations) {
  if (!std::isfinite(value) || value < 0)
    violations->push_back({path, absl::StrCat("must be finite and not negative, is ", value)});
}

// False if the sampler can draw around the point where a chain starts, or from given snapshots.
bool NeedsTraining(const SamplerSpec& sampler) {
  return !std::holds_alternative<McDropoutSpec>(sampler.kind) && !std::holds_alternative<LaplaceSpec>(sampler.kind) &&
         !AveragesSnapshots(sampler);
}

int NumStarts(const InitSpec& init) {
  return static_cast<int>(!init.theta.empty()) + static_cast<int>(init.model) + static_cast<int>(!init.weights.empty());
}

// Checks a run of 0 steps.
void ValidateWithoutTraining(const JobSpec& spec, Violations* violations) {
  const std::string path = spec.num_epochs ? "num_epochs" : "num_steps";
  if (NeedsTraining(spec.sampler)) {
    violations->push_back(
        {path, "must be at least 1: only laplace, mc_dropout, swa and swag draw without training, is 0"});
  } else if (AveragesSnapshots(spec.sampler) && spec.init.weights.empty()) {
    violations->push_back({path, absl::StrCat("0 needs files of draws in init.weights, whose Gaussian ",
                                              spec.sampler.name(), " draws from")});
  } else if (NumStarts(spec.init) == 0) {
    violations->push_back({path, "0 needs a trained start: give init.weights, init.model or init.theta"});
  }
}

void ValidateLength(const JobSpec& spec, Violations* violations) {
  if (spec.num_epochs.has_value() == spec.num_steps.has_value()) {
    violations->push_back({"num_epochs", "give exactly one of num_epochs and num_steps"});
  }
  RequireBetween("num_epochs", spec.num_epochs, 0, limits::kMaxEpochs, violations);
  RequireBetween("num_steps", spec.num_steps, 0, limits::kMaxStepsPerChain, violations);
  if (spec.num_epochs.value_or(spec.num_steps.value_or(1)) == 0) ValidateWithoutTraining(spec, violations);
  if (spec.burn_in.epochs.has_value() + spec.burn_in.steps.has_value() + spec.burn_in.cycles.has_value() > 1) {
    violations->push_back({"burn_in", "give only one of cycles, epochs and steps"});
  }
  RequireBetween("burn_in.epochs", spec.burn_in.epochs, 0, limits::kMaxEpochs, violations);
  RequireBetween("burn_in.steps", spec.burn_in.steps, 0, limits::kMaxStepsPerChain, violations);
  RequireBetween("burn_in.cycles", spec.burn_in.cycles, 0, limits::kMaxCycles, violations);
  const int64_t cycles = spec.schedule.cycles();
  if (spec.burn_in.cycles && *spec.burn_in.cycles >= cycles) {
    violations->push_back({"burn_in.cycles", absl::StrCat("must be below the ", cycles, " cycles of the schedule, is ",
                                                          *spec.burn_in.cycles)});
  }
}

void ValidateCollect(const JobSpec& spec, Violations* violations) {
  const Collect& collect = spec.collect;
  if (collect.every_steps && collect.last_epochs_of_cycle) {
    violations->push_back({"collect", "give only one of last_epochs_of_cycle and every_steps"});
  }
  RequireBetween("collect.every_steps", collect.every_steps, 1, limits::kMaxStepsPerChain, violations);
  RequireAtLeast("collect.segment_draws", collect.segment_draws, 0, violations);
  RequireBetween("collect.last_epochs_of_cycle", collect.last_epochs_of_cycle, 1, limits::kMaxEpochs, violations);
  if (collect.last_epochs_of_cycle) {
    const int64_t cycles = spec.schedule.cycles();
    if (!spec.num_epochs) {
      violations->push_back({"collect.last_epochs_of_cycle", "needs num_epochs, the job has num_steps"});
    } else if (cycles >= 1 && *spec.num_epochs % cycles != 0) {
      violations->push_back({"num_epochs", absl::StrCat("must be divisible by the ", cycles,
                                                        " cycles of the schedule, is ", *spec.num_epochs)});
    } else if (cycles >= 1 && *collect.last_epochs_of_cycle > *spec.num_epochs / cycles) {
      violations->push_back({"collect.last_epochs_of_cycle",
                             absl::StrCat("a cycle has ", *spec.num_epochs / cycles,
                                          " epochs, the job asks for the last ", *collect.last_epochs_of_cycle)});
    }
  }
  constexpr size_t kNumKinds = 2;
  if (collect.kinds.size() > kNumKinds) {
    violations->push_back(
        {"collect.kinds", absl::StrCat("must name at most ", kNumKinds, " kinds, names ", collect.kinds.size())});
    return;
  }
  for (size_t i = 0; i < collect.kinds.size(); ++i) {
    const std::string path = absl::StrCat("collect.kinds[", i, "]");
    if (collect.kinds[i] == DrawKind::kThetaA && !spec.sampler.has_anchor()) {
      violations->push_back({path, "theta_a needs a sampler with an anchor: emcmc, emcmc_gibbs"});
    }
    if (std::count(collect.kinds.begin(), collect.kinds.end(), collect.kinds[i]) > 1)
      violations->push_back({path, "is named twice"});
  }
}

void ValidateScheduling(const JobSpec& spec, Violations* violations) {
  const size_t before = violations->size();
  CheckBounds(spec.scheduling, "scheduling", violations);
  CheckBounds(spec.retention, "retention", violations);
  CheckBounds(spec.snapshots, "snapshots", violations);
  const std::optional<int64_t> enough = spec.scheduling.success_chains;
  if (violations->size() == before && enough && spec.chains >= 1 && *enough > spec.chains) {
    violations->push_back(
        {"scheduling.success_chains", absl::StrCat("must be at most the ", spec.chains, " chains, is ", *enough)});
  }
}

// Samplers that derive networks from a trained one draw them independently, so these steps have no traces.
bool HasTraces(const SamplerSpec& sampler) { return !sampler.passes_over_data() && sampler.posterior_draws() == 0; }

void ValidateStopRule(const JobSpec& spec, Violations* violations) {
  CheckBounds(spec.until, "until", violations);
  if (spec.trace_every) RequireBetween("trace_every", spec.trace_every, 1, limits::kMaxStepsPerChain, violations);
  if (spec.until.rhat_below && spec.chains == 1) {
    violations->push_back({"until.rhat_below", "compares chains: needs two or more of each point, the job has one"});
  }
  if (HasTraces(spec.sampler)) return;
  const std::string reason = spec.sampler.name() + " makes independent draws: its steps are not traced";
  if (spec.until.rhat_below) violations->push_back({"until.rhat_below", reason});
  if (spec.until.ess_above) violations->push_back({"until.ess_above", reason});
  if (spec.until.nested_rhat_below) violations->push_back({"until.nested_rhat_below", reason});
  if (spec.trace_every) violations->push_back({"trace_every", reason});
}

// Rules for a .pt2 file in training mode.
Violations ValidateForTraining(const SamplerSpec& sampler, const NetworkSignature& network) {
  if (!network.statistics.empty()) return ValidateForBatchNorm(sampler, "export net.eval()");
  if (!network.has_dropout || !std::holds_alternative<GradientUncertaintySpec>(sampler.kind)) return {};
  return {
      {"sampler." + sampler.name(),
       "runs the examples of a stored network one at a time, and dropout masks those of a batch: export net.eval()"}};
}

void ValidateKindOfModel(const JobSpec& spec, bool valid_model, Violations* violations) {
  if (spec.model.has_data()) {
    if (spec.dataset.empty())
      violations->push_back({"dataset.name", "the model needs a data set: put one with `chainfleet dataset put`"});
    if (valid_model && HasBatchNorm(spec.model)) {
      Append(ValidateForBatchNorm(spec.sampler, "take a model without it (resnet20-frn, or frn layers)"), violations);
    }
    return;
  }
  if (!spec.dataset.empty()) violations->push_back({"dataset", "an analytic potential takes no data set"});
  if (spec.num_epochs) violations->push_back({"num_epochs", "an analytic potential has no epochs: give num_steps"});
  if (spec.burn_in.epochs)
    violations->push_back({"burn_in.epochs", "an analytic potential has no epochs: give burn_in.steps"});
  if (!spec.prior.is_flat())
    violations->push_back({"prior", "an analytic potential is the whole law: leave the prior out"});
}

void ValidateAugmentation(const JobSpec& spec, Violations* violations) {
  CheckBounds(spec.augmentation, "augmentation", violations);
  if (!spec.augmentation.any()) return;
  if (!spec.model.is_network()) {
    violations->push_back({"augmentation", "is for networks on images, the model is an analytic potential"});
  }
  const bool takes_all_data = std::holds_alternative<MileSpec>(spec.sampler.kind);
  if (spec.sampler.is_metropolis() || spec.sampler.passes_over_data() || takes_all_data) {
    violations->push_back({"augmentation", absl::StrCat(spec.sampler.name(),
                                                        " needs a potential that is a function of theta alone, "
                                                        "which that of images changed at random is not")});
  }
}

void ValidateGradientUncertainty(const JobSpec& spec, const GradientUncertaintySpec& sampler, Violations* violations) {
  // Samplers that need full data reject batch norm, whose examples have no gradients of their own.
  if (!spec.model.is_network()) {
    violations->push_back(
        {"sampler.gradient_uncertainty", "needs the norm of each example's gradient, which networks have"});
  }
  if (!spec.prior.is_flat() && spec.prior.precision() == 0) {
    violations->push_back({"prior", "gradient_uncertainty takes a Gaussian prior of one precision, or none"});
  }
  const BurnIn& burn_in = spec.burn_in;
  const int64_t length = burn_in.cycles.value_or(0) + burn_in.epochs.value_or(0) + burn_in.steps.value_or(0);
  if (!sampler.threshold && length == 0) {
    violations->push_back(
        {"sampler.gradient_uncertainty.threshold", "give it, or burn_in, whose values the quantile is taken from"});
  }
}

// True if the step size is a standard deviation of theta or a leapfrog step; a learning rate cannot express it.
bool StepIsALength(const SamplerSpec& sampler) {
  return std::visit(
      [](const auto& s) {
        using Spec = std::remove_cvref_t<decltype(s)>;
        if constexpr (requires { s.proposal; }) return s.proposal == Proposal::kRandomWalk;
        return std::is_same_v<Spec, RandomWalkSpec> || std::is_same_v<Spec, TemperedMhSpec> ||
               std::is_same_v<Spec, HmcSpec>;
      },
      sampler.kind);
}

// Checks the sampler's requirements on the rest of the job.
void ValidateForSampler(const JobSpec& spec, Violations* violations) {
  if (spec.schedule.scale == StepScale::kLearningRate && StepIsALength(spec.sampler)) {
    violations->push_back({"learning_rate", absl::StrCat(spec.sampler.name(),
                                                         " moves theta by a length, not by a rate on the mean loss: "
                                                         "give step_size")});
  }
  if (spec.schedule.largest_value() == 0 && !std::holds_alternative<SgdSpec>(spec.sampler.kind)) {
    violations->push_back(
        {spec.schedule.scale == StepScale::kLearningRate ? "learning_rate.constant" : "step_size.constant",
         "must be above 0: only chains of sgd may stay where they start"});
  }
  if (const auto* sampler = std::get_if<GradientUncertaintySpec>(&spec.sampler.kind)) {
    ValidateGradientUncertainty(spec, *sampler, violations);
  }
  std::ranges::move(ValidateMicrocanonical(spec), std::back_inserter(*violations));
  if (const auto* bsam = std::get_if<BsamSpec>(&spec.sampler.kind)) {
    if (bsam->parts >= 1 && spec.model.has_data() && spec.batch_size % bsam->parts != 0) {
      violations->push_back(
          {"sampler.bsam.parts", absl::StrCat("must divide the batch size ", spec.batch_size, ", is ", bsam->parts)});
    }
    if (!spec.prior.is_flat()) {
      violations->push_back({"prior", "bsam has a prior of its own: set sampler.bsam.prior_precision"});
    }
  }
  if (std::holds_alternative<PenaltyMhSpec>(spec.sampler.kind) && spec.temperature == 0) {
    violations->push_back({"temperature", "must be above 0 for penalty_mh: at 0 its penalty rejects every proposal"});
  }
  if (const auto* emcmc = std::get_if<EmcmcSpec>(&spec.sampler.kind)) {
    if (emcmc->anchor_decay && !spec.prior.is_flat() && spec.prior.precision() == 0) {
      violations->push_back({"sampler.emcmc.anchor_decay", "needs a Gaussian prior of one precision"});
    }
  }
  if (!spec.model.has_data() &&
      (spec.sampler.num_batches() > 0 || std::holds_alternative<TemperedMhSpec>(spec.sampler.kind))) {
    violations->push_back(
        {"sampler." + spec.sampler.name(),
         "weighs examples of a data set, an analytic potential has none: take random_walk, mala or hmc"});
  }
  if (spec.sampler.posterior_draws() > 0 && (spec.collect.every_steps || spec.collect.last_epochs_of_cycle)) {
    violations->push_back(
        {"collect", absl::StrCat(spec.sampler.name(), " draws networks after its training steps: set sampler.",
                                 spec.sampler.name(), ".draws, not every_steps")});
  }
}

void ValidateInit(const JobSpec& spec, Violations* violations) {
  const InitSpec& init = spec.init;
  CheckBounds(init, "init", violations);
  if (NumStarts(init) > 1) violations->push_back({"init", "has several starts: give one of theta, model and weights"});
  if (init.model && !std::holds_alternative<StoredNetworkModel>(spec.model.kind)) {
    violations->push_back(
        {"init.model", "only a stored network has weights in its file: take model.exported, or give init.weights"});
  }
  if (!init.weights.empty() && !spec.model.is_network())
    violations->push_back({"init.weights", "are for networks, the model is an analytic potential: give init.theta"});
  if (init.weights.size() > limits::kMaxFilesOfWeights) {
    violations->push_back({"init.weights", absl::StrCat("must name at most ", limits::kMaxFilesOfWeights,
                                                        " files, names ", init.weights.size())});
    return;
  }
  size_t characters = 0;
  for (const std::string& name : init.weights) characters += name.size();
  if (characters > limits::kMaxCharactersOfWeights) {
    violations->push_back(
        {"init.weights", absl::StrCat("the names have ", characters, " characters together, the most is ",
                                      limits::kMaxCharactersOfWeights, ": give the files shorter names")});
  }
  for (auto name = init.weights.begin(); name != init.weights.end(); ++name) {
    const std::string path = absl::StrCat("init.weights[", name - init.weights.begin(), "]");
    Append(FieldViolationsOf(CheckReference("model", *name, path)), violations);
    if (std::find(init.weights.begin(), name, *name) != name) violations->push_back({path, *name + " is named twice"});
  }
}

// Returns the number of traced values of one whole chain.
int64_t NumTraced(StepPlan plan) {
  plan.collect_every = plan.trace_every;
  return plan.trace_every > 0 ? plan.NumDraws() : 0;
}

// Reject ESS targets that the traced values cannot reach; such a job would always run to its last step.
void ValidateEssAbove(const JobSpec& spec, int64_t traced, Violations* violations) {
  if (!spec.until.ess_above) return;
  const int64_t of_chain = std::min(traced, kTraceWindow);
  const auto values = static_cast<double>(of_chain * std::min<int64_t>(spec.chains, kMostTracedChains));
  const double most = values * std::log10(values);  // core/diagnostics/ess.h
  if (*spec.until.ess_above < most) return;
  violations->push_back({"until.ess_above", absl::StrCat(spec.chains, " chains with ", of_chain,
                                                         " traced values each have an ESS of at most ",
                                                         std::floor(most), ": ask for less, or add chains")});
}

Violations ValidateSuperchains(const JobSpec& spec, int64_t num_parameters) {
  if (!spec.until.nested_rhat_below || NumSuperchains(spec, num_parameters) > 0) return {};
  return {{"until.nested_rhat_below",
           absl::StrCat("compares starts that chains share: needs two or more starts (files of init.weights, rows of "
                        "init.theta) and two or more chains for each, the job has ",
                        NumStartPoints(spec.init, num_parameters), " starts and ", spec.chains, " chains")}};
}

// The noise-corrected form cannot subtract more variance than a step injects.
void ValidateNoise(const JobSpec& spec, int64_t num_examples, Violations* violations) {
  const auto* sgld = std::get_if<SgldSpec>(&spec.sampler.kind);
  if (sgld == nullptr) return;
  const double scale = spec.schedule.scale == StepScale::kLearningRate ? static_cast<double>(num_examples) : 1;
  const double noise = spec.schedule.largest_value() / scale * sgld->gradient_noise;
  if (noise > 2 * spec.temperature) {
    violations->push_back({"sampler.sgld.gradient_noise",
                           absl::StrCat("the noise to subtract exceeds the noise of a step: alpha V = ", noise,
                                        " is above 2 T = ", 2 * spec.temperature)});
  }
}

int64_t TotalSteps(const JobSpec& spec, int64_t steps_per_epoch) {
  return spec.num_epochs ? *spec.num_epochs * steps_per_epoch : spec.num_steps.value_or(0);
}

// Without training, a variance that the likelihood learns must come from the files.
Violations ValidateVariances(const JobSpec& spec, const std::vector<StoredModel>& weights) {
  const bool trains = spec.schedule.largest_value() > 0 && TotalSteps(spec, 1) > 0;
  Violations violations;
  for (const ParameterShape& variance : ParametersOf(LikelihoodOf(spec.model))) {
    for (size_t i = 0; i < weights.size() && !trains; ++i) {
      const auto& tensors = weights[i].signature->parameters;
      if (HasTensor(tensors, variance.name)) continue;
      violations.push_back({absl::StrCat("init.weights[", i, "]"),
                            absl::StrCat(weights[i].name, " lacks ", variance.name,
                                         ", and nothing trains it here: give ", "likelihood.gaussian.variance")});
    }
  }
  return violations;
}

}  // namespace

std::vector<FieldViolation> Validate(const JobSpec& spec) {
  Violations violations = FieldViolationsOf(CheckName("job", spec.name)), of_model = Validate(spec.model);
  const bool valid_model = of_model.empty();
  Append(std::move(of_model), &violations);
  Append(ValidateBesidesModel(spec, valid_model), &violations);
  // ValidateSweep checks the values together with the rest of the job, so the rest must be valid.
  if (violations.empty()) Append(ValidateSweep(spec), &violations);
  return violations;
}

std::vector<FieldViolation> ValidateBesidesModel(const JobSpec& spec, bool valid_model) {
  Violations violations;
  ValidateKindOfModel(spec, valid_model, &violations);
  Append(Validate(spec.prior), &violations);
  Append(Validate(spec.sampler), &violations);
  Append(Validate(spec.schedule), &violations);
  RequireFiniteNotNegative("temperature", spec.temperature, &violations);
  RequireAtLeast("batch_size", spec.batch_size, 1, &violations);
  ValidateLength(spec, &violations);
  RequireAtLeast("chains", spec.chains, 1, &violations);
  if (spec.chains > limits::kMaxChainsPerJob) {
    violations.push_back({"chains", absl::StrCat("must be at most ", limits::kMaxChainsPerJob, ", is ", spec.chains)});
  }
  ValidateScheduling(spec, &violations);
  ValidateStopRule(spec, &violations);
  ValidateCollect(spec, &violations);
  ValidateForSampler(spec, &violations);
  ValidateAugmentation(spec, &violations);
  ValidateInit(spec, &violations);
  const auto* stored = std::get_if<StoredNetworkModel>(&spec.model.kind);
  if (spec.vmap && (stored == nullptr || stored->format != ModelFormat::kExported)) {
    violations.push_back({"vmap", "is for exported networks, others run kernels of their own: leave it out"});
  }
  if (valid_model) Append(ValidatePostHoc(spec), &violations);
  if (valid_model) Append(ValidateSbc(spec), &violations);
  RequireAtLeast("resume_point_every_steps", spec.resume_point_every_steps, 0, &violations);
  return violations;
}

std::vector<FieldViolation> ValidateForData(const JobSpec& spec, int64_t num_examples) {
  Violations violations;
  if (spec.model.has_data() && spec.batch_size > num_examples) {
    violations.push_back({"batch_size", absl::StrCat("must be at most the ", num_examples,
                                                     " examples of the data set, is ", spec.batch_size)});
    return violations;
  }
  if (const int64_t most = num_examples / spec.batch_size; spec.sampler.num_batches() > most) {
    violations.push_back({absl::StrCat("sampler.", spec.sampler.name(), ".num_batches"),
                          absl::StrCat("disjoint batches of ", spec.batch_size, ": at most ", most, " fit the ",
                                       num_examples, " examples of the data set, is ", spec.sampler.num_batches())});
  }
  const int32_t noisy_points = std::holds_alternative<SgldSpec>(spec.sampler.kind) ? NumPoints(spec.sweep) : 0;
  const JobSpec swept = WithoutContents(spec);
  for (int32_t point = 0; point < noisy_points && violations.empty(); ++point) {
    ValidateNoise(SpecAt(swept, point), num_examples, &violations);
    if (!violations.empty() && spec.sweep.any()) violations.back().message += " at " + PointName(spec.sweep, point);
  }
  const StepPlan plan = PlanSteps(spec, num_examples);
  const bool trains = plan.training_steps > 0;
  if (trains && plan.training_steps < spec.schedule.cycles()) {
    violations.push_back({"num_steps", absl::StrCat(plan.training_steps, " steps are fewer than the ",
                                                    spec.schedule.cycles(), " cycles of the schedule")});
  } else if (const int64_t left = plan.training_steps % spec.schedule.cycles(); left != 0) {
    // The remainder would be the hot start of another cycle, and its steps the last draws.
    const int64_t below = plan.training_steps - left;
    violations.push_back(
        {spec.num_steps ? "num_steps" : "num_epochs",
         absl::StrCat(plan.training_steps, " steps are not divisible by the ", spec.schedule.cycles(),
                      " cycles of the schedule: ", below, " or ", below + spec.schedule.cycles(), " are")});
  } else if (plan.burn_in_steps >= (trains ? plan.training_steps : 1)) {
    violations.push_back(
        {"burn_in", absl::StrCat("is ", plan.burn_in_steps, " steps long, the whole run ", plan.training_steps)});
  } else if (plan.NumDraws() == 0) {
    violations.push_back({"collect", absl::StrCat("no draw would be kept in ", plan.training_steps, " steps")});
  } else if (const int64_t traced = NumTraced(plan); spec.until.looks_at_traces() && traced < kFewestValuesToStop) {
    violations.push_back(
        {spec.trace_every ? "trace_every" : "until",
         absl::StrCat("a rule on traces looks at ", kFewestValuesToStop, " values of each chain, the whole run has ",
                      traced, spec.trace_every ? ": trace more often" : ": the run is too short for it")});
  }
  if (violations.empty()) ValidateEssAbove(spec, NumTraced(plan), &violations);
  return violations;
}

std::vector<FieldViolation> ValidateTargets(const ModelSpec& model, const Dataset& dataset) {
  if (model.is_network()) return ValidateTargets(LikelihoodOf(model), model.likelihood.has_value(), dataset);
  const auto refuse = [&](const std::string& wanted) {
    const auto* classes = std::get_if<Classes>(&dataset.targets);
    return Violations{
        {"dataset.name", absl::StrCat(dataset.name, " has ", WordsOf(dataset.targets),
                                      classes ? absl::StrCat(" of ", classes->count, " classes") : "", "; ", wanted)}};
  };
  const auto* potential = std::get_if<PotentialKind>(&model.kind);
  if (std::holds_alternative<LinearRegressionPotential>(*potential)) {
    if (std::holds_alternative<Numbers>(dataset.targets)) return {};
    return refuse("linear_regression learns numbers: put it with --target-type float32");
  }
  if (std::holds_alternative<Numbers>(dataset.targets)) {
    return refuse("the model learns classes: put it with --target-type label");
  }
  if (dataset.targets != Targets(Classes{2})) return refuse("logistic_regression learns two");
  return {};
}

std::vector<FieldViolation> ValidateForImages(const AugmentationSpec& augmentation,
                                              const std::vector<int64_t>& input_shape) {
  if (!augmentation.any()) return {};
  if (input_shape.size() != 3) {
    return {{"augmentation", absl::StrCat("needs images [channels, height, width], the data set has inputs [",
                                          absl::StrJoin(input_shape, ", "), "]")}};
  }
  const int64_t side = std::min(input_shape[1], input_shape[2]);
  if (augmentation.crop_padding < side) return {};
  return {{"augmentation.crop_padding", absl::StrCat("must be below the sides of the images, ", input_shape[1], " by ",
                                                     input_shape[2], ", is ", augmentation.crop_padding)}};
}

absl::Status CheckAgainstData(const JobSpec& spec, const Dataset* dataset, const StoredModel* stored,
                              const std::vector<StoredModel>& weights) {
  if (dataset != nullptr) CHAINFLEET_RETURN_IF_ERROR(InvalidFields(ValidateTargets(spec.model, *dataset)));
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(ValidateForData(spec, dataset != nullptr ? dataset->num_rows : 1)));
  const std::vector<int64_t> input_shape = dataset != nullptr ? dataset->input_shape : std::vector<int64_t>{};
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(ValidateForImages(spec.augmentation, input_shape)));
  if (stored != nullptr && stored->signature) {
    CHAINFLEET_RETURN_IF_ERROR(InvalidFields(ValidateForTraining(spec.sampler, *stored->signature)));
  }
  if (dataset != nullptr) CHAINFLEET_RETURN_IF_ERROR(InvalidFields(ValidateSbcData(spec, *dataset, stored)));
  const int64_t num_classes = dataset != nullptr ? NumClasses(dataset->targets) : 0;
  CHAINFLEET_ASSIGN_OR_RETURN(const auto parameters, InferParameters(spec.model, input_shape, num_classes, stored));
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(ValidateSuperchains(spec, NumParameters(parameters))));
  if (parameters.empty()) return absl::OkStatus();
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(ValidateForLayers(spec.prior, parameters)));
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(ValidatePostHocSize(spec.sampler, parameters)));
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(ValidateMicrocanonicalSize(spec.sampler, parameters)));
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(ValidateForSize(spec.init, NumParameters(parameters))));
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(ValidateWeights(weights, parameters)));
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(ValidateVariances(spec, weights)));
  CHAINFLEET_RETURN_IF_ERROR(InvalidFields(ValidateSnapshots(spec, weights)));
  const int64_t num_rows = dataset != nullptr ? dataset->num_rows : 0;
  const int64_t bytes = EstimateChainBytes(spec, input_shape, num_classes, stored, num_rows);
  if (bytes <= limits::kMaxChainBytes) return absl::OkStatus();
  const auto gib = [](int64_t n) { return static_cast<double>(n) / static_cast<double>(1024 * limits::kMiB); };
  return InvalidFields({{"model", absl::StrCat("one chain of ", NumParameters(parameters), " parameters in batches of ",
                                               spec.batch_size, " would take about ", gib(bytes), " GiB, the most is ",
                                               gib(limits::kMaxChainBytes), " GiB")}});
}

// Tracing a step costs up to a sixth of the step, so tracing one of 16 costs 1 % (docs/explanation/performance.md).
constexpr int64_t kStepsPerTrace = 16;

bool StepPlan::CollectsAfter(int64_t step) const {
  if (total_steps > training_steps) return step > training_steps + pass_steps && step <= total_steps;
  return InWindow(step) && step % collect_every == 0;
}

bool StepPlan::TracesAfter(int64_t step) const { return trace_every > 0 && InWindow(step) && step % trace_every == 0; }

bool StepPlan::InWindow(int64_t step) const {
  if (step <= burn_in_steps || step > total_steps) return false;
  const int64_t in_cycle = (step - 1) % steps_per_cycle + 1;
  return in_cycle > steps_per_cycle - collect_window;
}

int64_t StepPlan::NumDraws() const {
  if (total_steps > training_steps) return total_steps - training_steps - pass_steps;
  const auto multiples_in = [&](int64_t after, int64_t last) {
    return last > after ? last / collect_every - after / collect_every : 0;
  };
  if (collect_window >= steps_per_cycle) return multiples_in(burn_in_steps, total_steps);
  int64_t draws = 0;
  for (int64_t end = steps_per_cycle; end - collect_window < total_steps; end += steps_per_cycle) {
    draws += multiples_in(std::max(burn_in_steps, end - collect_window), std::min(end, total_steps));
  }
  return draws;
}

StepPlan PlanSteps(const JobSpec& spec, int64_t num_examples) {
  StepPlan plan;
  plan.steps_per_epoch = spec.model.has_data() ? std::max<int64_t>(1, num_examples / spec.batch_size) : 1;
  plan.training_steps = TotalSteps(spec, plan.steps_per_epoch);
  if (spec.sampler.passes_over_data()) {
    const int64_t n = spec.model.has_data() ? std::max<int64_t>(1, spec.batch_size) : num_examples;
    plan.pass_steps = (num_examples + n - 1) / n;
  }
  plan.total_steps = plan.training_steps + plan.pass_steps + spec.sampler.posterior_draws();
  plan.steps_per_cycle = std::max<int64_t>(1, plan.training_steps / spec.schedule.cycles());
  plan.burn_in_steps = std::max(spec.sampler.own_burn_in(),
                                spec.burn_in.steps.value_or(spec.burn_in.epochs.value_or(0) * plan.steps_per_epoch +
                                                            spec.burn_in.cycles.value_or(0) * plan.steps_per_cycle));
  const auto& collect = spec.collect;
  plan.collect_every = collect.last_epochs_of_cycle ? plan.steps_per_epoch : collect.every_steps.value_or(1);
  plan.collect_window =
      collect.last_epochs_of_cycle ? *collect.last_epochs_of_cycle * plan.steps_per_epoch : plan.steps_per_cycle;
  if (plan.total_steps == plan.training_steps && spec.trace_every) {
    plan.trace_every = *spec.trace_every;
  } else if (plan.total_steps == plan.training_steps) {
    // Runs of more than 16,000 steps trace a smaller share.
    StepPlan of_each = plan;
    of_each.collect_every = 1;
    const int64_t steps = of_each.NumDraws();
    const int64_t values = std::clamp<int64_t>(plan.total_steps / kStepsPerTrace, 1, kTraceWindow);
    plan.trace_every = std::max<int64_t>(1, (steps + values - 1) / values);
    // A rule on traces needs its values at any cost, and long before the bound on the steps.
    if (spec.until.looks_at_traces()) {
      const int64_t most = std::min(plan.trace_every, kStepsPerTrace);
      plan.trace_every = std::clamp<int64_t>(steps / kFewestValuesToStop, 1, most);
    }
  }
  return plan;
}

std::vector<DrawKind> KindsOf(const JobSpec& spec) {
  std::vector<DrawKind> kinds = spec.collect.kinds;
  if (kinds.empty()) {
    kinds = {DrawKind::kTheta};
    if (spec.sampler.has_anchor()) kinds.push_back(DrawKind::kThetaA);
  }
  std::sort(kinds.begin(), kinds.end());
  return kinds;
}

}  // namespace chainfleet

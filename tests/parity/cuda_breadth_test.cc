// Compares every layer, likelihood, prior and potential on a GPU with the CPU, over whole chains. With two GPUs, all
// tests use the second.
#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/device_chains.h"
#include "tests/support/predictor_parity.h"
#include "tests/support/regression_dataset.h"
#include "tests/support/script_file.h"
#include "tests/support/sequence_layers.h"
#include "tests/support/synthetic_dataset.h"

namespace chainfleet {
namespace {

using Samplers = std::vector<SamplerSpec>;

// Gradients, energies of all data, norms by example, losses by example and Gauss-Newton matrices.
const Samplers& AskingForEverything() {
  static const Samplers samplers = {{EmcmcSpec{1e-4}},
                                    {HmcSpec{.leapfrog_steps = 2}},
                                    {GradientUncertaintySpec{.threshold = 0.5}},
                                    {PenaltyMhSpec{.num_batches = 4}},
                                    {LaplaceSpec{CurvatureStructure::kDiagonal, 0.9, 1}}};
  return samplers;
}

// A network to sample, and the changes of its plan.
struct Job {
  std::string name;
  ModelSpec model;
  Data data;  // null: an analytic potential has none
  Samplers samplers = AskingForEverything();
  PriorKind prior = GaussianPrior{5};
  std::vector<double> prior_precisions = {};  // a sweep
  TargetUnits target_units = {};
};

void PrintTo(const Job& job, std::ostream* out) { *out << job.name; }

class Breadth : public NeedsGpu, public ::testing::WithParamInterface<Job> {
 protected:
  static std::shared_ptr<JobPlan> PlanOf(const SamplerSpec& sampler) {
    const Job& job = GetParam();
    const Data data = job.data ? job.data : Resident(MakeTable(8, 1, false));
    auto plan = NetworkPlan(job.model, sampler, *data);
    if (!job.data) plan->spec.dataset.clear();
    plan->spec.prior.kind = job.prior;
    plan->spec.sweep.prior_precision = job.prior_precisions;
    plan->spec.batch_size = sampler.num_batches() > 0 ? 6 : 24;  // a pass for statistics may have as many examples
    plan->spec.num_steps = 4;
    if (!sampler.is_metropolis()) plan->spec.temperature = 1e-4;  // gradients, not noise, are most of a step
    plan->spec.chains = 2;
    plan->target_units = job.target_units;
    return plan;
  }
};

TEST_P(Breadth, ChainsMatchTheCpu) {
  const SecondGpu gpu;
  const bool is_module = std::holds_alternative<StoredNetworkModel>(GetParam().model.kind);
  const auto module = is_module ? FileOf(ScriptedMlp({4, 6, 1})) : nullptr;
  for (const SamplerSpec& sampler : GetParam().samplers) {
    SCOPED_TRACE(sampler.name());
    const auto plan = PlanOf(sampler);
    const auto show = [&](const std::string& device) {
      return ChainsOnTheWay(plan, GetParam().data, {device}, module).Run();
    };
    ExpectSameWay(show("cpu"), show(gpu.name()));
  }
}

// Only networks of layers: a worker computes the predictions of other models on its CPU.
class NetworkBreadth : public Breadth {};

TEST_P(NetworkBreadth, PredictionsAreTheSame) {
  const Job& job = GetParam();
  const SecondGpu gpu;
  ExpectPredictorParity(job.model, *job.data, 20, 5, nullptr, gpu.device());
}

ModelSpec Layers(const LayerList& layers, LikelihoodKind likelihood = CategoricalLikelihood()) {
  return {LayeredModel{layers}, std::move(likelihood)};
}

// All layers except those without gradients by example.
LayerList ImageLayers(const LayerSpec& norm) {
  return {{ConvLayer{.out_channels = 6, .padding = 1, .groups = 3, .bias = false}},
          norm,
          {ReluLayer{}},
          {MaxPoolLayer{3, 2, 1}},
          {ResidualLayer{{{ConvLayer{.out_channels = 4, .padding = 1}}, {ReluLayer{}}},
                         {{ConvLayer{.out_channels = 4, .kernel = 1}}}}},
          {ConcatLayer{{{ConvLayer{.out_channels = 2, .padding = 1}}}}},
          {AvgPoolLayer{2}},
          {FlattenLayer{}},
          {LinearLayer{5, false}},
          {ReluLayer{}},
          {LinearLayer{}}};
}

// On images and on flat inputs.
LayerList With(const LayerSpec& layer) {
  return {{ConvLayer{.out_channels = 4, .stride = 2}}, layer, {ReluLayer{}}, {LinearLayer{5}}, layer, {LinearLayer{}}};
}

std::vector<Job> NetworksOfImages() {
  const Data data = SyntheticImages(24, {3, 8, 8}, 4);
  const Samplers training = {{EmcmcSpec{1e-4}}, {SgdSpec{}}};
  return {{"Frn", Layers(ImageLayers({FrnLayer{}})), data},
          {"GroupNorm", Layers(ImageLayers({GroupNormLayer{.groups = 2}})), data},
          {"LayerNorm", Layers({{LinearLayer{6}}, {LayerNormLayer{}}, {TanhLayer{}}, {LinearLayer{}}}), data},
          {"Sequences", Layers(SequenceLayers()), data},
          {"Gelu", Layers(With({GeluLayer{}})), data, training},
          {"Silu", Layers(With({SiluLayer{}})), data, training},
          {"Softplus", Layers(With({SoftplusLayer{}})), data, training},
          {"LeakyRelu", Layers(With({LeakyReluLayer{}})), data, training},
          {"BatchNorm", Layers(ImageLayers({BatchNormLayer{}})), data, training},
          {"BatchNormFlat", Layers(With({BatchNormLayer{}})), data, training},
          {"Dropout", Layers(With({DropoutLayer{0.3}})), data, training},
          {"McDropout",
           Layers({{ConvLayer{.out_channels = 4, .stride = 2}},
                   {FrnLayer{}},
                   {ConvLayer{.out_channels = 3}},
                   {ReluLayer{}},
                   {LinearLayer{5}},
                   {LinearLayer{}}}),
           data,
           {{McDropoutSpec{.rate = 0.3, .draws = 2}}}},
          {"DropoutAndUncertainty", Layers(With({DropoutLayer{0.3}})), data, {AskingForEverything()[2]}}};
}

std::vector<Job> Likelihoods() {
  const LayerList layers = {{LinearLayer{6}}, {ReluLayer{}}, {LinearLayer{}}};
  const Data numbers = Resident(MakeTable(40, 4, false)), labels = Resident(MakeTable(40, 4, true));
  const GaussianLikelihood known{.variance = 0.3}, learned{.variance = {}, .learned = true};
  const HeteroscedasticGaussianLikelihood heteroscedastic;
  std::vector<Job> jobs = {{"Categorical", Layers(layers), labels},
                           {"Bernoulli", Layers(layers, BernoulliLikelihood()), labels},
                           {"Gaussian", Layers(layers, known), numbers},
                           {"LearnedGaussian", Layers(layers, learned), numbers},
                           {"Heteroscedastic", Layers(layers, heteroscedastic), numbers}};
  for (size_t i = 2; i < 5; ++i) {
    Job job = jobs[i];
    job.name += "InUnits";
    job.target_units = {4, 2.5};
    jobs.push_back(job);
  }
  return jobs;
}

std::vector<Job> Priors() {
  const ModelSpec model = Layers({{LinearLayer{6}}, {ReluLayer{}}, {LinearLayer{}}});
  const Data data = Resident(MakeTable(40, 4, true));
  return {{"PriorByLayer",
           model,
           data,
           {AskingForEverything()[0], AskingForEverything()[4]},
           GaussianPrior{5, {{"fc2", 40}}}},
          {"LaplacePrior", model, data, {{EmcmcSpec{1e-4}}, {MalaSpec{}}}, LaplacePrior{0.05}},
          {"StudentTPrior", model, data, {{EmcmcSpec{1e-4}}, {MalaSpec{}}}, StudentTPrior{3, 0.05}},
          {"SweptPrecisions",
           model,
           data,
           {{EmcmcSpec{1e-4}}, {SgdSpec{}}, {HmcSpec{.leapfrog_steps = 2}}, {PenaltyMhSpec{.num_batches = 4}}},
           GaussianPrior{5},
           {1, 400}}};
}

std::vector<Job> Potentials() {
  const Samplers whole = {{EmcmcSpec{1e-4}}, {MalaSpec{}}, {HmcSpec{.leapfrog_steps = 2}}};
  const Samplers with_data = {
      {EmcmcSpec{1e-4}}, {HmcSpec{.leapfrog_steps = 2}}, {LaplaceSpec{CurvatureStructure::kFull, 0.9, 1}}};
  const GaussianPotential independent{.dimension = 5, .precision = 3, .mean = {1, -1, 2, 0, 4}},
      correlated{.dimension = 2, .covariance = {2, 0.5, 0.5, 1}, .mean = {1, -1}};
  const GaussianMixturePotential by_coordinate{{1, 2}, {-1, 2}, {0.5, 1}, 3}, joint{{1, 2}, {-1, 2, 0, 1}, {0.5}, 2};
  const GaussianPrior flat;
  return {{"Independent", {independent}, nullptr, whole, flat},
          {"Correlated", {correlated}, nullptr, whole, flat},
          {"Mixture", {by_coordinate}, nullptr, whole, flat},
          {"JointMixture", {joint}, nullptr, whole, flat},
          {"LinearRegression", {LinearRegressionPotential{}}, Resident(MakeTable(40, 4, false)), with_data},
          {"LogisticRegression", {LogisticRegressionPotential{}}, Resident(MakeTable(40, 4, true)), with_data},
          {"SweptRegression",
           {LinearRegressionPotential{}},
           Resident(MakeTable(40, 4, false)),
           with_data,
           GaussianPrior{5},
           {1, 400}}};
}

std::vector<Job> Modules() {
  const Samplers samplers = {{EmcmcSpec{1e-4}}, {HmcSpec{.leapfrog_steps = 2}}, {PenaltyMhSpec{.num_batches = 4}}};
  const GaussianLikelihood learned{.variance = {}, .learned = true};
  return {{"Module",
           {StoredNetworkModel{"mine", ModelFormat::kTorchScript}, learned},
           Resident(MakeTable(40, 4, false)),
           samplers}};
}

const auto kNameOf = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Images, Breadth, ::testing::ValuesIn(NetworksOfImages()), kNameOf);
INSTANTIATE_TEST_SUITE_P(Likelihoods, Breadth, ::testing::ValuesIn(Likelihoods()), kNameOf);
INSTANTIATE_TEST_SUITE_P(Priors, Breadth, ::testing::ValuesIn(Priors()), kNameOf);
INSTANTIATE_TEST_SUITE_P(Images, NetworkBreadth, ::testing::ValuesIn(NetworksOfImages()), kNameOf);
INSTANTIATE_TEST_SUITE_P(Likelihoods, NetworkBreadth, ::testing::ValuesIn(Likelihoods()), kNameOf);
INSTANTIATE_TEST_SUITE_P(Priors, NetworkBreadth, ::testing::ValuesIn(Priors()), kNameOf);
INSTANTIATE_TEST_SUITE_P(Potentials, Breadth, ::testing::ValuesIn(Potentials()), kNameOf);
INSTANTIATE_TEST_SUITE_P(Modules, Breadth, ::testing::ValuesIn(Modules()), kNameOf);

}  // namespace
}  // namespace chainfleet

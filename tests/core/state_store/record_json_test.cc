#include "core/store/state_store/record_json.h"

#include "absl/strings/str_replace.h"
#include "tests/core/state_store/state_store_fixture.h"

namespace chainfleet {
namespace {

TEST(RecordJson, JobPlanSurvivesTheRoundTrip) {
  JobPlan plan = *PlanOf("job-aaaaaa", 3, true);
  plan.spec.model.kind = BuiltinModel{"mlp", {10, 20}};
  plan.spec.dataset = "digits";
  plan.spec.prior.kind = GaussianPrior{25};
  plan.spec.sampler.kind = EmcmcSpec{0.1 + 0.2};
  plan.spec.schedule = {StepScale::kStepSize, CyclicalSchedule{0.2, 1e-300, 4}};
  plan.spec.temperature = 1e-4;
  plan.spec.minibatches = Minibatches::kIndependent;
  plan.spec.augmentation = {.crop_padding = 4, .flip = true};
  plan.spec.precision = Precision::kTf32;
  plan.spec.standardize.inputs = false;
  plan.spec.init = {.theta = {0.1 + 0.2, -7}, .perturb = 1e-3};
  plan.spec.num_steps.reset();
  plan.spec.num_epochs = 12;
  plan.spec.burn_in.cycles = 2;
  plan.spec.collect = {1, std::nullopt, {DrawKind::kTheta, DrawKind::kThetaA}, 5};
  plan.spec.seed = ~uint64_t{0};
  plan.spec.sweep = {.temperature = {0.1 + 0.2, 1}, .eta = {7}};
  plan.spec.until = {.rhat_below = 1.01, .ess_above = 0.1 + 0.2, .max_draws = 7};
  plan.spec.trace_every = 5;
  plan.normalisation = {{0.1, 0.2}, {0.3, 0.4}};
  plan.module = {"mine", {"store/models/m", 12, DigestOf(3)}, absl::FromUnixSeconds(9)};
  plan.spec.init.weights = {"map-0", "map-1"};
  plan.weights = {{.name = "map-0", .object = {"store/models/a", 5, DigestOf(4)}},
                  {.name = "map-1", .object = {"store/models/b", 6, DigestOf(5)}, .tenant = "vision"}};
  const auto read = DecodeRecord<JobPlan>(EncodeRecord(plan));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->spec, plan.spec);
  EXPECT_EQ(read->normalisation, plan.normalisation);
  EXPECT_EQ(read->dataset->shards, plan.dataset->shards);
  EXPECT_EQ(read->module->name, "mine");
  EXPECT_EQ(read->module->object, plan.module->object);
  EXPECT_EQ(read->module->created_at, plan.module->created_at);
  EXPECT_EQ(read->dataset->normalisation, plan.dataset->normalisation);
  ASSERT_EQ(read->weights.size(), 2u);
  EXPECT_EQ(read->weights[1].object, plan.weights[1].object);
  EXPECT_EQ(read->weights[1].tenant, "vision");
}

TEST(RecordJson, ModelsSurviveTheRoundTrip) {
  const LayerList branch = {{ConvLayer{.out_channels = 4, .bias = false}}, {BatchNormLayer{}}, {FrnLayer{0.5, false}}};
  const LayerList layers = {{ResidualLayer{branch, {{MaxPoolLayer{3, 2, 1}}}}},
                            {ConcatLayer{branch}},
                            {DropoutLayer{0.25}},
                            {LinearLayer{7}}};
  for (const ModelSpec& model :
       {ModelSpec{LayeredModel{layers}}, ModelSpec{GaussianPotential{3, 0.5}},
        ModelSpec{GaussianPotential{2, {}, {2, 1, 1, 2}, {7}}},
        ModelSpec{GaussianMixturePotential{{1, 3}, {-2, 2}, {0.5, 1}, 9}},
        ModelSpec{LinearRegressionPotential{0.25, false}}, ModelSpec{LogisticRegressionPotential{}},
        ModelSpec{StoredNetworkModel{"mine", ModelFormat::kTorchScript}},
        ModelSpec{StoredNetworkModel{"mine"}, {}, {"head.*", "0.bias"}},
        ModelSpec{BuiltinModel{"linear", {}}, GaussianLikelihood{.variance = 0.25}},
        ModelSpec{BuiltinModel{"mlp", {}}, GaussianLikelihood{.variance = {}, .learned = true}},
        ModelSpec{StoredNetworkModel{"mine", ModelFormat::kTorchScript}, HeteroscedasticGaussianLikelihood()},
        ModelSpec{BuiltinModel{"mlp", {}}, HeteroscedasticGaussianLikelihood()},
        ModelSpec{BuiltinModel{"resnet18", {}, 0.125, Stem::kImagenet}}}) {
    JobPlan plan = *PlanOf("job-aaaaaa", 3, true);
    plan.spec.model = model;
    const auto read = DecodeRecord<JobPlan>(EncodeRecord(plan));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->spec.model, model);
  }
}

TEST(RecordJson, DamagedTextIsDataLoss) {
  const std::string whole = EncodeRecord(*PlanOf("job-aaaaaa", 1));
  EXPECT_TRUE(absl::IsDataLoss(DecodeRecord<JobPlan>(whole.substr(0, whole.size() / 2)).status()));
  EXPECT_TRUE(absl::IsDataLoss(DecodeRecord<JobPlan>("{}").status()));
  EXPECT_TRUE(absl::IsDataLoss(DecodeRecord<Dataset>("[1, 2]").status()));
}

TEST(RecordJson, RecordsOfOlderReleasesBelongToTheDefaultTenant) {
  const std::string text = EncodeRecord(StoredModel{.name = "mine", .tenant = "vision"});
  EXPECT_EQ(DecodeRecord<StoredModel>(text)->tenant, "vision");
  EXPECT_EQ(DecodeRecord<StoredModel>(absl::StrReplaceAll(text, {{"\"tenant\"", "\"before\""}}))->tenant,
            kDefaultTenant);
}

TEST(RecordJson, TheTargetsOfAnOlderReleaseAreNotStandardised) {
  JobPlan plan = *PlanOf("job-aaaaaa", 1);
  plan.target_units = {3, 2};
  const std::string text = EncodeRecord(plan);
  EXPECT_EQ(DecodeRecord<JobPlan>(text)->target_units, plan.target_units);
  EXPECT_TRUE(DecodeRecord<JobPlan>(text)->spec.standardize.targets);
  const JobPlan older = DecodeRecord<JobPlan>(absl::StrReplaceAll(text, {{"\"target_units\"", "\"before\""}})).value();
  EXPECT_EQ(older.target_units, TargetUnits());
  EXPECT_FALSE(older.spec.standardize.targets);
}

TEST(RecordJson, HostNameThatIsNotUtf8DoesNotStopACommit) {
  SegmentRecord record;
  record.author.host = "caf\xe9";
  EXPECT_TRUE(DecodeRecord<SegmentRecord>(EncodeRecord(record)).ok());
}

}  // namespace
}  // namespace chainfleet

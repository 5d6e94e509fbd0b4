#include "core/wire/jobs_wire.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/base/content_limits.h"
#include "core/base/limits.h"

namespace chainfleet {
namespace {

v1::JobSpec Minimal() {
  v1::JobSpec proto;
  proto.set_name("j");
  proto.mutable_model()->set_builtin("mlp");
  proto.mutable_sampler()->mutable_sgld();
  proto.mutable_learning_rate()->set_constant(0.1);
  return proto;
}

// Returns the message of the violation at `path`, "" if there is none.
std::string ViolationAt(const v1::JobSpec& proto, const std::string& path) {
  const auto violations = FieldViolationsOf(FromProto(proto).status());
  const auto found = std::find_if(violations.begin(), violations.end(), [&](const auto& v) { return v.path == path; });
  return found == violations.end() ? "" : found->message;
}

TEST(JobSpecWire, FillsDefaults) {
  const auto spec = FromProto(Minimal());
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->batch_size, 128);
  EXPECT_EQ(spec->temperature, 1);
  EXPECT_EQ(spec->chains, 1);
  EXPECT_EQ(spec->minibatches, Minibatches::kReshuffle);
  EXPECT_TRUE(spec->prior.is_flat());
}

TEST(JobSpecWire, KeepsZeroApartFromMissing) {
  v1::JobSpec proto = Minimal();
  proto.set_temperature(0);
  proto.set_chains(0);
  const auto spec = FromProto(proto);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->temperature, 0);
  EXPECT_EQ(spec->chains, 0);
}

TEST(JobSpecWire, NamesEveryMissingChoiceAtOnce) {
  v1::JobSpec proto;
  proto.mutable_prior();
  proto.mutable_burn_in();
  EXPECT_NE(ViolationAt(proto, "model").find("builtin"), std::string::npos);
  EXPECT_NE(ViolationAt(proto, "sampler").find("emcmc"), std::string::npos);
  EXPECT_NE(ViolationAt(proto, "learning_rate").find("step_size"), std::string::npos);
  EXPECT_NE(ViolationAt(proto, "prior").find("gaussian"), std::string::npos);
  EXPECT_NE(ViolationAt(proto, "burn_in").find("epochs"), std::string::npos);
  EXPECT_EQ(FieldViolationsOf(FromProto(proto).status()).size(), 5u);
}

TEST(JobSpecWire, ASweepNeedsAList) {
  v1::JobSpec proto = Minimal();
  proto.mutable_sweep();
  EXPECT_NE(ViolationAt(proto, "sweep").find("eta: [0.0004, 0.001]"), std::string::npos);
}

TEST(JobSpecWire, NamesTheScheduleThatIsEmpty) {
  v1::JobSpec proto = Minimal();
  proto.mutable_step_size();
  EXPECT_NE(ViolationAt(proto, "step_size").find("cyclical"), std::string::npos);
}

TEST(JobSpecWire, ListsTheAllowedNames) {
  v1::JobSpec proto = Minimal();
  proto.set_minibatches("shuffled");
  proto.mutable_collect()->add_kinds("theta");
  proto.mutable_collect()->add_kinds("Theta_A");
  EXPECT_NE(ViolationAt(proto, "minibatches").find("independent"), std::string::npos);
  proto.set_precision("float16");
  EXPECT_NE(ViolationAt(proto, "precision").find("float32, tf32"), std::string::npos);
  EXPECT_NE(ViolationAt(proto, "collect.kinds[1]").find("theta_a"), std::string::npos);
  EXPECT_EQ(ViolationAt(proto, "collect.kinds[0]"), "");
}

TEST(JobSpecWire, RefusesLayersOfAPotential) {
  v1::JobSpec proto = Minimal();
  proto.mutable_model()->mutable_potential()->mutable_gaussian()->set_dimension(3);
  proto.mutable_model()->add_hidden(10);
  EXPECT_NE(ViolationAt(proto, "model.hidden"), "");
}

TEST(JobEnumsWire, NamesAgreeWithTheContract) {
  for (int i = v1::Job::State_MIN + 1; i <= v1::Job::State_MAX; ++i) {
    const auto proto = static_cast<v1::Job::State>(i);
    const JobState state = *JobStateFromString(v1::Job::State_Name(proto));
    EXPECT_EQ(ToString(state), v1::Job::State_Name(proto));
    EXPECT_EQ(ToProto(state), proto);
  }
  for (int i = v1::Job::Intent_MIN + 1; i <= v1::Job::Intent_MAX; ++i) {
    const auto proto = static_cast<v1::Job::Intent>(i);
    EXPECT_EQ(ToString(*FromProto(proto)), v1::Job::Intent_Name(proto));
  }
}

TEST(JobEnumsWire, RefusesAnUnknownStateNamingTheKnownOnes) {
  EXPECT_NE(JobStateFromString("DONE").status().message().find("SUCCEEDED_EARLY"), std::string::npos);
  EXPECT_FALSE(JobStateFromString("STATE_UNSPECIFIED").ok());
}

v1::JobSpec WithLayers() {
  v1::JobSpec proto = Minimal();
  proto.mutable_model()->clear_builtin();
  proto.mutable_model()->add_layers()->mutable_conv()->set_out_channels(4);
  auto* residual = proto.mutable_model()->add_layers()->mutable_residual();
  residual->add_branch()->mutable_conv()->set_bias(false);
  residual->add_shortcut()->mutable_dropout()->set_rate(0.25);
  return proto;
}

TEST(JobSpecWire, ReadsLayersInsideLayersWithTheirDefaults) {
  const auto spec = FromProto(WithLayers());
  ASSERT_TRUE(spec.ok()) << spec.status();
  const LayerList expected = {
      {ConvLayer{.out_channels = 4}},
      {ResidualLayer{{{ConvLayer{.bias = false}}}, {{DropoutLayer{.rate = 0.25}}}}},
  };
  EXPECT_EQ(std::get<LayeredModel>(spec->model.kind).layers, expected);
}

TEST(JobSpecWire, NamesAnEmptyLayer) {
  v1::JobSpec proto = WithLayers();
  proto.mutable_model()->mutable_layers(1)->mutable_residual()->add_branch();
  EXPECT_NE(ViolationAt(proto, "model.layers[1].residual.branch[1]").find("max_pool"), std::string::npos);
}

TEST(JobSpecWire, RefusesLayersBesideABuiltinAndSettingsOfABuiltinBesideLayers) {
  v1::JobSpec proto = WithLayers();
  proto.mutable_model()->set_width(2);
  EXPECT_NE(ViolationAt(proto, "model.width").find("built-in"), std::string::npos);
  proto.mutable_model()->set_builtin("mlp");
  EXPECT_NE(ViolationAt(proto, "model").find("exactly one"), std::string::npos);
  proto = Minimal();
  proto.mutable_model()->set_stem("big");
  EXPECT_EQ(ViolationAt(proto, "model.stem"), "\"big\"; allowed: cifar, imagenet");
}

TEST(JobSpecWire, StopsReadingLayersThatLieTooDeep) {
  v1::JobSpec proto = Minimal();
  proto.mutable_model()->clear_builtin();
  v1::Layer* layer = proto.mutable_model()->add_layers();
  for (int depth = 0; depth < 40; ++depth) layer = layer->mutable_concat()->add_branch();
  layer->mutable_relu();
  const auto violations = FieldViolationsOf(FromProto(proto).status());
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_NE(violations[0].message.find("at most 8 deep"), std::string::npos);
}

TEST(JobSpecWire, RefusesMoreBytesThanASpecMayHave) {
  v1::JobSpec proto = Minimal();
  proto.set_name(std::string(limits::kMaxSpecBytes, 'a'));
  EXPECT_NE(ViolationAt(proto, "spec").find("the most is"), std::string::npos);
}

TEST(JobSpecWire, ReadsNoLayersBeyondTheirBound) {
  v1::JobSpec proto = Minimal();
  proto.mutable_model()->clear_builtin();
  auto* layers = proto.mutable_model()->mutable_layers();
  for (int i = 0; i < 1'000'000; ++i) layers->Add();
  EXPECT_EQ(ViolationAt(proto, "model.layers"), "has too many layers, the most is 4096");
  EXPECT_EQ(FieldViolationsOf(FromProto(proto).status()).size(), 1u);
  layers->Clear();
  for (int i = 0; i < 4; ++i) {
    auto* branch = layers->Add()->mutable_residual()->mutable_branch();
    for (int k = 0; k < 1500; ++k) branch->Add()->mutable_relu();
  }
  EXPECT_EQ(ViolationAt(proto, "model.layers[2].residual.branch"), "has too many layers, the most is 4096");
}

}  // namespace
}  // namespace chainfleet

#include "core/wire/presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/status.h"
#include "core/wire/jobs_wire.h"

namespace chainfleet {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kExamples = 50'000;

// As a user would write it, with `preset` alone and what a preset leaves open.
JobSpec SpecOf(const std::string& preset) {
  v1::JobSpec proto;
  proto.set_preset(preset);
  proto.set_name("replay");
  proto.mutable_model()->set_builtin("resnet18");
  proto.mutable_dataset()->set_name("cifar10");
  if (preset.starts_with("pbnn")) {
    proto.mutable_step_size()->set_constant(1e-3);
    proto.set_num_steps(100);
  }
  auto full = ExpandPreset(proto, kExamples);
  EXPECT_TRUE(full.ok()) << full.status();
  EXPECT_EQ(full->preset(), "");
  auto spec = FromProto(*full);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return *spec;
}

double StepAt(const JobSpec& spec) { return spec.schedule.initial_value(); }

TEST(Presets, EmcmcOfficialReplaysTheScript) {
  const JobSpec spec = SpecOf("emcmc-official");
  EXPECT_EQ(std::get<EmcmcSpec>(spec.sampler.kind), (EmcmcSpec{4e-4, true, 0}));
  EXPECT_EQ(StepAt(spec), 0.5);
  EXPECT_EQ(spec.temperature, 1e-4);
  EXPECT_EQ(spec.batch_size, 128);
  EXPECT_EQ(spec.prior.precision(), 25);  // N wd
  EXPECT_EQ(spec.model.is_network(), true);
  EXPECT_EQ(PlanSteps(spec, kExamples).NumDraws(), 8);  // of theta and of theta_a: 16
  EXPECT_FALSE(std::get<EmcmcSpec>(SpecOf("emcmc-exact").sampler.kind).anchor_decay);
}

TEST(Presets, CyclicalOnesAreNoisyInTheLastFiveEpochsOfACycle) {
  for (const char* name : {"csgld-official", "csghmc-official"}) {
    const JobSpec spec = SpecOf(name);
    const StepPlan plan = PlanSteps(spec, kExamples);
    EXPECT_EQ(plan.NumDraws(), 12);
    EXPECT_EQ(spec.temperature, 1.0 / kExamples);
    EXPECT_EQ(spec.batch_size, 64);
    const auto noise_free =
        std::llround(spec.sampler.noise_free_fraction() * static_cast<double>(plan.steps_per_cycle));
    EXPECT_EQ(plan.steps_per_cycle - noise_free, 5 * plan.steps_per_epoch);
  }
  EXPECT_EQ(std::get<SghmcSpec>(SpecOf("csghmc-official").sampler.kind).friction, 0.9);
}

TEST(Presets, SwagOfficialTakesOneSnapshotAnEpochFromThe161st) {
  const JobSpec spec = SpecOf("swag-official");
  const auto& swag = std::get<SwagSpec>(spec.sampler.kind);
  EXPECT_EQ(swag.start_epoch, 161);
  EXPECT_EQ(swag.max_rank, 20);
  EXPECT_EQ(swag.scale, 0.5);
  EXPECT_EQ(PlanSteps(spec, kExamples).NumDraws(), 30);
  EXPECT_EQ(*spec.num_epochs, 300);
}

TEST(Presets, ScriptsForCifarCropAndFlipAFileMaySayOtherwise) {
  for (const char* name : {"emcmc-official", "emcmc-exact", "csgld-official", "csghmc-official", "swag-official"}) {
    EXPECT_EQ(SpecOf(name).augmentation, (AugmentationSpec{4, true})) << name;
  }
  EXPECT_FALSE(SpecOf("pbnn-cd").augmentation.any());
  v1::JobSpec proto;
  proto.set_preset("emcmc-official");
  proto.mutable_augmentation();
  EXPECT_FALSE(FromProto(*ExpandPreset(proto, kExamples))->augmentation.any());
}

TEST(Presets, PenaltyOnesDifferInPenaltyAndDataSize) {
  const auto seed = std::get<PenaltyMhSpec>(SpecOf("pbnn-seed").sampler.kind);
  const auto cd = std::get<PenaltyMhSpec>(SpecOf("pbnn-cd").sampler.kind);
  EXPECT_EQ(seed.penalty, Penalty::kPlain);
  EXPECT_EQ(seed.effective_data_size, 128);
  EXPECT_EQ(cd.penalty, Penalty::kCorrected);
  EXPECT_FALSE(cd.effective_data_size.has_value());
}

TEST(Presets, WhatTheFileSaysGoesFirst) {
  v1::JobSpec proto;
  proto.set_preset("emcmc-official");
  proto.set_temperature(1);
  proto.mutable_step_size()->set_constant(1e-6);
  proto.set_num_steps(100);
  proto.mutable_collect()->set_every_steps(10);
  const auto full = ExpandPreset(proto, kExamples);
  ASSERT_TRUE(full.ok()) << full.status();
  EXPECT_EQ(full->temperature(), 1);
  EXPECT_FALSE(full->has_learning_rate());
  EXPECT_FALSE(full->has_num_epochs());
  EXPECT_EQ(full->collect().every_steps(), 10);
  EXPECT_EQ(full->collect().kinds_size(), 0);
  EXPECT_EQ(full->batch_size(), 128);
}

TEST(Presets, AnUnknownOneIsRefusedWithAllNames) {
  v1::JobSpec proto;
  proto.set_preset("emcmc");
  const auto violations = FieldViolationsOf(ExpandPreset(proto, 1).status());
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].path, "preset");
  EXPECT_THAT(violations[0].message, HasSubstr("emcmc-official, emcmc-exact, csgld-official"));
}

}  // namespace
}  // namespace chainfleet

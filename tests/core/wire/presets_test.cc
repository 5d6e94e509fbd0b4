#include "core/wire/presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "core/base/status.h"
#include "core/wire/jobs_wire.h"

namespace chainfleet {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kExamples = 50'000;

// Returns a spec with `preset` and only the settings that a preset leaves open.
JobSpec SpecOf(const std::string& preset, const std::string& builtin = "resnet18", int64_t num_classes = 10,
               int64_t batch_size = 0) {
  v1::JobSpec proto;
  proto.set_preset(preset);
  proto.set_name("replay");
  proto.mutable_model()->set_builtin(builtin);
  proto.mutable_dataset()->set_name("cifar");
  if (batch_size > 0) proto.set_batch_size(batch_size);
  if (preset.starts_with("pbnn")) {
    proto.mutable_step_size()->set_constant(1e-3);
    proto.set_num_steps(100);
  }
  auto full = ExpandPreset(proto, {kExamples, num_classes});
  EXPECT_TRUE(full.ok()) << full.status();
  EXPECT_EQ(full->preset(), "");
  auto spec = FromProto(*full);
  EXPECT_TRUE(spec.ok()) << spec.status();
  EXPECT_THAT(Validate(*spec), ::testing::IsEmpty());
  return *spec;
}

TEST(Presets, EmcmcOnesReplayTheScript) {
  for (const bool anchor_decay : {true, false}) {
    const std::string name = anchor_decay ? "emcmc-official" : "emcmc-exact";
    const JobSpec spec = SpecOf(name);
    EXPECT_EQ(std::get<EmcmcSpec>(spec.sampler.kind), (EmcmcSpec{4e-4, anchor_decay, 0}));
    EXPECT_EQ(std::get<EmcmcSpec>(SpecOf(name, "resnet18", 100).sampler.kind), (EmcmcSpec{8e-3, anchor_decay, 0}));
    EXPECT_EQ(spec.schedule, (ScheduleSpec{StepScale::kLearningRate, CyclicalSchedule{0.5, 0, 4}}));
    EXPECT_EQ(spec.temperature, 1e-4);
    EXPECT_EQ(spec.batch_size, 128);
    EXPECT_EQ(spec.prior.precision(), 25);  // N wd
    EXPECT_EQ(*spec.num_epochs, 200);
    EXPECT_EQ(*spec.collect.last_epochs_of_cycle, 2);
    EXPECT_EQ(PlanSteps(spec, kExamples).NumDraws(), 8);  // theta and theta_a: 16
  }
}

TEST(Presets, CyclicalOnesAreNoisyInTheLastEpochsOfACycle) {
  for (const char* name : {"csgld-official", "csghmc-official"}) {
    for (const auto& [num_classes, noisy_epochs] : {std::pair{10, 5}, {100, 3}}) {
      const JobSpec spec = SpecOf(name, "resnet18", num_classes);
      const StepPlan plan = PlanSteps(spec, kExamples);
      EXPECT_EQ(plan.NumDraws(), 12);
      EXPECT_EQ(spec.temperature, 1.0 / kExamples);
      EXPECT_EQ(spec.prior.precision(), 25);
      EXPECT_EQ(spec.batch_size, 64);
      EXPECT_EQ(*spec.num_epochs, 200);
      EXPECT_EQ(spec.schedule, (ScheduleSpec{StepScale::kLearningRate, CyclicalSchedule{0.5, 0, 4}}));
      EXPECT_EQ(*spec.collect.last_epochs_of_cycle, 3);
      const auto noise_free =
          std::llround(spec.sampler.noise_free_fraction() * static_cast<double>(plan.steps_per_cycle));
      EXPECT_EQ(plan.steps_per_cycle - noise_free, noisy_epochs * plan.steps_per_epoch);
    }
  }
  const auto sghmc = std::get<SghmcSpec>(SpecOf("csghmc-official").sampler.kind);
  EXPECT_EQ(sghmc.friction, 0.9);
  EXPECT_EQ(sghmc.scheme, SghmcScheme::kFriction);
}

// run_swag.py takes a snapshot if epoch + 1 > 161, where epoch + 1 epochs are done.
TEST(Presets, SwagOfficialTakesItsFirstSnapshotAfterEpoch162) {
  const JobSpec spec = SpecOf("swag-official", "vgg16");
  EXPECT_EQ(std::get<SwagSpec>(spec.sampler.kind), (SwagSpec{0.9, 162, false, 20, 0.5, 30}));
  EXPECT_EQ(PlanSteps(spec, kExamples).NumDraws(), 30);
  EXPECT_EQ(*spec.num_epochs, 300);
  EXPECT_EQ(spec.batch_size, 128);
}

TEST(Presets, SwagOfficialHasTheRatesOfEachNetwork) {
  struct Case {
    const char* builtin;
    int64_t num_classes;
    double initial, final, weight_decay;
  };
  for (const Case& c : {Case{"vgg16", 10, 0.05, 0.01, 5e-4}, Case{"vgg16", 100, 0.05, 0.01, 5e-4},
                        Case{"preresnet164", 10, 0.1, 0.01, 3e-4}, Case{"preresnet164", 100, 0.1, 0.05, 3e-4},
                        Case{"wideresnet28x10", 10, 0.1, 0.05, 5e-4}, Case{"wideresnet28x10", 100, 0.1, 0.05, 5e-4}}) {
    const JobSpec spec = SpecOf("swag-official", c.builtin, c.num_classes);
    EXPECT_EQ(spec.schedule, (ScheduleSpec{StepScale::kLearningRate, SwagSchedule{c.initial, c.final, 161}}))
        << c.builtin << " " << c.num_classes;
    EXPECT_EQ(spec.prior.precision(), kExamples * c.weight_decay);
  }
}

TEST(Presets, ScriptsForCifarCropAndFlipAFileMaySayOtherwise) {
  for (const char* name : {"emcmc-official", "emcmc-exact", "csgld-official", "csghmc-official", "swag-official"}) {
    EXPECT_EQ(SpecOf(name).augmentation, (AugmentationSpec{4, true})) << name;
  }
  EXPECT_FALSE(SpecOf("pbnn-cd", "resnet20-frn").augmentation.any());
  v1::JobSpec proto;
  proto.set_preset("emcmc-official");
  proto.mutable_model()->set_builtin("resnet18");
  proto.mutable_augmentation();
  EXPECT_FALSE(FromProto(*ExpandPreset(proto, {kExamples, 10}))->augmentation.any());
}

TEST(Presets, PenaltyOnesDifferInPenaltyAndDataSize) {
  const auto seed = std::get<PenaltyMhSpec>(SpecOf("pbnn-seed", "resnet20-frn").sampler.kind);
  const auto cd = std::get<PenaltyMhSpec>(SpecOf("pbnn-cd", "resnet20-frn").sampler.kind);
  EXPECT_EQ(seed.penalty, Penalty::kPlain);
  EXPECT_EQ(seed.effective_data_size, 128);
  EXPECT_EQ(cd.penalty, Penalty::kCorrected);
  EXPECT_FALSE(cd.effective_data_size.has_value());
  const JobSpec smaller = SpecOf("pbnn-seed", "resnet20-frn", 10, 64);
  EXPECT_EQ(std::get<PenaltyMhSpec>(smaller.sampler.kind).effective_data_size, 64) << "that of a mini-batch";
}

TEST(Presets, KeysOfTheJobFileOverrideThePreset) {
  v1::JobSpec proto;
  proto.set_preset("emcmc-official");
  proto.set_temperature(1);
  proto.mutable_step_size()->set_constant(1e-6);
  proto.set_num_steps(100);
  proto.mutable_collect()->set_every_steps(10);
  const auto full = ExpandPreset(proto, {kExamples, 10});
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
  const auto violations = FieldViolationsOf(ExpandPreset(proto, {}).status());
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].path, "preset");
  EXPECT_THAT(violations[0].message, HasSubstr("emcmc-official, emcmc-exact, csgld-official"));
}

}  // namespace
}  // namespace chainfleet

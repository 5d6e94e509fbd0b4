#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "core/domain/wire_bytes.h"
#include "core/wire/evaluation_wire.h"
#include "core/wire/jobs_wire.h"
#include "core/wire/predict_wire.h"
#include "core/wire/types_wire.h"
#include "core/wire/worker_wire.h"
#include "tests/core/wire/random_message.h"

namespace chainfleet {
namespace {

using google::protobuf::util::MessageDifferencer;

template <typename T>
absl::StatusOr<T> AsStatusOr(absl::StatusOr<T> value) {
  return value;
}
template <typename T>
absl::StatusOr<T> AsStatusOr(T value) {
  return value;
}

// The words that a job file may use where the contract says `string`.
void FixWords(v1::JobSpec* spec, RandomMessage* random) {
  spec->clear_preset();  // filled in before a spec is read
  spec->set_minibatches(random->Below(2) == 0 ? "reshuffle" : "independent");
  spec->set_precision(random->Below(2) == 0 ? "float32" : "tf32");
  for (std::string& kind : *spec->mutable_collect()->mutable_kinds()) {
    kind = random->Below(2) == 0 ? "theta" : "theta_a";
  }
}
// Enums of samplers.
void FixSampler(v1::JobSpec::Sampler* sampler) {
  if (sampler->has_sghmc()) sampler->mutable_sghmc()->set_scheme("baoa");
  if (sampler->has_penalty_mh()) {
    sampler->mutable_penalty_mh()->set_proposal("langevin");
    sampler->mutable_penalty_mh()->set_penalty("plain");
  }
  if (sampler->has_batched_mh()) sampler->mutable_batched_mh()->set_proposal("langevin");
  if (sampler->has_laplace()) sampler->mutable_laplace()->set_structure("diagonal");
  if (sampler->has_barker_mh()) sampler->mutable_barker_mh()->set_proposal("langevin");
}
void FixScheduling(v1::JobSpec::Scheduling* scheduling) {
  scheduling->set_priority("high");
  if (scheduling->has_success_chains()) scheduling->set_success_chains(3);
}
// A built-in with its settings, a potential, or layers.
void FixModel(v1::JobSpec::Model* model, RandomMessage* random) {
  if (random->Below(3) == 0) {
    model->clear_kind();
  } else {
    model->clear_layers();
  }
  model->set_stem(random->Below(2) == 0 ? "cifar" : "imagenet");
  if (model->has_builtin()) return;
  model->clear_hidden();
  model->clear_width();
  model->clear_stem();
}

void Fix(v1::JobSpec* spec, RandomMessage* random) {
  FixWords(spec, random);
  FixModel(spec->mutable_model(), random);
  FixSampler(spec->mutable_sampler());
  FixScheduling(spec->mutable_scheduling());
}
void Fix(v1::JobPlan* plan, RandomMessage* random) { Fix(plan->mutable_spec(), random); }
void Fix(v1::ShardRequest* request, RandomMessage* random) {
  FixModel(request->mutable_plan()->mutable_model(), random);
}
// One plan per job of the grants, in their order.
void Fix(v1::SynchronizeReply* reply, RandomMessage* random) {
  const v1::JobPlan plan = reply->plans(0);
  reply->clear_plans();
  for (v1::Grant& grant : *reply->mutable_grants()) {
    grant.set_job(grant.job() + std::to_string(reply->plans_size()));
    *reply->add_plans() = plan;
    reply->mutable_plans(reply->plans_size() - 1)->set_job(grant.job());
    Fix(reply->mutable_plans(reply->plans_size() - 1), random);
  }
}
// As many values as there are steps and quantities.
void Fix(v1::CommitProgressRequest* request, RandomMessage* random) {
  v1::Trace* trace = request->mutable_trace();
  if (trace->steps().empty()) trace->add_steps(9);
  trace->clear_values();
  for (int i = 0; i < trace->steps_size() * trace->quantities_size(); ++i) trace->add_values(random->Below(100));
}
template <typename Message>
void Fix(Message*, RandomMessage*) {}

template <typename Message>
class RoundTrip : public ::testing::Test {};

using Messages =
    ::testing::Types<v1::ChainId, v1::BlobRef, v1::Segment, v1::SegmentRecord, v1::ResumePoint, v1::ChainStats,
                     v1::Normalisation, v1::Dataset, google::protobuf::Timestamp, v1::JobSpec, v1::SynchronizeRequest,
                     v1::SynchronizeReply, v1::JobPlan, v1::CommitProgressRequest, v1::Tensor, v1::ShardRequest,
                     v1::ShardResult, v1::PredictResponse, v1::Evaluation>;
TYPED_TEST_SUITE(RoundTrip, Messages);

TYPED_TEST(RoundTrip, KeepsEveryField) {
  for (uint64_t seed = 1; seed <= 64; ++seed) {  // enough that each case of each oneof comes up
    RandomMessage random(seed);
    auto message = random.Make<TypeParam>();
    Fix(&message, &random);
    const auto value = AsStatusOr(FromProto(message));
    ASSERT_TRUE(value.ok()) << value.status() << "\nseed " << seed << "\n" << message.DebugString();
    std::string difference;
    MessageDifferencer differencer;
    differencer.ReportDifferencesToString(&difference);
    EXPECT_TRUE(differencer.Compare(message, ToProto(*value))) << "seed " << seed << "\n" << difference;
  }
}

TEST(WorkerWire, KeepsTheBeginningOfALongReason) {
  v1::CommitProgressRequest message;
  for (int i = 0; i < 100'000; ++i) message.mutable_reason()->append("\xc3\xa9");
  message.mutable_reason()->insert(0, "x");
  const auto commit = FromProto(message);
  ASSERT_TRUE(commit.ok()) << commit.status();
  EXPECT_EQ(commit->commit.reason.size(), 1023u) << "whole characters of two bytes after the first";
}

TEST(WireBytes, AreNoFewerThanTheMessageTakes) {
  for (uint64_t seed = 1; seed <= 64; ++seed) {
    RandomMessage random(seed);
    auto message = random.Make<v1::JobPlan>();
    Fix(&message, &random);
    const auto plan = FromProto(message);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_GE(WireBytes(*plan), static_cast<int64_t>(ToProto(*plan).ByteSizeLong())) << "seed " << seed;
  }
  JobSpec spec;
  GaussianPotential gaussian{.dimension = 500};
  gaussian.covariance.assign(250'000, 0.1);
  spec.model.kind = PotentialKind(gaussian);
  spec.prior.kind = GaussianPrior{1, {{std::string(10'000, 'a'), 1}}};
  EXPECT_GE(WireBytes(spec), static_cast<int64_t>(ToProto(spec).ByteSizeLong()));
  spec.model.kind = LayeredModel{LayerList(4000, {ConvLayer{.out_channels = 65536}})};
  EXPECT_GE(WireBytes(spec), static_cast<int64_t>(ToProto(spec).ByteSizeLong()));
}

TEST(TypesWire, KeepsEveryEnumValue) {
  for (const auto kind : {DrawKind::kTheta, DrawKind::kThetaA}) EXPECT_EQ(*FromProto(ToProto(kind)), kind);
  for (const auto type : {InputType::kUint8, InputType::kFloat32}) EXPECT_EQ(*FromProto(ToProto(type)), type);
  for (int i = v1::ChainState_MIN + 1; i <= v1::ChainState_MAX; ++i) {
    const auto proto = static_cast<v1::ChainState>(i);
    EXPECT_EQ(ToProto(*FromProto(proto)), proto);
    EXPECT_EQ(ToString(*FromProto(proto)), v1::ChainState_Name(proto));
  }
}

TEST(TypesWire, RefusesEnumValuesOfLaterVersions) {
  EXPECT_EQ(FromProto(static_cast<v1::DrawKind>(77)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FromProto(static_cast<v1::ChainState>(77)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FromProto(static_cast<v1::InputType>(0)).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(TypesWire, KeepsTimesBefore1970) {
  const absl::Time time = absl::FromUnixNanos(-1'500'000'001);
  EXPECT_EQ(FromProto(ToProto(time)), time);
  EXPECT_GE(ToProto(time).nanos(), 0);
}

TEST(WorkerWire, SendsThePlanOfManyGrantsOnce) {
  auto plan = std::make_shared<JobPlan>();
  plan->job = "j-aaaaaa";
  SynchronizeReply reply;
  for (int32_t i = 0; i < 3; ++i) {
    Grant grant;
    grant.chain = {"j-aaaaaa", i};
    grant.plan = plan;
    reply.grants.push_back(grant);
  }
  const v1::SynchronizeReply proto = ToProto(reply);
  EXPECT_EQ(proto.plans_size(), 1);
  const auto parsed = FromProto(proto);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->grants[0].plan, parsed->grants[2].plan);
}

TEST(WorkerWire, RefusesAGrantWithoutItsPlan) {
  v1::SynchronizeReply proto;
  proto.add_grants()->set_job("j-aaaaaa");
  const auto parsed = FromProto(proto);
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(WorkerWire, RefusesATraceThatIsNoMatrix) {
  v1::CommitProgressRequest proto;
  *proto.mutable_chain() = ToProto(ChainId{"j-aaaaaa", 0});
  proto.mutable_trace()->add_quantities("energy");
  proto.mutable_trace()->add_steps(3);
  proto.mutable_trace()->add_values(1);
  ASSERT_TRUE(FromProto(proto).ok()) << FromProto(proto).status();
  proto.mutable_trace()->add_values(2);
  EXPECT_EQ(FieldViolationsOf(FromProto(proto).status()).at(0).path, "trace.values");
}

TEST(PredictWire, RefusesAShardWithNothingToPredict) {
  v1::ShardRequest proto;
  proto.mutable_plan()->mutable_model()->set_builtin("mlp");
  EXPECT_EQ(FieldViolationsOf(FromProto(proto).status()).at(0).path, "what");
}

}  // namespace
}  // namespace chainfleet

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/domain/wire_bytes.h"
#include "core/wire/jobs_wire.h"
#include "core/wire/predict_wire.h"
#include "core/wire/types_wire.h"
#include "core/wire/worker_wire.h"
#include "tests/core/wire/mapped_messages.h"

namespace chainfleet {
namespace {

using google::protobuf::util::MessageDifferencer;

template <typename Message>
class RoundTrip : public ::testing::Test {};

TYPED_TEST_SUITE(RoundTrip, MappedMessages);

TYPED_TEST(RoundTrip, KeepsEveryField) {
  for (uint64_t seed = 1; seed <= 64; ++seed) {  // enough for every case of each oneof
    const auto message = MappedMessage<TypeParam>(seed);
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
  EXPECT_EQ(commit->reason.size(), 1023u) << "whole characters of two bytes after the first";
}

TEST(WireBytes, AreNoFewerThanTheMessageTakes) {
  for (uint64_t seed = 1; seed <= 64; ++seed) {
    const auto plan = FromProto(MappedMessage<v1::JobPlan>(seed));
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_GE(WireBytes(*plan), static_cast<int64_t>(ToProto(*plan).ByteSizeLong())) << "seed " << seed;
  }
  JobPlan stored{.module = StoredModel{.signature = NetworkSignature()}};
  stored.module->signature->parameters.assign(2000, {std::string(1024, 'p'), "bfloat16", std::vector<int64_t>(8, 1)});
  EXPECT_GE(WireBytes(stored), static_cast<int64_t>(ToProto(stored).ByteSizeLong()));
  JobSpec spec;
  GaussianPotential gaussian{.dimension = 500};
  gaussian.covariance.assign(250'000, 0.1);
  spec.model.kind = PotentialKind(gaussian);
  spec.prior.kind = GaussianPrior{1, {{std::string(10'000, 'a'), 1}}};
  EXPECT_GE(WireBytes(spec), static_cast<int64_t>(ToProto(spec).ByteSizeLong()));
  spec.model.kind = LayeredModel{LayerList(4000, {ConvLayer{.out_channels = 65536}})};
  EXPECT_GE(WireBytes(spec), static_cast<int64_t>(ToProto(spec).ByteSizeLong()));
}

TEST(FieldWire, KeepsEveryEnumValue) {
  for (int i = v1::ChainState_MIN + 1; i <= v1::ChainState_MAX; ++i) {
    v1::CommitProgressRequest message;
    message.set_ends_as(static_cast<v1::ChainState>(i));
    const auto commit = FromProto(message);
    ASSERT_TRUE(commit.ok()) << commit.status();
    EXPECT_EQ(ToString(*commit->ends_as), v1::ChainState_Name(i));
    EXPECT_EQ(ToProto(*commit).ends_as(), message.ends_as());
  }
}

TEST(FieldWire, NamesThePlaceOfAValueOfALaterVersion) {
  v1::CommitProgressRequest message;
  message.mutable_segment()->add_kinds(v1::THETA);
  message.mutable_segment()->add_kinds(static_cast<v1::DrawKind>(77));
  const auto violations = FieldViolationsOf(FromProto(message).status());
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].path, "segment.kinds[1]");
  EXPECT_EQ(violations[0].message, "unknown value 77; this version knows THETA, THETA_A");
}

TEST(FieldWire, RefusesAnEnumThatIsLeftOut) {
  v1::Dataset dataset;
  const auto violations = FieldViolationsOf(FromProto(dataset).status());
  ASSERT_EQ(violations.size(), 1u) << "the target type may be left out";
  EXPECT_EQ(violations[0].path, "input_type");
}

// A field of a message that its struct does not list would be dropped.
template <typename Proto, typename T>
void ExpectAllListed(const std::set<std::string>& by_hand = {}) {
  std::set<std::string> listed = by_hand;
  T value;
  T::Fields(value, [&](const char* name, auto&&...) { listed.insert(name); });
  const auto* descriptor = Proto::descriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    EXPECT_TRUE(listed.contains(descriptor->field(i)->name())) << descriptor->field(i)->full_name();
  }
}

TEST(FieldWire, ListsEveryFieldOfTheContract) {
  ExpectAllListed<v1::Segment, Segment>();
  ExpectAllListed<v1::SegmentRecord, SegmentRecord>();
  ExpectAllListed<v1::CommitProgressRequest, ProgressCommit>();
  ExpectAllListed<v1::ChainStats, ChainStats>();
  ExpectAllListed<v1::Dataset, Dataset>();
  ExpectAllListed<v1::JobPlan, JobPlan>({"spec"});
  ExpectAllListed<v1::Grant, Grant>({"job"});
  ExpectAllListed<v1::SynchronizeRequest, SynchronizeRequest>();
  ExpectAllListed<v1::SynchronizeReply, SynchronizeReply>({"plans", "grants"});
  ExpectAllListed<v1::ShardRequest, ShardRequest>({"plan", "inputs"});
  ExpectAllListed<v1::PredictPlan, PredictPlan>({"model", "likelihood"});
  ExpectAllListed<v1::PartialPrediction, PartialPrediction>();
  ExpectAllListed<v1::PredictResponse, Prediction>();
  ExpectAllListed<v1::Scores, Scores>();
  ExpectAllListed<v1::Evaluation, Evaluation>({"id"});
  ExpectAllListed<v1::JobSpec, JobSpec>(
      {"model", "dataset", "prior", "sampler", "learning_rate", "step_size", "likelihood", "preset"});
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

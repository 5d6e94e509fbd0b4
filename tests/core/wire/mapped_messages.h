// The messages that core/wire maps to domain values and back, random and valid.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "core/wire/field_wire.h"
#include "core/wire/jobs_wire.h"
#include "core/wire/predict_wire.h"
#include "core/wire/types_wire.h"
#include "core/wire/worker_wire.h"
#include "tests/core/wire/random_message.h"

namespace chainfleet {

using MappedMessages =
    ::testing::Types<v1::ChainId, v1::BlobRef, v1::Segment, v1::SegmentRecord, v1::ResumePoint, v1::ResumeProof,
                     v1::ChainStats, v1::Normalisation, v1::TargetUnits, v1::StoredModel, v1::Dataset,
                     google::protobuf::Timestamp, v1::JobSpec, v1::SynchronizeRequest, v1::SynchronizeReply,
                     v1::JobPlan, v1::CommitProgressRequest, v1::Tensor, v1::ShardRequest, v1::ShardResult,
                     v1::PredictResponse, v1::Evaluation>;

// Parts of messages that the product maps only as parts.
inline absl::StatusOr<Segment> FromProto(const v1::Segment& proto) { return Parsed<Segment>(proto); }
inline absl::StatusOr<SegmentRecord> FromProto(const v1::SegmentRecord& proto) { return Parsed<SegmentRecord>(proto); }
inline absl::StatusOr<ResumePoint> FromProto(const v1::ResumePoint& proto) { return Parsed<ResumePoint>(proto); }
inline absl::StatusOr<ResumeProof> FromProto(const v1::ResumeProof& proto) { return Parsed<ResumeProof>(proto); }
inline absl::StatusOr<Normalisation> FromProto(const v1::Normalisation& proto) { return Parsed<Normalisation>(proto); }
inline absl::StatusOr<TargetUnits> FromProto(const v1::TargetUnits& proto) { return Parsed<TargetUnits>(proto); }
inline absl::StatusOr<StoredModel> FromProto(const v1::StoredModel& proto) { return Parsed<StoredModel>(proto); }
inline absl::StatusOr<Dataset> FromProto(const v1::Dataset& proto) { return Parsed<Dataset>(proto); }
inline v1::Segment ToProto(const Segment& segment) { return Written<v1::Segment>(segment); }
inline v1::ResumePoint ToProto(const ResumePoint& point) { return Written<v1::ResumePoint>(point); }
inline v1::ResumeProof ToProto(const ResumeProof& proof) { return Written<v1::ResumeProof>(proof); }

template <typename T>
absl::StatusOr<T> AsStatusOr(absl::StatusOr<T> value) {
  return value;
}
template <typename T>
absl::StatusOr<T> AsStatusOr(T value) {
  return value;
}

// Sets the names that a job file may use where the contract has `string`.
inline void FixWords(v1::JobSpec* spec, RandomMessage* random) {
  spec->clear_preset();  // the server fills in presets before it reads a spec
  spec->set_kind(random->Below(2) == 0 ? "posterior" : "sbc");
  spec->mutable_init()->set_format("safetensors");
  spec->set_minibatches(random->Below(2) == 0 ? "reshuffle" : "independent");
  spec->set_precision(random->Below(2) == 0 ? "float32" : "tf32");
  for (std::string& kind : *spec->mutable_collect()->mutable_kinds()) {
    kind = random->Below(2) == 0 ? "theta" : "theta_a";
  }
}
// Enums of samplers.
inline void FixSampler(v1::JobSpec::Sampler* sampler) {
  if (sampler->has_sghmc()) sampler->mutable_sghmc()->set_scheme("baoa");
  if (sampler->has_penalty_mh()) {
    sampler->mutable_penalty_mh()->set_proposal("langevin");
    sampler->mutable_penalty_mh()->set_penalty("plain");
  }
  if (sampler->has_batched_mh()) sampler->mutable_batched_mh()->set_proposal("langevin");
  if (sampler->has_laplace()) sampler->mutable_laplace()->set_structure("diagonal");
  if (sampler->has_laplace()) sampler->mutable_laplace()->set_optimizer("adamw");
  if (sampler->has_sgd()) sampler->mutable_sgd()->set_optimizer("adamw");
  if (sampler->has_swa()) sampler->mutable_swa()->set_optimizer("adamw");
  if (sampler->has_swag()) sampler->mutable_swag()->set_optimizer("adamw");
  if (sampler->has_mc_dropout()) sampler->mutable_mc_dropout()->set_optimizer("adamw");
  if (sampler->has_mile()) sampler->mutable_mile()->set_descent("heavy_ball");
  if (sampler->has_smile()) sampler->mutable_smile()->set_descent("heavy_ball");
  if (sampler->has_barker_mh()) sampler->mutable_barker_mh()->set_proposal("langevin");
}
inline void FixLikelihood(v1::JobSpec::Likelihood* likelihood) {
  if (!likelihood->has_heteroscedastic_gaussian()) return;
  likelihood->mutable_heteroscedastic_gaussian()->set_deviation("softplus");
}
inline void FixScheduling(v1::JobSpec::Scheduling* scheduling) {
  scheduling->set_priority("high");
  if (scheduling->has_success_chains()) scheduling->set_success_chains(3);
}
// Keeps a built-in with its settings, a potential, or layers.
inline void FixModel(v1::JobSpec::Model* model, RandomMessage* random) {
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
  model->clear_vocabulary();
}

inline void Fix(v1::JobSpec* spec, RandomMessage* random) {
  FixWords(spec, random);
  FixModel(spec->mutable_model(), random);
  FixSampler(spec->mutable_sampler());
  if (spec->has_likelihood()) FixLikelihood(spec->mutable_likelihood());
  FixScheduling(spec->mutable_scheduling());
}
inline void Fix(v1::JobPlan* plan, RandomMessage* random) { Fix(plan->mutable_spec(), random); }
inline void Fix(v1::ShardRequest* request, RandomMessage* random) {
  FixModel(request->mutable_plan()->mutable_model(), random);
  if (request->plan().has_likelihood()) FixLikelihood(request->mutable_plan()->mutable_likelihood());
}
// Keeps one plan for each job of the grants, in their order.
inline void Fix(v1::SynchronizeReply* reply, RandomMessage* random) {
  const v1::JobPlan plan = reply->plans(0);
  reply->clear_plans();
  for (v1::Grant& grant : *reply->mutable_grants()) {
    grant.set_job(grant.job() + std::to_string(reply->plans_size()));
    *reply->add_plans() = plan;
    reply->mutable_plans(reply->plans_size() - 1)->set_job(grant.job());
    Fix(reply->mutable_plans(reply->plans_size() - 1), random);
  }
}
// Keeps as many values as there are steps and quantities.
inline void Fix(v1::CommitProgressRequest* request, RandomMessage* random) {
  v1::Trace* trace = request->mutable_trace();
  if (trace->steps().empty()) trace->add_steps(9);
  trace->clear_values();
  for (int i = 0; i < trace->steps_size() * trace->quantities_size(); ++i) trace->add_values(random->Below(100));
}
// A message about labels or numbers keeps the fields of one sort.
inline void KeepOneSort(v1::Dataset* dataset) {
  if (dataset->target_type() == v1::FLOAT32_TARGETS) dataset->clear_num_classes();
}
inline void KeepOneSort(v1::JobPlan* plan) {
  if (plan->has_dataset()) KeepOneSort(plan->mutable_dataset());
}
inline void KeepOneSort(v1::SynchronizeReply* reply) {
  for (v1::JobPlan& plan : *reply->mutable_plans()) KeepOneSort(&plan);
}
inline void KeepOneSort(v1::ShardRequest* request) {
  if (request->has_rows() && request->rows().has_dataset()) KeepOneSort(request->mutable_rows()->mutable_dataset());
}
inline void KeepOneSort(bool classes, v1::Members* members) {
  if (!classes) return members->clear_probabilities();
  members->clear_mean();
  members->clear_variance();
}
inline void KeepOneSort(bool classes, v1::PredictiveScores* scores) {
  v1::PredictiveScores kept;
  if (classes) {
    kept = *scores;
    kept.clear_mean();
    kept.clear_variance_aleatoric();
    kept.clear_variance_epistemic();
  } else {
    *kept.mutable_mean() = scores->mean();
    *kept.mutable_variance_aleatoric() = scores->variance_aleatoric();
    *kept.mutable_variance_epistemic() = scores->variance_epistemic();
  }
  *scores = kept;
}
inline void KeepOneSort(v1::PredictResponse* response) {
  const bool classes = response->num_classes() != 0;
  if (response->has_scores()) KeepOneSort(classes, response->mutable_scores());
  if (response->has_errors()) KeepOneSort(classes, response->mutable_errors());
  for (v1::Members& members : *response->mutable_members()) KeepOneSort(classes, &members);
}
inline void KeepOneSort(v1::ShardResult* result) {
  for (v1::PartialPrediction& partial : *result->mutable_partials()) {
    const bool classes = partial.num_classes() != 0;
    if (partial.has_members()) KeepOneSort(classes, partial.mutable_members());
    if (classes) {
      partial.clear_sum_wm();
      partial.clear_sum_wm2();
      partial.clear_sum_wv();
      partial.clear_log_sum_wd();
      partial.clear_sum_wc();
    } else {
      partial.clear_sum_wp();
      partial.clear_sum_wp2();
      partial.clear_sum_wh();
      partial.clear_votes();
      partial.clear_draw_hits();
    }
  }
}
template <typename Message>
void KeepOneSort(Message*) {}

inline void Fix(v1::ShardResult* result, RandomMessage* random) {
  for (v1::PartialPrediction& partial : *result->mutable_partials()) {
    if (random->Below(2) == 0) partial.clear_num_classes();
  }
}
inline void Fix(v1::PredictResponse* response, RandomMessage* random) {
  if (random->Below(2) == 0) response->clear_num_classes();
}
// The server adds the id when it renders the operation.
inline void Fix(v1::Evaluation* evaluation, RandomMessage*) { evaluation->clear_id(); }
template <typename Message>
void Fix(Message*, RandomMessage*) {}

// Returns the same message for each seed, without values that the mapping fills in or rejects.
template <typename Message>
Message MappedMessage(uint64_t seed) {
  RandomMessage random(seed);
  auto message = random.Make<Message>();
  Fix(&message, &random);
  KeepOneSort(&message);
  return message;
}

}  // namespace chainfleet

#include "core/wire/predict_wire.h"

#include <memory>
#include <utility>

#include "core/wire/evaluation_wire.h"
#include "core/wire/jobs_wire.h"
#include "core/wire/types_wire.h"

namespace chainfleet {
namespace {

v1::PredictPlan PlanToProto(const PredictPlan& plan) {
  v1::PredictPlan proto;
  proto.set_job(plan.job);
  *proto.mutable_model() = ToProto(plan.model);
  proto.mutable_input_shape()->Add(plan.input_shape.begin(), plan.input_shape.end());
  proto.set_num_classes(plan.num_classes);
  if (plan.model.likelihood) *proto.mutable_likelihood() = ToProto(*plan.model.likelihood);
  *proto.mutable_normalisation() = ToProto(plan.normalisation);
  *proto.mutable_target_units() = ToProto(plan.target_units);
  if (plan.module) *proto.mutable_module() = ToProto(*plan.module);
  return proto;
}

absl::StatusOr<PredictPlan> PlanFromProto(const v1::PredictPlan& proto) {
  PredictPlan plan;
  plan.job = proto.job();
  CHAINFLEET_ASSIGN_OR_RETURN(plan.model, FromProto(proto.model()));
  plan.input_shape = FromProto(proto.input_shape());
  plan.num_classes = proto.num_classes();
  if (proto.has_likelihood()) {
    CHAINFLEET_ASSIGN_OR_RETURN(plan.model.likelihood, FromProto(proto.likelihood()));
  }
  plan.normalisation = FromProto(proto.normalisation());
  if (proto.has_target_units()) plan.target_units = FromProto(proto.target_units());
  if (proto.has_module()) plan.module = FromProto(proto.module());
  return plan;
}

absl::StatusOr<ChainDraws> DrawsFromProto(const v1::ChainDraws& proto) {
  ChainDraws draws{.chain = FromProto(proto.chain()),
                   .segments = {},
                   .skip_draws = proto.skip_draws(),
                   .num_draws = proto.num_draws(),
                   .every = proto.every()};
  for (const auto& segment : proto.segments()) {
    CHAINFLEET_ASSIGN_OR_RETURN(auto parsed, FromProto(segment));
    draws.segments.push_back(std::move(parsed));
  }
  return draws;
}

v1::Members MembersToProto(const Members& members) {
  v1::Members proto;
  *proto.mutable_chain() = ToProto(members.chain);
  proto.set_kind(ToProto(members.kind));
  Fill(members.weights, proto.mutable_weights());
  Fill(members.probabilities, proto.mutable_probabilities());
  Fill(members.mean, proto.mutable_mean());
  Fill(members.variance, proto.mutable_variance());
  return proto;
}

absl::StatusOr<Members> MembersFromProto(const v1::Members& proto) {
  Members members;
  members.chain = FromProto(proto.chain());
  CHAINFLEET_ASSIGN_OR_RETURN(members.kind, FromProto(proto.kind()));
  members.weights = FromProto(proto.weights());
  members.probabilities = {proto.probabilities().begin(), proto.probabilities().end()};
  members.mean = {proto.mean().begin(), proto.mean().end()};
  members.variance = {proto.variance().begin(), proto.variance().end()};
  return members;
}

v1::PartialPrediction PartialToProto(const PartialPrediction& partial) {
  v1::PartialPrediction proto;
  *proto.mutable_chain() = ToProto(partial.chain);
  proto.set_kind(ToProto(partial.kind));
  proto.set_num_draws(partial.num_draws);
  proto.set_num_rows(partial.num_rows);
  proto.set_num_classes(partial.num_classes);
  proto.set_sum_w(partial.sum_w);
  proto.set_sum_w2(partial.sum_w2);
  Fill(partial.sum_wp, proto.mutable_sum_wp());
  Fill(partial.sum_wp2, proto.mutable_sum_wp2());
  Fill(partial.sum_wh, proto.mutable_sum_wh());
  Fill(partial.votes, proto.mutable_votes());
  Fill(partial.draw_log_likelihood, proto.mutable_draw_log_likelihood());
  Fill(partial.draw_weights, proto.mutable_draw_weights());
  proto.mutable_draw_hits()->Add(partial.draw_hits.begin(), partial.draw_hits.end());
  Fill(partial.sum_wm, proto.mutable_sum_wm());
  Fill(partial.sum_wm2, proto.mutable_sum_wm2());
  Fill(partial.sum_wv, proto.mutable_sum_wv());
  Fill(partial.log_sum_wd, proto.mutable_log_sum_wd());
  Fill(partial.sum_wc, proto.mutable_sum_wc());
  if (partial.members) *proto.mutable_members() = MembersToProto(*partial.members);
  return proto;
}

absl::StatusOr<PartialPrediction> PartialFromProto(const v1::PartialPrediction& proto) {
  PartialPrediction partial;
  partial.chain = FromProto(proto.chain());
  CHAINFLEET_ASSIGN_OR_RETURN(partial.kind, FromProto(proto.kind()));
  partial.num_draws = proto.num_draws();
  partial.num_rows = proto.num_rows();
  partial.num_classes = proto.num_classes();
  partial.sum_w = proto.sum_w();
  partial.sum_w2 = proto.sum_w2();
  partial.sum_wp = FromProto(proto.sum_wp());
  partial.sum_wp2 = FromProto(proto.sum_wp2());
  partial.sum_wh = FromProto(proto.sum_wh());
  partial.votes = FromProto(proto.votes());
  partial.draw_log_likelihood = FromProto(proto.draw_log_likelihood());
  partial.draw_weights = FromProto(proto.draw_weights());
  partial.draw_hits = FromProto(proto.draw_hits());
  partial.sum_wm = FromProto(proto.sum_wm());
  partial.sum_wm2 = FromProto(proto.sum_wm2());
  partial.sum_wv = FromProto(proto.sum_wv());
  partial.log_sum_wd = FromProto(proto.log_sum_wd());
  partial.sum_wc = FromProto(proto.sum_wc());
  if (proto.has_members()) {
    CHAINFLEET_ASSIGN_OR_RETURN(partial.members, MembersFromProto(proto.members()));
  }
  return partial;
}

void ScoresToProto(const PredictiveScores& scores, v1::PredictiveScores* proto) {
  Fill(scores.mean_probability, proto->mutable_mean_probability());
  Fill(scores.log_probability, proto->mutable_log_probability());
  Fill(scores.max_probability, proto->mutable_max_probability());
  Fill(scores.predictive_entropy, proto->mutable_predictive_entropy());
  Fill(scores.expected_entropy, proto->mutable_expected_entropy());
  Fill(scores.mutual_information, proto->mutable_mutual_information());
  Fill(scores.variation_ratio, proto->mutable_variation_ratio());
  Fill(scores.mean, proto->mutable_mean());
  Fill(scores.variance_aleatoric, proto->mutable_variance_aleatoric());
  Fill(scores.variance_epistemic, proto->mutable_variance_epistemic());
}

PredictiveScores ScoresFromProto(const v1::PredictiveScores& proto) {
  PredictiveScores scores;
  scores.mean_probability = FromProto(proto.mean_probability());
  scores.log_probability = FromProto(proto.log_probability());
  scores.max_probability = FromProto(proto.max_probability());
  scores.predictive_entropy = FromProto(proto.predictive_entropy());
  scores.expected_entropy = FromProto(proto.expected_entropy());
  scores.mutual_information = FromProto(proto.mutual_information());
  scores.variation_ratio = FromProto(proto.variation_ratio());
  scores.mean = FromProto(proto.mean());
  scores.variance_aleatoric = FromProto(proto.variance_aleatoric());
  scores.variance_epistemic = FromProto(proto.variance_epistemic());
  return scores;
}

}  // namespace

v1::Tensor ToProto(const InputTensor& tensor) {
  v1::Tensor proto;
  proto.set_type(ToProto(tensor.type));
  proto.mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
  proto.set_data(tensor.bytes);
  return proto;
}

absl::StatusOr<InputTensor> FromProto(v1::Tensor proto) {
  InputTensor tensor;
  CHAINFLEET_ASSIGN_OR_RETURN(tensor.type, FromProto(proto.type()));
  tensor.shape = FromProto(proto.shape());
  tensor.bytes = std::move(*proto.mutable_data());
  return tensor;
}

v1::ShardRequest ToProto(const ShardRequest& request) {
  v1::ShardRequest proto;
  proto.set_shard_id(request.shard_id);
  *proto.mutable_plan() = PlanToProto(*request.plan);
  for (const ChainDraws& draws : request.chains) {
    auto* added = proto.add_chains();
    *added->mutable_chain() = ToProto(draws.chain);
    for (const Segment& segment : draws.segments) *added->add_segments() = ToProto(segment);
    added->set_num_draws(draws.num_draws);
    added->set_skip_draws(draws.skip_draws);
    added->set_every(draws.every);
  }
  KindsToProto(request.kinds, proto.mutable_kinds());
  if (request.inputs) *proto.mutable_inputs() = ToProto(*request.inputs);
  if (request.rows) {
    *proto.mutable_rows()->mutable_dataset() = ToProto(request.rows->dataset);
    proto.mutable_rows()->set_first_row(request.rows->first_row);
    proto.mutable_rows()->set_num_rows(request.rows->num_rows);
  }
  proto.set_per_draw_scores(request.per_draw_scores);
  proto.set_members(request.members);
  if (request.corruption) {
    proto.mutable_corruption()->set_name(request.corruption->name);
    proto.mutable_corruption()->set_severity(request.corruption->severity);
    proto.mutable_corruption()->set_seed(request.corruption->seed);
  }
  if (request.flatness) {
    proto.mutable_flatness()->set_fisher_points(request.flatness->fisher_points);
    proto.mutable_flatness()->set_line_points(request.flatness->line_points);
    proto.mutable_flatness()->set_radius(request.flatness->radius);
    proto.mutable_flatness()->set_seed(request.flatness->seed);
  }
  proto.set_trace_id(request.trace_id);
  return proto;
}

absl::StatusOr<ShardRequest> FromProto(v1::ShardRequest proto) {
  ShardRequest request;
  request.shard_id = proto.shard_id();
  CHAINFLEET_ASSIGN_OR_RETURN(auto plan, PlanFromProto(proto.plan()));
  request.plan = std::make_shared<const PredictPlan>(std::move(plan));
  for (const auto& draws : proto.chains()) {
    CHAINFLEET_ASSIGN_OR_RETURN(auto parsed, DrawsFromProto(draws));
    request.chains.push_back(std::move(parsed));
  }
  CHAINFLEET_ASSIGN_OR_RETURN(request.kinds, KindsFromProto(proto.kinds()));
  if (proto.has_inputs()) {
    CHAINFLEET_ASSIGN_OR_RETURN(auto inputs, FromProto(std::move(*proto.mutable_inputs())));
    request.inputs = std::make_shared<const InputTensor>(std::move(inputs));
  } else if (proto.has_rows()) {
    DatasetRows rows{.dataset = {}, .first_row = proto.rows().first_row(), .num_rows = proto.rows().num_rows()};
    CHAINFLEET_ASSIGN_OR_RETURN(rows.dataset, FromProto(proto.rows().dataset()));
    request.rows = std::move(rows);
  } else {
    return InvalidFields({{"what", "missing; give one of inputs, rows"}});
  }
  request.per_draw_scores = proto.per_draw_scores();
  request.members = proto.members();
  if (proto.has_corruption()) {
    request.corruption = {proto.corruption().name(), proto.corruption().severity(), proto.corruption().seed()};
  }
  if (proto.has_flatness()) {
    request.flatness = {.fisher_points = proto.flatness().fisher_points(),
                        .line_points = proto.flatness().line_points(),
                        .radius = proto.flatness().radius(),
                        .seed = proto.flatness().seed()};
  }
  request.trace_id = proto.trace_id();
  return request;
}

v1::ShardResult ToProto(const ShardResult& result) {
  v1::ShardResult proto;
  proto.set_shard_id(result.shard_id);
  for (const PartialPrediction& partial : result.partials) *proto.add_partials() = PartialToProto(partial);
  for (const std::string& object : result.corrupt_objects) proto.add_corrupt_objects(object);
  for (const Flatness& flatness : result.flatness) *proto.add_flatness() = ToProto(flatness);
  return proto;
}

absl::StatusOr<ShardResult> FromProto(const v1::ShardResult& proto) {
  ShardResult result;
  result.shard_id = proto.shard_id();
  for (const auto& partial : proto.partials()) {
    CHAINFLEET_ASSIGN_OR_RETURN(auto parsed, PartialFromProto(partial));
    result.partials.push_back(std::move(parsed));
  }
  result.corrupt_objects = {proto.corrupt_objects().begin(), proto.corrupt_objects().end()};
  for (const auto& flatness : proto.flatness()) result.flatness.push_back(FromProto(flatness));
  return result;
}

v1::PredictResponse ToProto(const Prediction& prediction) {
  v1::PredictResponse proto;
  proto.set_num_rows(prediction.num_rows);
  proto.set_num_classes(prediction.num_classes);
  ScoresToProto(prediction.scores, proto.mutable_scores());
  if (!prediction.errors.mean_probability.empty() || !prediction.errors.mean.empty()) {
    ScoresToProto(prediction.errors, proto.mutable_errors());
  }
  proto.set_version(prediction.version);
  proto.set_draws_used(prediction.draws_used);
  proto.set_point(prediction.point);
  proto.set_draws_in_version(prediction.draws_in_version);
  proto.set_job_id(prediction.job);
  Fill(prediction.quantiles, proto.mutable_quantiles());
  Fill(prediction.quantile_errors, proto.mutable_quantile_errors());
  for (const Members& members : prediction.members) *proto.add_members() = MembersToProto(members);
  return proto;
}

absl::StatusOr<Prediction> FromProto(const v1::PredictResponse& proto) {
  Prediction prediction;
  prediction.job = proto.job_id();
  prediction.version = proto.version();
  prediction.draws_used = proto.draws_used();
  prediction.point = proto.point();
  prediction.draws_in_version = proto.draws_in_version();
  prediction.num_rows = proto.num_rows();
  prediction.num_classes = proto.num_classes();
  prediction.scores = ScoresFromProto(proto.scores());
  prediction.errors = ScoresFromProto(proto.errors());
  prediction.quantiles = FromProto(proto.quantiles());
  prediction.quantile_errors = FromProto(proto.quantile_errors());
  for (const auto& members : proto.members()) {
    CHAINFLEET_ASSIGN_OR_RETURN(prediction.members.emplace_back(), MembersFromProto(members));
  }
  return prediction;
}

}  // namespace chainfleet

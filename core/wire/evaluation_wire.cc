#include "core/wire/evaluation_wire.h"

#include "core/wire/types_wire.h"

namespace chainfleet {
namespace {

v1::ReliabilityBin BinToProto(const CalibrationBin& bin) {
  v1::ReliabilityBin proto;
  proto.set_lower(bin.lower);
  proto.set_upper(bin.upper);
  proto.set_count(bin.count);
  proto.set_mean_confidence(bin.mean_confidence);
  proto.set_accuracy(bin.accuracy);
  return proto;
}

CalibrationBin BinFromProto(const v1::ReliabilityBin& proto) {
  return {proto.lower(), proto.upper(), proto.count(), proto.mean_confidence(), proto.accuracy()};
}

v1::Scores ScoresToProto(const Scores& scores) {
  v1::Scores proto;
  proto.set_what(scores.what);
  proto.set_num_draws(scores.num_draws);
  proto.set_accuracy(scores.accuracy);
  proto.set_nll(scores.nll);
  proto.set_brier(scores.brier);
  proto.set_ece(scores.ece);
  proto.set_ece_equal_mass(scores.ece_equal_mass);
  if (scores.ood_auroc) proto.set_ood_auroc(*scores.ood_auroc);
  proto.set_mean_predictive_entropy(scores.mean_predictive_entropy);
  proto.set_mean_mutual_information(scores.mean_mutual_information);
  if (scores.ood_mean_predictive_entropy) proto.set_ood_mean_predictive_entropy(*scores.ood_mean_predictive_entropy);
  if (scores.ood_auroc_mutual_information) proto.set_ood_auroc_mutual_information(*scores.ood_auroc_mutual_information);
  if (scores.rmse) proto.set_rmse(*scores.rmse);
  if (scores.coverage_90) proto.set_coverage_90(*scores.coverage_90);
  if (scores.temperature) proto.set_temperature(*scores.temperature);
  if (scores.misclassification_auroc) proto.set_misclassification_auroc(*scores.misclassification_auroc);
  if (scores.misclassification_aupr) proto.set_misclassification_aupr(*scores.misclassification_aupr);
  if (scores.ood_aupr) proto.set_ood_aupr(*scores.ood_aupr);
  for (const CalibrationBin& bin : scores.reliability) *proto.add_reliability() = BinToProto(bin);
  Fill(scores.entropy_histogram, proto.mutable_entropy_histogram());
  Fill(scores.ood_entropy_histogram, proto.mutable_ood_entropy_histogram());
  if (scores.entropy_divergence) proto.set_entropy_divergence(*scores.entropy_divergence);
  return proto;
}

Scores ScoresFromProto(const v1::Scores& proto) {
  Scores scores;
  scores.what = proto.what();
  scores.num_draws = proto.num_draws();
  scores.accuracy = proto.accuracy();
  scores.nll = proto.nll();
  scores.brier = proto.brier();
  scores.ece = proto.ece();
  scores.ece_equal_mass = proto.ece_equal_mass();
  if (proto.has_ood_auroc()) scores.ood_auroc = proto.ood_auroc();
  scores.mean_predictive_entropy = proto.mean_predictive_entropy();
  scores.mean_mutual_information = proto.mean_mutual_information();
  if (proto.has_ood_mean_predictive_entropy()) scores.ood_mean_predictive_entropy = proto.ood_mean_predictive_entropy();
  if (proto.has_ood_auroc_mutual_information()) {
    scores.ood_auroc_mutual_information = proto.ood_auroc_mutual_information();
  }
  if (proto.has_rmse()) scores.rmse = proto.rmse();
  if (proto.has_coverage_90()) scores.coverage_90 = proto.coverage_90();
  if (proto.has_temperature()) scores.temperature = proto.temperature();
  if (proto.has_misclassification_auroc()) scores.misclassification_auroc = proto.misclassification_auroc();
  if (proto.has_misclassification_aupr()) scores.misclassification_aupr = proto.misclassification_aupr();
  if (proto.has_ood_aupr()) scores.ood_aupr = proto.ood_aupr();
  for (const auto& bin : proto.reliability()) scores.reliability.push_back(BinFromProto(bin));
  scores.entropy_histogram = FromProto(proto.entropy_histogram());
  scores.ood_entropy_histogram = FromProto(proto.ood_entropy_histogram());
  if (proto.has_entropy_divergence()) scores.entropy_divergence = proto.entropy_divergence();
  return scores;
}

// What an evaluation finds beyond the table, if asked.
void FindingsToProto(const Evaluation& evaluation, v1::Evaluation* proto) {
  for (const CurvePoint& point : evaluation.curve) {
    auto* added = proto->add_curve();
    added->set_num_draws(point.num_draws);
    added->set_accuracy(point.accuracy);
    added->set_nll(point.nll);
    added->set_ece(point.ece);
  }
  for (const CorruptedScores& corrupted : evaluation.corrupted) {
    auto* added = proto->add_corrupted();
    added->set_corruption(corrupted.corruption);
    added->set_severity(corrupted.severity);
    *added->mutable_scores() = ScoresToProto(corrupted.scores);
  }
  for (const Flatness& flatness : evaluation.flatness) *proto->add_flatness() = ToProto(flatness);
  for (const ExampleRow& example : evaluation.examples) {
    auto* added = proto->add_examples();
    added->set_row(example.row);
    added->set_label(example.label);
    added->set_predicted(example.predicted);
    added->set_max_probability(example.max_probability);
    added->set_predictive_entropy(example.predictive_entropy);
    added->set_mutual_information(example.mutual_information);
  }
}

void FindingsFromProto(const v1::Evaluation& proto, Evaluation* evaluation) {
  for (const auto& point : proto.curve()) {
    evaluation->curve.push_back({point.num_draws(), point.accuracy(), point.nll(), point.ece()});
  }
  for (const auto& corrupted : proto.corrupted()) {
    evaluation->corrupted.push_back(
        {corrupted.corruption(), corrupted.severity(), ScoresFromProto(corrupted.scores())});
  }
  for (const auto& flatness : proto.flatness()) evaluation->flatness.push_back(FromProto(flatness));
  for (const auto& example : proto.examples()) {
    evaluation->examples.push_back({example.row(), example.label(), example.predicted(), example.max_probability(),
                                    example.predictive_entropy(), example.mutual_information()});
  }
}

}  // namespace

v1::Flatness ToProto(const Flatness& flatness) {
  v1::Flatness proto;
  *proto.mutable_chain() = ToProto(flatness.chain);
  proto.set_fisher_trace(flatness.fisher_trace);
  Fill(flatness.fisher_ranks, proto.mutable_fisher_ranks());
  Fill(flatness.fisher_values, proto.mutable_fisher_values());
  Fill(flatness.line_positions, proto.mutable_line_positions());
  Fill(flatness.random_line, proto.mutable_random_line());
  Fill(flatness.anchor_line, proto.mutable_anchor_line());
  return proto;
}

Flatness FromProto(const v1::Flatness& proto) {
  return {.chain = FromProto(proto.chain()),
          .fisher_trace = proto.fisher_trace(),
          .fisher_ranks = FromProto(proto.fisher_ranks()),
          .fisher_values = FromProto(proto.fisher_values()),
          .line_positions = FromProto(proto.line_positions()),
          .random_line = FromProto(proto.random_line()),
          .anchor_line = FromProto(proto.anchor_line())};
}

v1::Evaluation ToProto(const Evaluation& evaluation) {
  v1::Evaluation proto;
  proto.set_job_id(evaluation.job);
  proto.set_version(evaluation.version);
  proto.set_dataset(evaluation.dataset);
  proto.set_ood_dataset(evaluation.ood_dataset);
  proto.set_calibration_dataset(evaluation.calibration_dataset);
  proto.set_num_rows(evaluation.num_rows);
  proto.set_num_ood_rows(evaluation.num_ood_rows);
  proto.set_num_calibration_rows(evaluation.num_calibration_rows);
  proto.set_draws_used(evaluation.draws_used);
  proto.set_point(evaluation.point);
  proto.set_draws_in_version(evaluation.draws_in_version);
  for (const Scores& scores : evaluation.scores) *proto.add_scores() = ScoresToProto(scores);
  FindingsToProto(evaluation, &proto);
  return proto;
}

Evaluation FromProto(const v1::Evaluation& proto) {
  Evaluation evaluation;
  evaluation.job = proto.job_id();
  evaluation.version = proto.version();
  evaluation.dataset = proto.dataset();
  evaluation.ood_dataset = proto.ood_dataset();
  evaluation.calibration_dataset = proto.calibration_dataset();
  evaluation.num_rows = proto.num_rows();
  evaluation.num_ood_rows = proto.num_ood_rows();
  evaluation.num_calibration_rows = proto.num_calibration_rows();
  evaluation.draws_used = proto.draws_used();
  evaluation.point = proto.point();
  evaluation.draws_in_version = proto.draws_in_version();
  for (const auto& scores : proto.scores()) evaluation.scores.push_back(ScoresFromProto(scores));
  FindingsFromProto(proto, &evaluation);
  return evaluation;
}

}  // namespace chainfleet

#include "client/cli/report/page.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/cli/output.h"
#include "client/cli/report/report_template.h"
#include "client/cli/report/trace_series.h"
#include "client/cli/views/evaluation_view.h"
#include "client/cli/views/job_view.h"
#include "client/cli/views/rank_view.h"
#include "client/cli/views/report_view.h"
#include "core/base/saturating.h"
#include "core/base/version.h"
#include "core/domain/job_spec.h"
#include "core/store/draw_codec/sha256.h"
#include "core/wire/jobs_wire.h"
#include "google/protobuf/util/time_util.h"
#include "nlohmann/json.hpp"

namespace chainfleet {
namespace {

using nlohmann::json;

constexpr int64_t kLeastSide = 2, kMostSide = 1024;
constexpr double kMasses[] = {0.2, 0.4, 0.6, 0.8, 0.9, 0.95};  // masses of the central intervals

json ToJsonValue(const google::protobuf::Message& message) {
  return json::parse(ToJson(message, false), nullptr, false);
}

// As proto3 JSON has it: JSON has no infinity and no NaN.
json ToJsonValue(double number) {
  if (std::isfinite(number)) return number;
  return std::isnan(number) ? "NaN" : (number > 0 ? "Infinity" : "-Infinity");
}

json ToJsonValue(const Table& table) {
  json columns = json::array();
  for (const Table::Column& column : table.columns()) {
    columns.push_back({{"name", column.header}, {"right", column.right}});
  }
  return {{"columns", std::move(columns)}, {"rows", table.rows()}};
}

// One point of the job's sweep as if it were the whole job: that point's posterior, chains and diagnostics.
v1::Job JobOfPoint(const v1::Job& job, int32_t point) {
  v1::Job one = job;
  if (point < job.points_size()) {
    *one.mutable_report() = job.points(point).report();
    one.set_num_draws(job.points(point).num_draws());
  }
  one.clear_points();
  one.clear_chains();
  one.clear_diagnostics();
  for (const v1::Chain& chain : job.chains()) {
    if (chain.point() == point) *one.add_chains() = chain;
  }
  for (const v1::Job::Diagnostic& diagnostic : job.diagnostics()) {
    if (diagnostic.point() == point) *one.add_diagnostics() = diagnostic;
  }
  return one;
}

// The job counts kept steps. Each of them has a draw of each kind that the job keeps.
void CountDraws(v1::Job* job) {
  const absl::StatusOr<JobSpec> spec = FromProto(job->spec());
  const int64_t kinds = spec.ok() ? static_cast<int64_t>(KindsOf(*spec).size()) : 1;
  job->set_num_draws(SaturatingMultiply(job->num_draws(), kinds));
  job->mutable_report()->set_draws_per_chain(SaturatingMultiply(job->report().draws_per_chain(), kinds));
  for (v1::Chain& chain : *job->mutable_chains()) chain.set_num_draws(SaturatingMultiply(chain.num_draws(), kinds));
}

// The same of an evaluation, with the kinds that it read: only `scores` counts draws already.
void CountDraws(v1::Evaluation* evaluation) {
  int64_t kinds = 1;
  for (const v1::Scores& scores : evaluation->scores()) {
    if (scores.what() == "all" && evaluation->draws_used() > 0) kinds = scores.num_draws() / evaluation->draws_used();
  }
  evaluation->set_draws_used(SaturatingMultiply(evaluation->draws_used(), kinds));
  evaluation->set_draws_in_version(SaturatingMultiply(evaluation->draws_in_version(), kinds));
  for (v1::CurvePoint& point : *evaluation->mutable_curve()) {
    point.set_num_draws(SaturatingMultiply(point.num_draws(), kinds));
  }
}

json WarningsJson(const v1::Job& job) {
  json warnings = json::array();
  for (const v1::Chain& chain : job.chains()) {
    for (const std::string& text : chain.warnings())
      warnings.push_back({{"chain", chain.id().index()}, {"text", text}});
  }
  return warnings;
}

json DiagnosticsJson(const v1::Job& job) {
  json diagnostics = json::array();
  for (const v1::Job::Diagnostic& found : job.diagnostics()) {
    diagnostics.push_back({{"quantity", found.quantity()},
                           {"rhat", found.has_rhat() ? ToJsonValue(found.rhat()) : json()},
                           {"nested_rhat", found.has_nested_rhat() ? ToJsonValue(found.nested_rhat()) : json()},
                           {"descriptive", found.descriptive()},
                           {"judged", ToJsonValue(JudgedRhat(found).value_or(NAN))}});
  }
  return diagnostics;
}

json FactsJson(const v1::Job& job) {
  using google::protobuf::util::TimeUtil;
  const std::pair<const char*, std::string> facts[] = {
      {"Job", job.id()},
      {"Posterior", DescribePosterior(job)},
      {"Draws", absl::StrCat(job.num_draws(), " committed, newest version ", job.newest_version())},
      {"Steps", absl::StrCat(job.steps_done(), " of ", job.steps_total(), " over ", job.num_chains(), " chains")},
      {"Heat", DescribeHeat(job)},
      {"Curvature", DescribeCurvature(job)},
      {"Log evidence", DescribeEvidence(job)},
      {"Noise", DescribeNoise(job)},
      {"Created", TimeUtil::ToString(job.created_at())},
      {"Finished", job.has_finished_at() ? TimeUtil::ToString(job.finished_at()) : ""},
      {"Trained on", job.spec().dataset().name()},
      {"SHA-256", job.dataset_digest()},
  };
  json found = json::array();
  for (const auto& [name, value] : facts) {
    if (!value.empty()) found.push_back({name, value});
  }
  return found;
}

// The bytes as they are stored; the page makes brightness of them. Null if the rows are no pictures.
json PicturesJson(const v1::DatasetRowValues& rows, int num_examples) {
  if (rows.shape_size() != 4 || rows.shape(0) != num_examples || num_examples == 0) return nullptr;
  const google::protobuf::RepeatedField<int64_t> shape(rows.shape().begin() + 1, rows.shape().end());
  const size_t value_bytes = rows.type() == v1::UINT8 ? 1 : sizeof(float);
  if (!IsPicture(shape) ||
      rows.inputs().size() != static_cast<size_t>(num_examples * shape[0] * shape[1] * shape[2]) * value_bytes) {
    return nullptr;
  }
  return {{"type", v1::InputType_Name(rows.type())},
          {"shape", std::vector<int64_t>(shape.begin(), shape.end())},
          {"bytes", absl::Base64Escape(rows.inputs())}};
}

json PredictedJson(const PredictedRows& rows) {
  v1::PredictResponse predicted = rows.predicted;
  predicted.clear_errors();
  predicted.clear_quantile_errors();
  return {{"rows", rows.rows},
          {"targets", std::vector<float>(rows.actual.targets().begin(), rows.actual.targets().end())},
          {"predicted", ToJsonValue(predicted)},
          {"levels", PredictedLevels()},
          {"masses", kMasses}};
}

json DocumentOf(const ReportContents& contents) {
  v1::Job job = JobOfPoint(contents.job, contents.point);
  CountDraws(&job);
  const bool has_point = contents.point < contents.job.points_size();
  json document = {{"id", job.id()},
                   {"name", job.spec().name()},
                   {"state", v1::Job::State_Name(job.state())},
                   {"point", has_point ? contents.job.points(contents.point).name() : ""},
                   {"point_index", contents.point},
                   {"num_chains", job.chains_size()},
                   {"num_draws", job.num_draws()},
                   {"trained_on", job.spec().dataset().name()},
                   {"warnings", WarningsJson(job)},
                   {"diagnostics", DiagnosticsJson(job)},
                   {"calibrates", HasRanks(job)},
                   {"converged", kConverged},
                   {"facts", FactsJson(job)},
                   {"job_file", ToYaml(job.spec())},
                   {"traces", TraceSeries(contents.traces, contents.point)},
                   {"num_classes", contents.num_classes},
                   {"class_names", contents.class_names},
                   {"client", kVersion},
                   {"server", contents.server_version},
                   {"made_at", absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", contents.made_at, absl::UTCTimeZone())}};
  document["tables"] = {{"diagnostics", ToJsonValue(DiagnosticTable(job))}, {"chains", ToJsonValue(ChainTable(job))}};
  document["numbers"] = contents.predicted_rows ? PredictedJson(*contents.predicted_rows) : json();
  if (contents.evaluation) {
    v1::Evaluation evaluation = *contents.evaluation;
    CountDraws(&evaluation);
    document["evaluation"] = ToJsonValue(evaluation);
    document["tables"]["scores"] = ToJsonValue(ScoresOf(evaluation));
    document["tables"]["conformal"] = ToJsonValue(ConformalOf(evaluation));
    document["tables"]["weights"] = ToJsonValue(WeightsOf(evaluation));
    document["pictures"] = PicturesJson(contents.example_rows, evaluation.examples_size());
  }
  return document;
}

// The digest of each script of `page`, as its content security policy names it.
std::string ScriptDigests(std::string_view page) {
  constexpr std::string_view kBegin = "<script>", kEnd = "</script>";
  std::string digests;
  for (size_t at = page.find(kBegin); at != page.npos; at = page.find(kBegin, at)) {
    at += kBegin.size();
    const std::string script(page.substr(at, page.find(kEnd, at) - at));
    absl::StrAppend(&digests, " 'sha256-", absl::Base64Escape(absl::HexStringToBytes(Sha256Hex(script))), "'");
  }
  return digests;
}

}  // namespace

std::vector<double> PredictedLevels() {
  std::vector<double> levels;
  for (const double mass : kMasses) levels.insert(levels.end(), {(1 - mass) / 2, (1 + mass) / 2});
  return levels;
}

bool IsPicture(const google::protobuf::RepeatedField<int64_t>& shape) {
  if (shape.size() != 3 || (shape[0] != 1 && shape[0] != 3)) return false;
  return std::all_of(shape.begin() + 1, shape.end(),
                     [](int64_t side) { return side >= kLeastSide && side <= kMostSide; });
}

std::string ReportJson(const ReportContents& contents) {
  // ASCII alone, so U+2028 and U+2029 are escaped, too. Bytes that are no UTF-8 become U+FFFD.
  const std::string text = DocumentOf(contents).dump(-1, ' ', true, json::error_handler_t::replace);
  // These occur in strings alone. Without them no name can end the script element or begin another.
  return absl::StrReplaceAll(text, {{"<", "\\u003c"}, {">", "\\u003e"}, {"&", "\\u0026"}});
}

std::string RenderReport(const ReportContents& contents) {
  return absl::StrReplaceAll(kReportTemplate,
                             {{"{{digests}}", ScriptDigests(kReportTemplate)}, {"{{report}}", ReportJson(contents)}});
}

}  // namespace chainfleet

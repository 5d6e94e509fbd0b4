#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/exit_code.h"
#include "client/cli/job_named.h"
#include "client/cli/output_file.h"
#include "client/cli/point_asked.h"
#include "client/cli/report/page.h"
#include "client/cli/terminal.h"
#include "client/cli/verbs/verbs.h"
#include "client/cli/views/evaluation_view.h"
#include "client/cli/views/table.h"
#include "core/base/limits.h"
#include "core/wire/types_wire.h"

namespace chainfleet {
namespace {

constexpr int kCurvePoints = 24;
constexpr size_t kMostTraces = 8;                            // the first quantities
constexpr int64_t kRowBytes = limits::kMaxMessageBytes / 2;  // for one call for rows
constexpr int64_t kPredictedRows = 500;

struct ReportOptions {
  std::string job, output, point, dataset, ood, evaluation;
  std::vector<std::string> corruptions, class_names;
  bool flatness = false;
};

absl::Status Usage(const std::string& message) { return WithReason(absl::InvalidArgumentError(message), kUsageReason); }

// Refuses the values of other verbs' -o: here -o names a file.
absl::Status CheckOutput(const std::string& output) {
  static const std::set<std::string> formats = {"table", "json", "jsonl", "yaml", "name"};
  if (!formats.contains(output)) return absl::OkStatus();
  return Usage(
      absl::StrCat("-o of report is the file to write, such as report.html, not a format: `chainfleet evaluate "
                   "JOB --dataset NAME -o ",
                   output, "` prints the scores (a file of this name is ./", output, ")"));
}

// Tells what the page lacks.
void Warn(const std::string& text) { std::cerr << "warning: " << text << "\n"; }

// Finds an evaluation that has its result.
absl::StatusOr<v1::EvaluationOperation> StoredEvaluation(Client* client, const std::string& id) {
  CHAINFLEET_ASSIGN_OR_RETURN(v1::EvaluationOperation operation, client->GetEvaluation(id));
  if (operation.has_evaluation()) return operation;
  return absl::FailedPreconditionError(
      absl::StrCat("evaluation ", id, " is ", v1::EvaluationOperation::State_Name(operation.state()),
                   operation.error().empty() ? "" : ": " + operation.error(),
                   operation.state() == v1::EvaluationOperation::RUNNING
                       ? ": report again when it is done, `chainfleet get evaluations` says when"
                       : ": choose another, or make one with --dataset"));
}

// The newest successful evaluation of this point; nullopt if there is none.
absl::StatusOr<std::optional<v1::EvaluationOperation>> NewestEvaluation(Client* client, const v1::Job& job,
                                                                        int32_t point) {
  const auto operations = client->ListEvaluations(job.id());
  if (absl::IsUnimplemented(operations.status())) return std::nullopt;  // an older server
  CHAINFLEET_RETURN_IF_ERROR(operations.status());
  for (const v1::EvaluationOperation& operation : *operations) {
    if (operation.state() != v1::EvaluationOperation::SUCCEEDED) continue;
    const auto its_point = PointAsked(job, operation.request().selection().point());
    if (!its_point.ok() || *its_point != point) continue;
    CHAINFLEET_ASSIGN_OR_RETURN(v1::EvaluationOperation stored, StoredEvaluation(client, operation.id()));
    return stored;
  }
  return std::nullopt;
}

const v1::Dataset* Find(const std::vector<v1::Dataset>& datasets, const std::string& name) {
  const auto found = std::ranges::find(datasets, name, &v1::Dataset::name);
  return found == datasets.end() ? nullptr : &*found;
}

absl::StatusOr<v1::Evaluation> Evaluate(Client* client, const ReportOptions& options,
                                        const std::vector<v1::Dataset>& datasets, const v1::Job& job) {
  v1::EvaluateRequest request;
  request.set_job(job.id());
  request.set_dataset(options.dataset);
  request.set_ood_dataset(options.ood);
  request.mutable_selection()->set_point(options.point);
  request.mutable_corruptions()->Add(options.corruptions.begin(), options.corruptions.end());
  request.set_flatness(options.flatness);
  const v1::Dataset* scored = Find(datasets, options.dataset);
  const bool labels = scored != nullptr && scored->target_type() != v1::FLOAT32_TARGETS;
  if (labels) request.set_curve_points(kCurvePoints);  // the curve is of scores of labels
  LiveText text(stderr);
  auto evaluation = client->Evaluate(request, [&](const v1::EvaluateUpdate::Progress& progress) {
    text.Show(absl::StrCat("evaluating: ", progress.rows_done(), " of ", progress.rows_total(), " rows"));
  });
  text.Clear();
  return evaluation;
}

// The time of the request for an evaluation, and the draws that it read.
struct Asked {
  absl::Time at = absl::InfiniteFuture();  // for one that was made just now
  v1::DrawSelection selection;
};

absl::StatusOr<Asked> FillEvaluation(Client* client, const ReportOptions& options,
                                     const std::vector<v1::Dataset>& datasets, ReportContents* contents) {
  std::optional<v1::EvaluationOperation> stored;
  if (!options.dataset.empty()) {
    CHAINFLEET_ASSIGN_OR_RETURN(contents->evaluation, Evaluate(client, options, datasets, contents->job));
  } else if (!options.evaluation.empty()) {
    CHAINFLEET_ASSIGN_OR_RETURN(stored, StoredEvaluation(client, options.evaluation));
    const v1::Evaluation& evaluation = stored->evaluation();
    if (evaluation.job_id() != contents->job.id()) {
      return Usage(absl::StrCat("evaluation ", options.evaluation, " is of job ", evaluation.job_id(), ", not of ",
                                contents->job.id()));
    }
    if (contents->job.points_size() > 0) {
      CHAINFLEET_ASSIGN_OR_RETURN(contents->point, PointAsked(contents->job, evaluation.point()));
    }
  } else {
    CHAINFLEET_ASSIGN_OR_RETURN(stored, NewestEvaluation(client, contents->job, contents->point));
    if (!stored && contents->job.spec().has_dataset()) {
      Warn("no evaluation of this job is stored, so the page is without scores: name a data set with --dataset");
    }
  }
  Asked asked;
  asked.selection.set_point(options.point);
  if (!stored) return asked;
  contents->evaluation = std::move(*stored->mutable_evaluation());
  return Asked{FromProto(stored->created_at()), stored->request().selection()};
}

absl::Status FillTraces(Client* client, ReportContents* contents) {
  std::vector<std::string> quantities = {"energy"};
  for (const v1::Job::Diagnostic& diagnostic : contents->job.diagnostics()) {
    if (std::ranges::find(quantities, diagnostic.quantity()) == quantities.end()) {
      quantities.push_back(diagnostic.quantity());
    }
  }
  if (quantities.size() > kMostTraces) quantities.resize(kMostTraces);
  for (const std::string& quantity : quantities) {
    absl::StatusOr<v1::Traces> traces = client->GetTraces(contents->job.id(), quantity);
    if (absl::IsNotFound(traces.status()) || absl::IsUnimplemented(traces.status())) continue;
    CHAINFLEET_RETURN_IF_ERROR(traces.status());
    const auto of_point = [&](const v1::Traces::Chain& chain) { return chain.point() == contents->point; };
    if (std::ranges::any_of(traces->chains(), of_point)) contents->traces.push_back(*std::move(traces));
  }
  return absl::OkStatus();
}

int64_t RowsPerCall(const v1::Dataset& dataset) {
  int64_t row_bytes = dataset.input_type() == v1::UINT8 ? 1 : 4;
  for (const int64_t side : dataset.input_shape()) row_bytes *= side;
  return std::max<int64_t>(1, kRowBytes / row_bytes);
}

// Reads rows in calls that fit one message.
absl::StatusOr<v1::DatasetRowValues> ReadRows(Client* client, const v1::Dataset& dataset,
                                              const std::vector<int64_t>& rows) {
  const auto most = static_cast<size_t>(RowsPerCall(dataset));
  v1::DatasetRowValues all;
  for (size_t begin = 0; begin < rows.size(); begin += most) {
    const size_t end = std::min(rows.size(), begin + most);
    const std::vector<int64_t> some(rows.begin() + static_cast<int64_t>(begin),
                                    rows.begin() + static_cast<int64_t>(end));
    CHAINFLEET_ASSIGN_OR_RETURN(const v1::DatasetRowValues read, client->ReadRows(dataset.name(), some));
    all.mutable_inputs()->append(read.inputs());
    all.set_type(read.type());
    *all.mutable_shape() = read.shape();
  }
  if (all.shape_size() > 0) all.set_shape(0, static_cast<int64_t>(rows.size()));
  return all;
}

// Some rows, evenly spaced over the data set, with what the evaluated draws predict of them.
absl::StatusOr<PredictedRows> PredictRows(Client* client, const v1::Dataset& dataset, const v1::Evaluation& evaluation,
                                          const v1::DrawSelection& selection) {
  const int64_t most = std::min(kPredictedRows, RowsPerCall(dataset));
  const int64_t n = std::min(most, dataset.num_rows());
  PredictedRows found;
  for (int64_t i = 0; i < n; ++i) found.rows.push_back(i * dataset.num_rows() / n);
  CHAINFLEET_ASSIGN_OR_RETURN(found.actual, client->ReadRows(dataset.name(), found.rows));
  v1::PredictRequest request;
  request.set_job(evaluation.job_id());
  *request.mutable_selection() = selection;
  request.mutable_selection()->set_version(evaluation.version());
  request.mutable_inputs()->set_type(found.actual.type());
  *request.mutable_inputs()->mutable_shape() = found.actual.shape();
  request.mutable_inputs()->set_data(found.actual.inputs());
  const std::vector<double> levels = PredictedLevels();
  request.mutable_quantiles()->Add(levels.begin(), levels.end());
  CHAINFLEET_ASSIGN_OR_RETURN(found.predicted, client->Predict(request));
  return found;
}

// The data set that was scored; null if it is gone, or was put since: then another one had its name.
const v1::Dataset* ScoredDataset(const std::vector<v1::Dataset>& datasets, const v1::Evaluation& evaluation,
                                 absl::Time asked) {
  const v1::Dataset* scored = Find(datasets, evaluation.dataset());
  if (scored == nullptr || FromProto(scored->created_at()) <= asked) return scored;
  Warn(absl::StrCat("the page is without its rows: data set ", scored->name(),
                    " was put after the evaluation was asked for, which was of an earlier one of this name"));
  return nullptr;
}

// Pictures of what was evaluated, or predictions of numbers. The page does without them where rows cannot be read.
void FillRows(Client* client, const std::vector<v1::Dataset>& datasets, const Asked& asked, ReportContents* contents) {
  const v1::Evaluation& evaluation = *contents->evaluation;
  const bool numbers = OfNumbers(evaluation);
  if (!numbers && evaluation.examples().empty()) return;
  const v1::Dataset* scored = ScoredDataset(datasets, evaluation, asked.at);
  if (scored == nullptr) return;
  if (numbers) {
    auto predicted = PredictRows(client, *scored, evaluation, asked.selection);
    if (!predicted.ok())
      return Warn(absl::StrCat("the page is without predicted rows: ", predicted.status().message()));
    contents->predicted_rows = *std::move(predicted);
  } else if (IsPicture(scored->input_shape())) {
    std::vector<int64_t> rows;
    for (const v1::ExampleRow& example : evaluation.examples()) rows.push_back(example.row());
    auto read = ReadRows(client, *scored, rows);
    if (!read.ok()) return Warn(absl::StrCat("the page is without pictures: ", read.status().message()));
    contents->example_rows = *std::move(read);
  }
}

// The number of classes, and their names.
absl::Status FillClasses(const ReportOptions& options, const std::vector<v1::Dataset>& datasets,
                         ReportContents* contents) {
  if (const v1::Dataset* trained_on = Find(datasets, contents->job.spec().dataset().name())) {
    contents->num_classes = trained_on->num_classes();
  }
  const auto& stored = contents->job.inputs().class_names();
  const auto names = static_cast<int64_t>(options.class_names.size());
  if (names > 0 && contents->num_classes > 0 && names != contents->num_classes) {
    return Usage(absl::StrCat("--class-names has ", names, " names, and job ", contents->job.id(), " has ",
                              contents->num_classes, " classes"));
  }
  contents->class_names = options.class_names;
  if (names == 0) contents->class_names = {stored.begin(), stored.end()};
  return absl::OkStatus();
}

absl::Status Write(const std::string& output, const std::string& html) {
  if (output == "-") {
    std::cout << html;
    std::cout.flush();
    return std::cout ? absl::OkStatus() : absl::FailedPreconditionError("cannot write to stdout");
  }
  CHAINFLEET_RETURN_IF_ERROR(WriteOutputFile(output, html));
  std::cerr << "report: wrote " << output << " (" << FormatBytes(static_cast<int64_t>(html.size())) << ")\n";
  return absl::OkStatus();
}

absl::Status Report(Invocation* run, const ReportOptions& options) {
  CHAINFLEET_RETURN_IF_ERROR(CheckOutput(options.output));
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  ExitOnInterrupt("\ninterrupted: no report was written\n");
  ReportContents contents;
  CHAINFLEET_ASSIGN_OR_RETURN(NamedJob named, FindNamedJob(&client, options.job));
  contents.job = std::move(named.job);
  if (options.evaluation.empty()) {
    CHAINFLEET_ASSIGN_OR_RETURN(contents.point, PointAsked(contents.job, options.point));
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<v1::Dataset> datasets, client.ListDatasets());
  CHAINFLEET_RETURN_IF_ERROR(FillClasses(options, datasets, &contents));
  CHAINFLEET_ASSIGN_OR_RETURN(const Asked asked, FillEvaluation(&client, options, datasets, &contents));
  CHAINFLEET_RETURN_IF_ERROR(FillTraces(&client, &contents));
  if (contents.evaluation) FillRows(&client, datasets, asked, &contents);
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::ServerInfo server, client.GetServerInfo());
  contents.server_version = server.version();
  contents.made_at = run->clock.Wall();
  return Write(options.output, RenderReport(contents));
}

}  // namespace

void AddReport(CLI::App* program, Invocation* run) {
  const auto options = std::make_shared<ReportOptions>();
  CLI::App* verb =
      AddVerb(program, run, "report",
              "Write one HTML page about a job: scores, calibration, chains, certain and uncertain inputs",
              "  chainfleet report @latest --dataset fashion-mnist-test --ood mnist-digits -o report.html\n"
              "  chainfleet report @latest --dataset fashion-mnist-test --corruptions all --flatness -o report.html\n"
              "  chainfleet report @latest -o report.html      # from the newest stored evaluation\n"
              "  chainfleet report @latest -o - | gzip > report.html.gz",
              [=] { return Report(run, *options); });
  AddJobArgument(verb, &options->job);
  verb->add_option("-o,--output", options->output, "HTML file to write (a single file); - for stdout")
      ->required()
      ->option_text("FILE");
  CLI::Option* dataset =
      verb->add_option("--dataset", options->dataset,
                       "Evaluate on this data set with labels, or targets [the newest evaluation that is stored]")
          ->option_text("NAME");
  verb->add_option("--ood", options->ood, "Out-of-distribution data set; adds its entropy histogram and the AUROC")
      ->needs(dataset)
      ->option_text("NAME");
  verb->add_option("--corruptions", options->corruptions,
                   "Also score rows changed by these, with commas between; or all")
      ->delimiter(',')
      ->needs(dataset)
      ->option_text("NAMES");
  verb->add_flag("--flatness", options->flatness,
                 "Also the Fisher spectrum and the loss along lines, on the first 1,024 rows")
      ->needs(dataset);
  verb->add_option("--class-names", options->class_names,
                   "Names of classes 0, 1, ..., with commas between [those of the job's data set]")
      ->delimiter(',')
      ->option_text("NAMES");
  verb->add_option("--evaluation", options->evaluation, "Use this stored evaluation")
      ->excludes(dataset)
      ->option_text("ID");
  AddPointOption(verb, &options->point);
  AddServerOptions(verb, run);
}

}  // namespace chainfleet

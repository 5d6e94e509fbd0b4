#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/draw_choice.h"
#include "client/cli/exit_code.h"
#include "client/cli/job_named.h"
#include "client/cli/terminal.h"
#include "client/cli/verbs/verbs.h"
#include "client/cli/views/evaluation_view.h"
#include "client/cli/views/table.h"
#include "core/base/random_bits.h"

namespace chainfleet {
namespace {

struct EvaluateOptions {
  std::string job, point, dataset, ood, calibrate, stack, attach, cancel;
  std::vector<std::string> corruptions;
  DrawChoice draws;
  bool flatness = false, detach = false;
  int curve = 0, ece_bins = 0;
};

std::string Heading(const v1::Evaluation& evaluation, const std::string& point) {
  std::string text =
      absl::StrCat(evaluation.job_id(), " version ", evaluation.version(), point.empty() ? "" : " at " + point, " on ",
                   evaluation.dataset(), " (", evaluation.num_rows(), " rows)");
  if (!evaluation.ood_dataset().empty()) {
    absl::StrAppend(&text, ", out of distribution: ", evaluation.ood_dataset(), " (", evaluation.num_ood_rows(),
                    " rows)");
  }
  if (!evaluation.calibration_dataset().empty()) {
    absl::StrAppend(&text, ", calibrated on ", evaluation.calibration_dataset(), " (",
                    evaluation.num_calibration_rows(), " rows)");
  }
  if (!evaluation.stacking_dataset().empty()) {
    absl::StrAppend(&text, ", weights from ", evaluation.stacking_dataset(), " (", evaluation.num_stacking_rows(),
                    " rows)");
  }
  return text + "\n";
}

std::string CurveTable(const v1::Evaluation& evaluation) {
  Table table({">DRAWS AVERAGED", ">ACCURACY %", ">NLL", ">ECE"});
  for (const v1::CurvePoint& point : evaluation.curve()) {
    table.AddRow({absl::StrCat(point.num_draws()), Fixed(100 * point.accuracy(), 2), Fixed(point.nll(), 4),
                  Fixed(point.ece(), 4)});
  }
  return table.Render();
}

std::string CorruptedTable(const v1::Evaluation& evaluation) {
  Table table({"CORRUPTION", ">SEVERITY", ">ACCURACY %", ">NLL", ">ECE"});
  for (const v1::CorruptedScores& row : evaluation.corrupted()) {
    const v1::Scores& scores = row.scores();
    table.AddRow({row.corruption(), absl::StrCat(row.severity()), Fixed(100 * scores.accuracy(), 2),
                  Fixed(scores.nll(), 4), Fixed(scores.ece(), 4)});
  }
  return table.Render();
}

// The value of a line at the position nearest to `position`; "-" if there is no such line.
std::string OnLine(const v1::Flatness& row, const google::protobuf::RepeatedField<double>& line, double position) {
  if (line.empty() || line.size() != row.line_positions_size()) return Fixed(NAN, 4);
  const auto& positions = row.line_positions();
  const auto nearest = std::min_element(positions.begin(), positions.end(), [position](double a, double b) {
    return std::abs(a - position) < std::abs(b - position);
  });
  return Fixed(line.Get(static_cast<int>(nearest - positions.begin())), 4);
}

std::string FlatnessTable(const v1::Evaluation& evaluation) {
  Table table({"CHAIN", ">FISHER TRACE", ">NLL AT THETA", ">AT RADIUS 1", ">AT THETA_A"});
  for (const v1::Flatness& row : evaluation.flatness()) {
    table.AddRow({absl::StrCat(row.chain().index()), Significant(row.fisher_trace(), 4),
                  OnLine(row, row.random_line(), 0), OnLine(row, row.random_line(), 1),
                  OnLine(row, row.anchor_line(), 1)});
  }
  return table.Render();
}

std::string EvaluationTable(const v1::Evaluation& evaluation) {
  std::string text = Heading(evaluation, evaluation.point()) + ScoresOf(evaluation).Render();
  if (evaluation.curve_size() > 0) absl::StrAppend(&text, "\n", CurveTable(evaluation));
  if (evaluation.corrupted_size() > 0) absl::StrAppend(&text, "\n", CorruptedTable(evaluation));
  if (evaluation.flatness_size() > 0) absl::StrAppend(&text, "\n", FlatnessTable(evaluation));
  if (evaluation.conformal_size() > 0) absl::StrAppend(&text, "\n", ConformalOf(evaluation).Render());
  if (evaluation.weights_size() > 0) absl::StrAppend(&text, "\n", WeightsOf(evaluation).Render());
  return text;
}

// One row per point: the average of all its draws.
std::string PointsTable(const std::vector<v1::Evaluation>& evaluations) {
  Table table = ScoreTable("POINT", OfNumbers(evaluations[0]));
  for (const v1::Evaluation& evaluation : evaluations) {
    for (const v1::Scores& scores : evaluation.scores()) {
      if (scores.what() == "all") AddScores(evaluation.point(), scores, &table);
    }
  }
  return Heading(evaluations[0], absl::StrCat(evaluations.size(), " points")) + table.Render();
}

// Waits for the evaluation with its progress on stderr; Ctrl-C detaches.
absl::StatusOr<v1::Evaluation> Attach(Invocation* run, Client* client, const std::string& id,
                                      const std::string& point = "") {
  ExitOnInterrupt(
      absl::StrCat("\ndetached, the evaluation goes on; to re-attach: chainfleet evaluate --attach ", id, "\n"));
  LiveText text(stderr);
  auto evaluation = client->WaitEvaluation(id, run->timeout, [&](const v1::EvaluateUpdate::Progress& progress) {
    if (progress.rows_total() == 0) return;
    text.Show(absl::StrFormat("evaluating%s: %d of %d rows", point.empty() ? "" : " point " + point,
                              progress.rows_done(), progress.rows_total()));
  });
  text.Clear();
  if (evaluation.ok()) evaluation->set_id(id);  // servers of older releases leave it out
  return evaluation;
}

absl::StatusOr<v1::EvaluationOperation> Start(Client* client, v1::EvaluateRequest request) {
  request.set_request_id(absl::StrFormat("%016x", RandomBits()));
  return client->StartEvaluation(request);
}

// Starts an evaluation, shows its id and waits for it.
absl::StatusOr<v1::Evaluation> EvaluatePoint(Invocation* run, Client* client, const v1::EvaluateRequest& request) {
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::EvaluationOperation started, Start(client, request));
  const std::string& point = request.selection().point();
  if (run->format != OutputFormat::kName) {
    std::cerr << "evaluation " << started.id() << (point.empty() ? "" : " of point " + point) << "\n";
  }
  return Attach(run, client, started.id(), point);
}

// Evaluates every point on the version of the first. The version of an alias counts unless --version is given.
absl::Status EvaluateAll(Invocation* run, Client* client, v1::EvaluateRequest request) {
  CHAINFLEET_ASSIGN_OR_RETURN(const NamedJob named, FindNamedJob(client, request.job()));
  request.set_job(named.job.id());
  if (request.selection().version() == 0) request.mutable_selection()->set_version(named.version);
  std::vector<v1::Evaluation> evaluations;
  for (int point = 0; point < std::max(1, named.job.points_size()); ++point) {
    request.mutable_selection()->set_point(absl::StrCat(point));
    CHAINFLEET_ASSIGN_OR_RETURN(evaluations.emplace_back(), EvaluatePoint(run, client, request));
    request.mutable_selection()->set_version(evaluations.back().version());
  }
  Listing listing{"evaluations", {}, {}, [&](size_t, bool) { return PointsTable(evaluations); }};
  for (const v1::Evaluation& evaluation : evaluations) {
    listing.items.push_back(&evaluation);
    listing.names.push_back(evaluation.id());
  }
  PrintList(std::cout, run->format, listing);
  return absl::OkStatus();
}

absl::Status Cancel(Invocation* run, Client* client, const std::string& id) {
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::EvaluationOperation ended, client->CancelEvaluation(id));
  PrintOne(std::cout, run->format, ended, ended.id(),
           [&] { return absl::StrCat(ended.id(), " ", v1::EvaluationOperation::State_Name(ended.state()), "\n"); });
  return absl::OkStatus();
}

v1::EvaluateRequest RequestOf(const EvaluateOptions& options) {
  v1::EvaluateRequest request;
  request.set_job(options.job);
  request.set_dataset(options.dataset);
  request.set_ood_dataset(options.ood);
  request.set_calibration_dataset(options.calibrate);
  request.set_stacking_dataset(options.stack);
  for (const std::string& name : options.corruptions) request.add_corruptions(name);
  request.set_flatness(options.flatness);
  request.set_curve_points(options.curve);
  request.set_ece_bins(options.ece_bins);
  *request.mutable_selection() = SelectionOf(options.draws);
  return request;
}

// True if an option is given that only the start of an evaluation reads.
bool AsksForMore(const EvaluateOptions& options) {
  return RequestOf(options).SerializeAsString() != RequestOf(EvaluateOptions()).SerializeAsString();
}

absl::Status CheckUsage(const EvaluateOptions& options) {
  const bool starts = options.attach.empty() && options.cancel.empty();
  const auto wrong = [](const std::string& what) { return WithReason(absl::InvalidArgumentError(what), kUsageReason); };
  if (!starts && (options.detach || !options.point.empty() || AsksForMore(options))) {
    return wrong(
        "--attach and --cancel take the id of an evaluation alone: leave JOB, --dataset and the other options of a "
        "start out");
  }
  if (starts && options.job.empty()) return wrong("JOB is missing: say which job, or --attach to an evaluation");
  if (starts && options.dataset.empty()) return wrong("--dataset is missing: say which data set to score the job on");
  if (options.detach && options.point == "all") return wrong("--detach starts one evaluation: choose one --point");
  return absl::OkStatus();
}

absl::Status Evaluate(Invocation* run, const EvaluateOptions& options) {
  CHAINFLEET_RETURN_IF_ERROR(CheckUsage(options));
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  if (!options.cancel.empty()) return Cancel(run, &client, options.cancel);
  v1::EvaluateRequest request = RequestOf(options);
  if (options.point == "all") return EvaluateAll(run, &client, std::move(request));
  request.mutable_selection()->set_point(options.point);
  if (options.detach) {
    CHAINFLEET_ASSIGN_OR_RETURN(const v1::EvaluationOperation started, Start(&client, request));
    PrintOne(std::cout, run->format, started, started.id(), [&] { return started.id() + "\n"; });
    return absl::OkStatus();
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Evaluation evaluation, options.attach.empty()
                                                                   ? EvaluatePoint(run, &client, request)
                                                                   : Attach(run, &client, options.attach));
  PrintOne(std::cout, run->format, evaluation, evaluation.id(), [&] { return EvaluationTable(evaluation); });
  return absl::OkStatus();
}

}  // namespace

void AddEvaluate(CLI::App* program, Invocation* run) {
  const auto options = std::make_shared<EvaluateOptions>();
  CLI::App* verb = AddVerb(program, run, "evaluate", "Score single draws and their average on a stored data set",
                           "  chainfleet evaluate @latest --dataset fashion-mnist-test --ood mnist-digits\n"
                           "  chainfleet evaluate @latest --dataset fashion-mnist-test -o json | jq .scores\n"
                           "  chainfleet evaluate @latest --dataset test --corruptions all --curve 12 --detach\n"
                           "  id=$(chainfleet evaluate @latest --dataset test --calibrate held-out -o name)\n"
                           "  chainfleet evaluate --attach eval-abcdefghij\n"
                           "  chainfleet evaluate --cancel eval-abcdefghij",
                           [=] { return Evaluate(run, *options); });
  AddJobArgument(verb, &options->job)
      ->required(false)
      ->description("Job id, name (the newest job of that name), @latest, or an alias");
  AddPointOption(verb, &options->point)
      ->description("Point of the job's sweep, by number or values; all prints one row for each point");
  verb->add_option("--dataset", options->dataset, "Data set with labels, or targets")->option_text("NAME");
  verb->add_option("--ood", options->ood,
                   "Out-of-distribution data set; reports the AUROC of detecting its rows by entropy")
      ->option_text("NAME");
  verb->add_option("--calibrate", options->calibrate,
                   "Held-out data set to calibrate on: temperatures of classes, and conformal sets or intervals")
      ->option_text("NAME");
  verb->add_option("--stack", options->stack,
                   "Held-out data set to fit weights of the chains to (stacking, pseudo-BMA); scores both averages")
      ->option_text("NAME");
  verb->add_option("--corruptions", options->corruptions,
                   "Also score corrupted images at severities 1 to 5: all, or names such as fog,pixelate")
      ->delimiter(',')
      ->option_text("NAMES");
  verb->add_flag("--flatness", options->flatness,
                 "Also report the curvature of the likelihood at each chain's newest draw, on the first 1,024 rows");
  verb->add_option("--curve", options->curve,
                   "Also score averages over fewer draws, at this many numbers of draws (only for jobs with labels)")
      ->check(CountAtLeast(1))
      ->option_text("POINTS");
  verb->add_option("--ece-bins", options->ece_bins, "Bins of the expected calibration error; default 15")
      ->check(CountAtLeast(1))
      ->option_text("BINS");
  AddDrawChoice(verb, &options->draws);
  verb->add_flag("--detach", options->detach,
                 "Start the evaluation, print its id and exit; the evaluation runs on the server");
  verb->add_option("--attach", options->attach, "Wait for an evaluation that was started before")->option_text("ID");
  verb->add_option("--cancel", options->cancel, "Cancel an evaluation that runs")
      ->excludes("--attach")
      ->option_text("ID");
  AddServerOptions(verb, run);
  AddOutputOption(verb, run);
}

}  // namespace chainfleet

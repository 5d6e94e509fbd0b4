#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/table.h"
#include "client/cli/terminal.h"
#include "client/cli/verbs.h"

namespace chainfleet {
namespace {

struct EvaluateOptions {
  std::string job, point, dataset, ood, calibrate;
};

std::string NameOf(const v1::Scores& scores) {
  if (scores.what() == "all") return "all draws";
  if (!absl::StartsWith(scores.what(), "single")) return scores.what();
  return "mean " + scores.what().substr(0, 6) + " draw" + scores.what().substr(6);
}

bool OfNumbers(const v1::Evaluation& evaluation) {
  return evaluation.scores_size() > 0 && evaluation.scores(0).has_rmse();
}

Table ScoreTable(const std::string& first, bool numbers) {
  if (numbers) return Table({first, ">DRAWS", ">RMSE", ">NLL", ">WITHIN 90 %"});
  return Table({first, ">DRAWS", ">ACCURACY %", ">NLL", ">ECE", ">BRIER", ">OOD AUROC", ">TEMPERATURE"});
}

void AddScores(const std::string& first, const v1::Scores& scores, Table* table) {
  const std::string draws = absl::StrCat(scores.num_draws());
  if (scores.has_rmse()) {
    // RMSE is in the target's units, whatever their size.
    return table->AddRow({first, draws, absl::StrFormat("%.4g", scores.rmse()), Fixed(scores.nll(), 4),
                          Fixed(scores.has_coverage_90() ? 100 * scores.coverage_90() : NAN, 2)});
  }
  table->AddRow({first, draws, Fixed(100 * scores.accuracy(), 2), Fixed(scores.nll(), 4), Fixed(scores.ece(), 4),
                 Fixed(scores.brier(), 4), Fixed(scores.has_ood_auroc() ? scores.ood_auroc() : NAN, 4),
                 Fixed(scores.has_temperature() ? scores.temperature() : NAN, 3)});
}

std::string Heading(const v1::Evaluation& evaluation, const std::string& point) {
  std::string text =
      absl::StrCat(evaluation.job_id(), " version ", evaluation.version(), point.empty() ? "" : " at " + point, " on ",
                   evaluation.dataset(), " (", evaluation.num_rows(), " rows)");
  if (!evaluation.ood_dataset().empty()) {
    absl::StrAppend(&text, ", out of distribution: ", evaluation.ood_dataset(), " (", evaluation.num_ood_rows(),
                    " rows)");
  }
  if (!evaluation.calibration_dataset().empty()) {
    absl::StrAppend(&text, ", temperatures from ", evaluation.calibration_dataset(), " (",
                    evaluation.num_calibration_rows(), " rows)");
  }
  return text + "\n";
}

std::string EvaluationTable(const v1::Evaluation& evaluation) {
  Table table = ScoreTable("", OfNumbers(evaluation));
  for (const v1::Scores& scores : evaluation.scores()) AddScores(NameOf(scores), scores, &table);
  return Heading(evaluation, evaluation.point()) + table.Render();
}

// One row a point: the average of all its draws.
std::string PointsTable(const std::vector<v1::Evaluation>& evaluations) {
  Table table = ScoreTable("POINT", OfNumbers(evaluations[0]));
  for (const v1::Evaluation& evaluation : evaluations) {
    if (evaluation.scores_size() > 0) AddScores(evaluation.point(), *evaluation.scores().rbegin(), &table);
  }
  return Heading(evaluations[0], absl::StrCat(evaluations.size(), " points")) + table.Render();
}

absl::StatusOr<v1::Evaluation> EvaluatePoint(Client* client, const v1::EvaluateRequest& request) {
  LiveText text(stderr);
  const std::string& point = request.selection().point();
  auto evaluation = client->Evaluate(request, [&](const v1::EvaluateUpdate::Progress& progress) {
    if (progress.rows_total() == 0) return;
    text.Show(absl::StrFormat("evaluating%s: %d of %d rows", point.empty() ? "" : " point " + point,
                              progress.rows_done(), progress.rows_total()));
  });
  text.Clear();
  return evaluation;
}

// Every point on the version of the first.
absl::Status EvaluateAll(Invocation* run, Client* client, v1::EvaluateRequest request) {
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job job, client->GetJob(request.job()));
  request.set_job(job.id());
  std::vector<v1::Evaluation> evaluations;
  for (int point = 0; point < std::max(1, job.points_size()); ++point) {
    request.mutable_selection()->set_point(absl::StrCat(point));
    CHAINFLEET_ASSIGN_OR_RETURN(evaluations.emplace_back(), EvaluatePoint(client, request));
    request.mutable_selection()->set_version(evaluations.back().version());
  }
  Listing listing{"evaluations", {}, {}, PointsTable(evaluations)};
  for (const v1::Evaluation& evaluation : evaluations) {
    listing.items.push_back(&evaluation);
    listing.names.push_back(evaluation.point());
  }
  PrintList(std::cout, run->format, listing);
  return absl::OkStatus();
}

absl::Status Evaluate(Invocation* run, const EvaluateOptions& options) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  v1::EvaluateRequest request;
  request.set_job(options.job);
  request.set_dataset(options.dataset);
  request.set_ood_dataset(options.ood);
  request.set_calibration_dataset(options.calibrate);
  if (options.point == "all") return EvaluateAll(run, &client, std::move(request));
  request.mutable_selection()->set_point(options.point);
  const absl::StatusOr<v1::Evaluation> evaluation = EvaluatePoint(&client, request);
  CHAINFLEET_RETURN_IF_ERROR(evaluation.status());
  PrintOne(std::cout, run->format, *evaluation, evaluation->job_id(), [&] { return EvaluationTable(*evaluation); });
  return absl::OkStatus();
}

}  // namespace

void AddEvaluate(CLI::App* program, Invocation* run) {
  const auto options = std::make_shared<EvaluateOptions>();
  CLI::App* verb = AddVerb(program, run, "evaluate", "Scores of single draws and of their average on a stored data set",
                           "  chainfleet evaluate @latest --dataset fashion-mnist-test --ood mnist-digits\n"
                           "  chainfleet evaluate @latest --dataset fashion-mnist-test -o json | jq .scores",
                           [=] { return Evaluate(run, *options); });
  AddJobArgument(verb, &options->job)->description("Job id, name (the newest job of that name), @latest, or an alias");
  AddPointOption(verb, &options->point)
      ->description("Of a job with a sweep: the posterior meant, by number or values; all: a row each");
  verb->add_option("--dataset", options->dataset, "Data set with labels, or targets")->required()->option_text("NAME");
  verb->add_option("--ood", options->ood, "Data set of other inputs: AUROC of telling them apart by entropy")
      ->option_text("NAME");
  verb->add_option("--calibrate", options->calibrate,
                   "Held-out data set to fit temperatures to: calibrated scores beside")
      ->option_text("NAME");
  AddServerOptions(verb, run);
  AddOutputOption(verb, run);
}

}  // namespace chainfleet

#include <cmath>
#include <iostream>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/table.h"
#include "client/cli/terminal.h"
#include "client/cli/verbs.h"

namespace chainfleet {
namespace {

struct EvaluateOptions {
  std::string job, dataset, ood;
};

std::string NameOf(const v1::Scores& scores) {
  if (scores.what() == "all") return "all draws";
  if (!absl::StartsWith(scores.what(), "single")) return scores.what();
  return "mean " + scores.what().substr(0, 6) + " draw" + scores.what().substr(6);
}

Table ClassTable(const v1::Evaluation& evaluation) {
  Table table({"", ">DRAWS", ">ACCURACY %", ">NLL", ">ECE", ">BRIER", ">OOD AUROC"});
  for (const v1::Scores& scores : evaluation.scores()) {
    table.AddRow({NameOf(scores), absl::StrCat(scores.num_draws()), Fixed(100 * scores.accuracy(), 2),
                  Fixed(scores.nll(), 4), Fixed(scores.ece(), 4), Fixed(scores.brier(), 4),
                  Fixed(scores.has_ood_auroc() ? scores.ood_auroc() : NAN, 4)});
  }
  return table;
}

Table NumberTable(const v1::Evaluation& evaluation) {
  Table table({"", ">DRAWS", ">RMSE", ">NLL", ">WITHIN 90 %"});
  for (const v1::Scores& scores : evaluation.scores()) {
    table.AddRow({NameOf(scores), absl::StrCat(scores.num_draws()), absl::StrCat(scores.rmse()), Fixed(scores.nll(), 4),
                  Fixed(scores.has_coverage_90() ? 100 * scores.coverage_90() : NAN, 2)});
  }
  return table;
}

std::string EvaluationTable(const v1::Evaluation& evaluation) {
  std::string text = absl::StrCat(evaluation.job_id(), " version ", evaluation.version(), " on ", evaluation.dataset(),
                                  " (", evaluation.num_rows(), " rows)");
  if (!evaluation.ood_dataset().empty()) {
    absl::StrAppend(&text, ", out of distribution: ", evaluation.ood_dataset(), " (", evaluation.num_ood_rows(),
                    " rows)");
  }
  const bool numbers = evaluation.scores_size() > 0 && evaluation.scores(0).has_rmse();
  return absl::StrCat(text, "\n", (numbers ? NumberTable(evaluation) : ClassTable(evaluation)).Render());
}

absl::Status Evaluate(Invocation* run, const EvaluateOptions& options) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  v1::EvaluateRequest request;
  request.set_job(options.job);
  request.set_dataset(options.dataset);
  request.set_ood_dataset(options.ood);
  LiveText text(stderr);
  const auto evaluation = client.Evaluate(request, [&](const v1::EvaluateUpdate::Progress& progress) {
    if (progress.rows_total() == 0) return;
    text.Show(absl::StrFormat("evaluating: %d of %d rows", progress.rows_done(), progress.rows_total()));
  });
  text.Clear();
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
  AddJobArgument(verb, &options->job);
  verb->add_option("--dataset", options->dataset, "Data set with labels, or targets")->required()->option_text("NAME");
  verb->add_option("--ood", options->ood, "Data set of other inputs: AUROC of telling them apart by entropy")
      ->option_text("NAME");
  AddServerOptions(verb, run);
  AddOutputOption(verb, run);
}

}  // namespace chainfleet

#include "client/cli/views/evaluation_view.h"

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace chainfleet {

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
    // RMSE is in the target's units, which may have any size.
    return table->AddRow({first, draws, absl::StrFormat("%.4g", scores.rmse()), Fixed(scores.nll(), 4),
                          Fixed(scores.has_coverage_90() ? 100 * scores.coverage_90() : NAN, 2)});
  }
  table->AddRow({first, draws, Fixed(100 * scores.accuracy(), 2), Fixed(scores.nll(), 4), Fixed(scores.ece(), 4),
                 Fixed(scores.brier(), 4), Fixed(scores.has_ood_auroc() ? scores.ood_auroc() : NAN, 4),
                 Fixed(scores.has_temperature() ? scores.temperature() : NAN, 3)});
}

Table ScoresOf(const v1::Evaluation& evaluation) {
  Table table = ScoreTable("", OfNumbers(evaluation));
  for (const v1::Scores& scores : evaluation.scores()) AddScores(NameOf(scores), scores, &table);
  return table;
}

Table ConformalOf(const v1::Evaluation& evaluation) {
  const bool numbers = OfNumbers(evaluation);
  Table table({">CONFORMAL LEVEL %", ">THRESHOLD", ">COVERAGE %", numbers ? ">MEAN WIDTH" : ">MEAN CLASSES"});
  for (const v1::ConformalScore& row : evaluation.conformal()) {
    table.AddRow({absl::StrCat(100 * row.level()), Significant(row.threshold(), 4), Fixed(100 * row.coverage(), 2),
                  numbers ? Significant(row.mean_size(), 4) : Fixed(row.mean_size(), 2)});
  }
  return table;
}

Table WeightsOf(const v1::Evaluation& evaluation) {
  Table table({"CHAIN", ">STACKING WEIGHT", ">PSEUDO-BMA WEIGHT"});
  for (const v1::ChainWeight& row : evaluation.weights()) {
    table.AddRow({absl::StrCat(row.chain().index()), Fixed(row.stacking(), 4), Fixed(row.pseudo_bma(), 4)});
  }
  return table;
}

}  // namespace chainfleet

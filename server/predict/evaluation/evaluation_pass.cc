#include "server/predict/evaluation/evaluation_pass.h"

#include "absl/strings/str_cat.h"

namespace chainfleet {

void EvaluationPass::SetRows(const RowBlock& block, const Targets& learned, ShardRequest* request) const {
  request->rows = DatasetRows{dataset, block.first_row, block.num_rows};
  // The average of numbers rests on the densities of single draws.
  request->per_draw_scores = std::holds_alternative<Numbers>(learned) || (labelled && !corruption && !densities);
  request->corruption = corruption;
  request->members = curve.has_value();
}

void EvaluationPass::Add(const RowBlock& block, const std::vector<PartialPrediction>& partials) {
  non_finite.Add(block, partials);
  if (densities) densities->Add(block, partials);
  if (rows) rows->Add(block, partials);
  if (curve) curve->Add(block, partials);
}

absl::Status EvaluationPass::CheckFinite() const {
  std::string name = "data set " + dataset.name;
  if (corruption) absl::StrAppend(&name, " changed by ", corruption->name, " ", corruption->severity);
  return non_finite.Check(name, dataset.num_rows);
}

}  // namespace chainfleet

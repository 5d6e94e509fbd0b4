#include "core/domain/prediction_rows.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace chainfleet {
namespace {

void Append(const PredictiveScores& from, PredictiveScores* to) {
  const auto append = [&]<typename S>(S& scores) {
    const auto* const block = std::get_if<S>(&from.of);  // null for a block without draws
    for (const auto& array : S::kArrays) {
      if (block == nullptr) continue;
      const std::vector<double>& more = block->*array.values;
      (scores.*array.values).insert((scores.*array.values).end(), more.begin(), more.end());
    }
  };
  std::visit(append, to->of);
}

PredictiveScores RowsOf(const PredictiveScores& whole, int64_t first, int64_t count, const Targets& targets) {
  const auto cut = [&]<typename S>(const S& scores) {
    S rows;
    for (const auto& array : S::kArrays) {
      const std::vector<double>& values = scores.*array.values;
      const int64_t width = array.per_class ? NumClasses(targets) : 1;
      if (values.empty()) continue;
      (rows.*array.values).assign(values.begin() + first * width, values.begin() + (first + count) * width);
    }
    return PredictiveScores{std::move(rows)};
  };
  return std::visit(cut, whole.of);
}

// Turns [S, n] into [S, n + more], in units of values per row.
void AppendWithinDraws(const std::vector<float>& block, size_t num_draws, std::vector<float>* whole) {
  if (num_draws == 0) return;
  const auto old_row = static_cast<int64_t>(whole->size() / num_draws),
             new_row = static_cast<int64_t>(block.size() / num_draws);
  std::vector<float> both;
  both.reserve(whole->size() + block.size());
  for (size_t s = 0; s < num_draws; ++s) {
    const auto old_at = whole->begin() + static_cast<int64_t>(s) * old_row;
    const auto new_at = block.begin() + static_cast<int64_t>(s) * new_row;
    both.insert(both.end(), old_at, old_at + old_row);
    both.insert(both.end(), new_at, new_at + new_row);
  }
  *whole = std::move(both);
}

void AppendMembers(const Prediction& block, Prediction* whole) {
  std::erase_if(whole->members, [&](Members& members) {
    const auto more = std::ranges::find_if(block.members, [&](const Members& other) {
      return other.chain == members.chain && other.kind == members.kind &&
             other.weights.size() == members.weights.size() && other.outputs.index() == members.outputs.index();
    });
    if (more == block.members.end()) return true;
    const auto append = [&]<typename T>(T& outputs) {
      for (const auto& array : T::kArrays) {
        AppendWithinDraws(std::get<T>(more->outputs).*array.values, members.weights.size(), &(outputs.*array.values));
      }
    };
    std::visit(append, members.outputs);
    AppendWithinDraws(more->gradients, members.weights.size(), &members.gradients);
    return false;
  });
}

}  // namespace

void AppendRows(Prediction block, Prediction* whole) {
  if (whole->num_rows == 0) {
    *whole = std::move(block);
    return;
  }
  whole->draws_used = std::min(whole->draws_used, block.draws_used);
  if (whole->errors.any() && block.errors.any()) {
    Append(block.errors, &whole->errors);
  } else {
    whole->errors = {};
  }
  Append(block.scores, &whole->scores);
  whole->quantiles.insert(whole->quantiles.end(), block.quantiles.begin(), block.quantiles.end());
  std::vector<double>& errors = whole->quantile_errors;
  if (block.quantile_errors.empty()) errors.clear();
  if (!errors.empty()) errors.insert(errors.end(), block.quantile_errors.begin(), block.quantile_errors.end());
  whole->mean_gradient.insert(whole->mean_gradient.end(), block.mean_gradient.begin(), block.mean_gradient.end());
  whole->prediction_set.insert(whole->prediction_set.end(), block.prediction_set.begin(), block.prediction_set.end());
  whole->interval.insert(whole->interval.end(), block.interval.begin(), block.interval.end());
  AppendMembers(block, whole);
  whole->num_rows += block.num_rows;
}

Prediction RowsOf(const Prediction& whole, int64_t first, int64_t count) {
  if (count == whole.num_rows) return whole;
  return {.job = whole.job,
          .version = whole.version,
          .point = whole.point,
          .draws_used = whole.draws_used,
          .draws_in_version = whole.draws_in_version,
          .num_rows = count,
          .targets = whole.targets,
          .scores = RowsOf(whole.scores, first, count, whole.targets),
          .errors = RowsOf(whole.errors, first, count, whole.targets)};
}

}  // namespace chainfleet

#include "client/cli/report/corruption_chart.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/report/plot.h"
#include "client/cli/report/score_charts.h"
#include "client/cli/views/markup.h"
#include "client/cli/views/table.h"
#include "core/base/limits.h"

namespace chainfleet {
namespace {

constexpr int kSeverities = limits::kMaxCorruptionSeverity;

using BySeverity = std::map<int, const v1::Scores*>;

// In the order in which they come.
std::vector<std::pair<std::string, BySeverity>> ByCorruption(const v1::Evaluation& evaluation) {
  std::vector<std::pair<std::string, BySeverity>> rows;
  for (const v1::CorruptedScores& corrupted : evaluation.corrupted()) {
    auto row = std::ranges::find(rows, corrupted.corruption(), &std::pair<std::string, BySeverity>::first);
    if (row == rows.end()) row = rows.insert(rows.end(), {corrupted.corruption(), {}});
    row->second[corrupted.severity()] = &corrupted.scores();
  }
  return rows;
}

// One cell; the more of the clean accuracy is lost, the stronger its color. `worst`: the largest loss of the map.
std::string Cell(const std::string& name, int severity, const v1::Scores* scores, double clean, double worst) {
  if (scores == nullptr) return "<td>-</td>";
  const double accuracy = 100 * scores->accuracy(), lost = std::max(0.0, clean - accuracy);
  return absl::StrFormat("<td class=\"heat\" style=\"--heat:%.0f%%\" title=\"%s\">%s</td>",
                         worst > 0 ? 78 * std::min(1.0, lost / worst) : 0,
                         Escape(absl::StrFormat("%s, severity %d: accuracy %.2f %%, NLL %.3f, ECE %.4f", name, severity,
                                                accuracy, scores->nll(), scores->ece())),
                         Fixed(accuracy, 1));
}

struct SeverityScore {
  std::string label;
  double (*of)(const v1::Scores&);
};
const SeverityScore kOfClasses[] = {
    {"accuracy, %", [](const v1::Scores& s) { return 100 * s.accuracy(); }},
    {"NLL, nats per row", [](const v1::Scores& s) { return s.nll(); }},
    {"ECE", [](const v1::Scores& s) { return s.ece(); }},
};
const SeverityScore kOfNumbers[] = {
    {"RMSE", [](const v1::Scores& s) { return s.rmse(); }},
    {"NLL, nats per row", [](const v1::Scores& s) { return s.nll(); }},
};

// Mean over the corruptions by severity, from the clean score on.
std::vector<PlotPoint> Means(const v1::Evaluation& evaluation, const SeverityScore& score) {
  std::map<int, std::pair<double, int>> sums;
  if (const v1::Scores* clean = BestAverage(evaluation)) sums[0] = {score.of(*clean), 1};
  for (const v1::CorruptedScores& corrupted : evaluation.corrupted()) {
    auto& [sum, count] = sums[corrupted.severity()];
    sum += score.of(corrupted.scores());
    ++count;
  }
  std::vector<PlotPoint> points;
  for (const auto& [severity, sum] : sums) points.push_back({static_cast<double>(severity), sum.first / sum.second});
  return points;
}

std::string SeverityPanel(const std::vector<PlotPoint>& points, const std::string& label, const PlotArea& area) {
  const auto [low, high] = std::ranges::minmax(points, {}, &PlotPoint::y);
  Plot plot({"severity", Scale::Linear(0, kSeverities), kSeverities + 1}, {label, Scale::Rounded(low.y, high.y, 5), 5},
            area);
  plot.Line(points, "line s1");
  for (const PlotPoint& point : points) {
    plot.Dot(point, "dot s1", absl::StrFormat("severity %.0f: %.4g", point.x, point.y));
  }
  return plot.Svg();
}

}  // namespace

std::optional<Figure> CorruptionMap(const v1::Evaluation& evaluation) {
  const v1::Scores* average = BestAverage(evaluation);
  if (evaluation.corrupted().empty() || average == nullptr || average->has_rmse()) return std::nullopt;
  const double clean = 100 * average->accuracy();
  double worst = 0;
  for (const v1::CorruptedScores& corrupted : evaluation.corrupted()) {
    worst = std::max(worst, clean - 100 * corrupted.scores().accuracy());
  }
  std::string html = "<table class=\"map\">\n<thead><tr><th>accuracy %</th><th>clean</th>";
  for (int severity = 1; severity <= kSeverities; ++severity) absl::StrAppend(&html, "<th>", severity, "</th>");
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& [name, scores] : ByCorruption(evaluation)) {
    absl::StrAppend(&html, "<tr><th>", Escape(name), "</th><td class=\"heat\">", Fixed(clean, 1), "</td>");
    for (int severity = 1; severity <= kSeverities; ++severity) {
      const auto found = scores.find(severity);
      html += Cell(name, severity, found == scores.end() ? nullptr : found->second, clean, worst);
    }
    html += "</tr>\n";
  }
  return Figure{
      "corruptions",
      "How much is left on damaged inputs?",
      html + "</tbody>\n</table>\n",
      absl::StrFormat("Good: pale to the right. The strongest color is the largest loss, %.1f points below the "
                      "clean %.1f %%; columns are severities.",
                      worst, clean),
      {}};
}

std::optional<Figure> SeverityFigure(const v1::Evaluation& evaluation) {
  const v1::Scores* average = BestAverage(evaluation);
  if (evaluation.corrupted().empty() || average == nullptr) return std::nullopt;
  const bool numbers = average->has_rmse();
  const std::span<const SeverityScore> scores =
      numbers ? std::span<const SeverityScore>(kOfNumbers) : std::span<const SeverityScore>(kOfClasses);
  std::vector<std::string> panels;
  double top = 28;
  for (const SeverityScore& score : scores) {
    panels.push_back(SeverityPanel(Means(evaluation, score), score.label, {62, top, 434, 110}));
    top += 190;
  }
  return Figure{
      "severity", "Does doubt grow with the damage?",
      Drawing("severity-chart", "Scores by severity, mean over corruptions", "Severity 0: rows as they are", 520,
              top - 10, panels),
      numbers ? "Good: errors grow slowly, and NLL with them rather than faster."
              : "Good: accuracy falls slowly and ECE stays low: the network gets less sure as it gets less right. "
                "Bad: NLL and ECE shoot up, it is wrong with confidence."};
}

}  // namespace chainfleet

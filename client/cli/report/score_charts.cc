#include "client/cli/report/score_charts.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/report/plot.h"
#include "client/cli/views/table.h"

namespace chainfleet {
namespace {

constexpr double kWidth = 520;

void DrawBins(const v1::Scores& scores, Plot* plot) {
  for (const v1::ReliabilityBin& bin : scores.reliability()) {
    if (bin.count() == 0) continue;
    const std::string tip =
        absl::StrFormat("confidence %.2f to %.2f: %d rows, mean confidence %.3f, accuracy %.3f", bin.lower(),
                        bin.upper(), bin.count(), bin.mean_confidence(), bin.accuracy());
    plot->Bar(bin.lower(), bin.upper(), 0, bin.accuracy(), "bar s0", tip);
    plot->Bar(bin.lower(), bin.upper(), bin.accuracy(), bin.mean_confidence(), "gap s1", tip);
  }
  plot->Line({{0, 0}, {1, 1}}, "rule");
}

std::vector<double> Shares(const google::protobuf::RepeatedField<int64_t>& counts) {
  double sum = 0;
  for (const int64_t count : counts) sum += static_cast<double>(count);
  std::vector<double> shares;
  for (const int64_t count : counts) shares.push_back(sum > 0 ? 100 * static_cast<double>(count) / sum : 0);
  return shares;
}

void DrawHistogram(const std::vector<double>& shares, double end, const std::string& of, size_t series, Plot* plot) {
  const double width = end / static_cast<double>(shares.size());
  std::vector<PlotPoint> outline = {{0, 0}};
  for (size_t i = 0; i < shares.size(); ++i) {
    const double left = static_cast<double>(i) * width;
    plot->Bar(left, left + width, 0, shares[i], SeriesStyle("area", series),
              absl::StrFormat("%s: %.2f %% of rows between %.2f and %.2f", of, shares[i], left, left + width));
    outline.insert(outline.end(), {{left, shares[i]}, {left + width, shares[i]}});
  }
  outline.push_back({end, 0});
  plot->Line(outline, SeriesStyle("line", series));
}

struct CurveScore {
  std::string label;
  double (*of)(const v1::CurvePoint&);
  double (*of_single)(const v1::Scores&);
};

const CurveScore kCurveScores[] = {
    {"NLL, nats per row", [](const v1::CurvePoint& p) { return p.nll(); }, [](const v1::Scores& s) { return s.nll(); }},
    {"accuracy, %", [](const v1::CurvePoint& p) { return 100 * p.accuracy(); },
     [](const v1::Scores& s) { return 100 * s.accuracy(); }},
    {"ECE", [](const v1::CurvePoint& p) { return p.ece(); }, [](const v1::Scores& s) { return s.ece(); }},
};

// One score over the number of draws; nothing if no point has it.
std::string CurvePanel(const v1::Evaluation& evaluation, const CurveScore& score, const PlotArea& area) {
  std::vector<PlotPoint> points;
  const v1::Scores* single = SingleDraws(evaluation);
  const double alone = single == nullptr ? NAN : score.of_single(*single);
  double low = std::isfinite(alone) ? alone : INFINITY, high = std::isfinite(alone) ? alone : -INFINITY;
  for (const v1::CurvePoint& point : evaluation.curve()) {
    const double value = score.of(point);
    if (!std::isfinite(value)) continue;
    points.push_back({static_cast<double>(point.num_draws()), value});
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (points.empty()) return "";
  Plot plot({"draws averaged", Scale::Log(points.front().x, points.back().x), 6},
            {score.label, Scale::Rounded(low, high, 5), 5}, area);
  if (std::isfinite(alone)) plot.Rule(alone, "mean single draw");
  plot.Line(points, "line s0");
  for (const PlotPoint& point : points) {
    plot.Dot(point, "dot s0", absl::StrFormat("%d draws: %.4g", static_cast<int64_t>(point.x), point.y));
  }
  return plot.Svg();
}

}  // namespace

const v1::Scores* SingleDraws(const v1::Evaluation& evaluation) {
  const auto single = std::ranges::find_if(
      evaluation.scores(), [](const v1::Scores& scores) { return absl::StartsWith(scores.what(), "single"); });
  return single == evaluation.scores().end() ? nullptr : &*single;
}

const v1::Scores* BestAverage(const v1::Evaluation& evaluation) {
  const v1::Scores* best = nullptr;
  for (const v1::Scores& scores : evaluation.scores()) {
    if (scores.what() == "all") return &scores;
    if (!absl::StartsWith(scores.what(), "calibrated")) best = &scores;
  }
  return best;
}

std::optional<Figure> ReliabilityFigure(const v1::Evaluation& evaluation) {
  const v1::Scores* scores = BestAverage(evaluation);
  if (scores == nullptr || scores->reliability().empty()) return std::nullopt;
  Plot bins({"", Scale::Linear(0, 1), 6, false}, {"accuracy", Scale::Linear(0, 1), 6}, {56, 28, 440, 268});
  DrawBins(*scores, &bins);
  bins.Note(0.03, 0.08, absl::StrCat("ECE ", Fixed(scores->ece(), 4)), "callout");
  bins.Note(0.03, 0.14, absl::StrCat(scores->reliability_size(), " bins of equal width"));
  int64_t most = 1;
  for (const v1::ReliabilityBin& bin : scores->reliability()) most = std::max(most, bin.count());
  Plot counts({"confidence: largest mean probability", Scale::Linear(0, 1), 6},
              {"rows", Scale::Rounded(0, static_cast<double>(most), 4), 4}, {56, 336, 440, 76});
  for (const v1::ReliabilityBin& bin : scores->reliability()) {
    counts.Bar(bin.lower(), bin.upper(), 0, static_cast<double>(bin.count()), "bar s0",
               absl::StrCat(bin.count(), " rows"));
  }
  return Figure{"reliability",
                "Is it as sure as it is right?",
                Drawing("reliability-chart", "Reliability diagram",
                        absl::StrCat("Accuracy by confidence; expected calibration error ", Fixed(scores->ece(), 4)),
                        kWidth, 460, {bins.Svg(), counts.Svg()}),
                "Good: bars end on the diagonal. A shaded gap above a bar says too sure, below the top of a bar too "
                "cautious; bins of few rows jump by chance.",
                {{"bar s0", "accuracy"}, {"gap s1", "gap to mean confidence"}, {"rule", "as sure as right"}}};
}

std::optional<Figure> EntropyFigure(const v1::Evaluation& evaluation, int64_t num_classes) {
  const v1::Scores* scores = BestAverage(evaluation);
  if (scores == nullptr || scores->entropy_histogram().empty()) return std::nullopt;
  const std::vector<double> inside = Shares(scores->entropy_histogram()),
                            outside = Shares(scores->ood_entropy_histogram());
  double most = 0;
  for (const auto* shares : {&inside, &outside}) {
    for (const double share : *shares) most = std::max(most, share);
  }
  const double end = num_classes > 1 ? std::log(static_cast<double>(num_classes)) : 1;
  Plot plot({num_classes > 1 ? "predictive entropy, nats (right end: log of the number of classes)"
                             : "predictive entropy, as a share of its largest value",
             Scale::Linear(0, end), 6},
            {"% of rows", Scale::Rounded(0, most, 6), 6}, {56, 28, 440, 372});
  DrawHistogram(inside, end, evaluation.dataset(), 0, &plot);
  std::vector<Figure::Key> legend = {{"line s0", evaluation.dataset() + ", in distribution"}};
  if (!outside.empty()) {
    DrawHistogram(outside, end, evaluation.ood_dataset(), 1, &plot);
    legend.push_back({"line s1", evaluation.ood_dataset() + ", out of distribution"});
    if (scores->has_ood_auroc()) {
      plot.Note(0.97, 0.06, absl::StrCat("AUROC ", Fixed(scores->ood_auroc(), 4)), "callout end");
    }
    if (scores->has_entropy_divergence()) {
      plot.Note(0.97, 0.11, absl::StrFormat("symmetrised KL %.3f nats", scores->entropy_divergence()), "note end");
    }
  }
  return Figure{
      "entropy", "Does it know what it does not know?",
      Drawing("entropy-chart", "Histogram of predictive entropies",
              outside.empty() ? "In distribution only" : "In and out of distribution", kWidth, 460, {plot.Svg()}),
      outside.empty() ? "Good: most rows near 0, and those it gets wrong further right. With --ood the rows "
                        "of another data set stand beside."
                      : "Good: the two hardly overlap, known inputs near 0, foreign ones far right. Bad: "
                        "foreign inputs near 0 are answered with a certainty that nothing supports.",
      std::move(legend)};
}

std::optional<Figure> CurveFigure(const v1::Evaluation& evaluation) {
  std::vector<std::string> panels;
  for (size_t i = 0; i < std::size(kCurveScores); ++i) {
    panels.push_back(CurvePanel(evaluation, kCurveScores[i], {62 + 352 * static_cast<double>(i), 28, 276, 200}));
  }
  if (std::all_of(panels.begin(), panels.end(), [](const auto& svg) { return svg.empty(); })) return std::nullopt;
  return Figure{
      "curve",
      "What do more draws buy?",
      Drawing("curve-chart", "Scores over the number of draws averaged",
              absl::StrCat("NLL, accuracy and calibration error of averages over up to ",
                           evaluation.curve().rbegin()->num_draws(), " draws"),
              1060, 280, panels),
      "Good: NLL falls and flattens: more draws than where it is flat buy nothing. Bad: it still falls at the "
      "right end (sample longer), or an average is no better than a single draw (chains that hardly move).",
      {{"line s0", "average over the first draws of every chain"}, {"rule", "mean single draw"}},
      true};
}

}  // namespace chainfleet

#include "client/cli/report/flatness_chart.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/report/plot.h"

namespace chainfleet {
namespace {

using Values = google::protobuf::RepeatedField<double>;

struct Curve {
  size_t series = 0;
  std::vector<PlotPoint> points;
};

// The smallest axes that hold all points.
std::pair<PlotPoint, PlotPoint> Corners(const std::vector<Curve>& curves) {
  PlotPoint low{INFINITY, INFINITY}, high{-INFINITY, -INFINITY};
  for (const Curve& curve : curves) {
    for (const PlotPoint& point : curve.points) {
      low = {std::min(low.x, point.x), std::min(low.y, point.y)};
      high = {std::max(high.x, point.x), std::max(high.y, point.y)};
    }
  }
  return {low, high};
}

// Positive values alone: the axes are logarithmic.
std::vector<Curve> Spectra(const v1::Evaluation& evaluation) {
  std::vector<Curve> curves;
  for (const v1::Flatness& flatness : evaluation.flatness()) {
    Curve curve{static_cast<size_t>(curves.size()), {}};
    const int n = std::min(flatness.fisher_ranks_size(), flatness.fisher_values_size());
    for (int i = 0; i < n; ++i) {
      if (flatness.fisher_values(i) > 0 && std::isfinite(flatness.fisher_values(i))) {
        curve.points.push_back({static_cast<double>(flatness.fisher_ranks(i)), flatness.fisher_values(i)});
      }
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

std::vector<Curve> Lines(const v1::Evaluation& evaluation, const Values& (v1::Flatness::*line)() const) {
  std::vector<Curve> curves;
  size_t series = 0;
  for (const v1::Flatness& flatness : evaluation.flatness()) {
    const Values& values = (flatness.*line)();
    Curve curve{series++, {}};
    for (int i = 0; i < std::min(values.size(), flatness.line_positions_size()); ++i) {
      if (std::isfinite(values[i])) curve.points.push_back({flatness.line_positions(i), values[i]});
    }
    if (!curve.points.empty()) curves.push_back(std::move(curve));
  }
  return curves;
}

std::string LinesPanel(const std::vector<Curve>& curves, const std::string& label, const PlotArea& area) {
  if (curves.empty()) return "";
  const auto [low, high] = Corners(curves);
  Plot plot({label, Scale::Linear(low.x, high.x), 6}, {"NLL, nats per row", Scale::Rounded(low.y, high.y, 5), 5}, area);
  for (const Curve& curve : curves) plot.Line(curve.points, SeriesStyle("line", curve.series));
  return plot.Svg();
}

std::vector<Figure::Key> Legend(const v1::Evaluation& evaluation) {
  std::vector<Figure::Key> legend;
  for (const v1::Flatness& flatness : evaluation.flatness()) {
    if (legend.size() == 8) break;
    legend.push_back({SeriesStyle("line", legend.size()),
                      absl::StrFormat("chain %d, trace %.3g", flatness.chain().index(), flatness.fisher_trace())});
  }
  return legend;
}

}  // namespace

std::optional<Figure> FisherFigure(const v1::Evaluation& evaluation) {
  const std::vector<Curve> curves = Spectra(evaluation);
  const auto [low, high] = Corners(curves);
  if (!(low.x <= high.x)) return std::nullopt;
  Plot plot({"rank of the parameter, sharpest first", Scale::Log(low.x, high.x), 8},
            {"diagonal of the Fisher matrix", Scale::Log(low.y, high.y), 8}, {62, 28, 434, 330});
  for (const Curve& curve : curves) plot.Line(curve.points, SeriesStyle("line", curve.series));
  return Figure{
      "fisher", "How sharp are the draws?",
      Drawing("fisher-chart", "Diagonal Fisher spectrum", "By rank, both axes logarithmic", 520, 410, {plot.Svg()}),
      "Good: low and falling early: few parameters are pinned, the draw lies flat. Chains of one posterior have "
      "spectra that lie on each other.",
      Legend(evaluation)};
}

std::optional<Figure> LinesFigure(const v1::Evaluation& evaluation) {
  const std::string random = LinesPanel(Lines(evaluation, &v1::Flatness::random_line),
                                        "along a random direction, in lengths of theta", {62, 28, 434, 136});
  const std::string anchor =
      LinesPanel(Lines(evaluation, &v1::Flatness::anchor_line), "from theta (0) to theta_a (1)", {62, 236, 434, 122});
  if (random.empty() && anchor.empty()) return std::nullopt;
  return Figure{"lines",
                "How wide is the valley?",
                Drawing("lines-chart", "Mean NLL along lines through the newest draws",
                        "A random direction, and the way to theta_a", 520, 410, {random, anchor}),
                "Good: a wide, shallow bowl around 0, and no hill between theta and theta_a. Bad: a spike.",
                {}};
}

}  // namespace chainfleet

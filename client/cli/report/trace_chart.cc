#include "client/cli/report/trace_chart.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/views/markup.h"
#include "client/cli/views/table.h"

namespace chainfleet {
namespace {

constexpr size_t kMostPoints = 24'000;  // of one figure, all chains together: half a megabyte of page
constexpr size_t kFewestPoints = 60;    // of a chain
constexpr size_t kNamedChains = 8;      // as many as there are colors
constexpr int kBins = 40;

struct Span {
  double low = INFINITY, high = -INFINITY;
  void Add(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

struct Chains {
  std::vector<const v1::Traces::Chain*> chains;
  Span steps, values;
};

Chains OfPoint(const v1::Traces& traces, int point) {
  Chains found;
  for (const v1::Traces::Chain& chain : traces.chains()) {
    if (chain.point() != point || chain.values().empty()) continue;
    found.chains.push_back(&chain);
    for (const int64_t step : chain.steps()) found.steps.Add(static_cast<double>(step));
    for (const double value : chain.values()) found.values.Add(value);
  }
  return found;
}

std::vector<PlotPoint> PointsOf(const v1::Traces::Chain& chain) {
  std::vector<PlotPoint> points;
  const int n = std::min(chain.steps_size(), chain.values_size());
  for (int i = 0; i < n; ++i) points.push_back({static_cast<double>(chain.steps(i)), chain.values(i)});
  return points;
}

// Outline of the histogram, its share to the right.
std::vector<PlotPoint> Outline(const v1::Traces::Chain& chain, const Span& span, double* most) {
  std::vector<double> shares(kBins, 0.0);
  for (const double value : chain.values()) {
    if (!std::isfinite(value)) continue;
    const double at = span.high > span.low ? (value - span.low) / (span.high - span.low) : 0.5;
    shares[static_cast<size_t>(std::min(at * kBins, kBins - 1.0))] += 100.0 / chain.values_size();
  }
  std::vector<PlotPoint> outline;
  for (size_t i = 0; i < shares.size(); ++i) {
    *most = std::max(*most, shares[i]);
    for (const size_t edge : {i, i + 1}) {
      outline.push_back({shares[i], span.low + (span.high - span.low) * static_cast<double>(edge) / kBins});
    }
  }
  return outline;
}

std::vector<Figure::Key> Legend(const Chains& found) {
  if (found.chains.size() > kNamedChains) {
    return {{"trace s0", absl::StrCat(found.chains.size(), " chains, colors again from the first after the eighth")}};
  }
  std::vector<Figure::Key> legend;
  for (size_t i = 0; i < found.chains.size(); ++i) {
    legend.push_back({SeriesStyle("trace", i), absl::StrCat("chain ", found.chains[i]->chain())});
  }
  return legend;
}

std::string Title(const std::string& quantity) {
  if (quantity == "energy") return "Did the chains settle?";
  return quantity;
}

}  // namespace

std::vector<PlotPoint> Thinned(const std::vector<PlotPoint>& points, size_t most) {
  if (points.size() <= most) return points;
  const size_t runs = std::max<size_t>(1, most / 2);
  std::vector<PlotPoint> thinned;
  for (size_t run = 0; run < runs; ++run) {
    const auto begin = points.begin() + static_cast<int64_t>(run * points.size() / runs);
    const auto end = points.begin() + static_cast<int64_t>((run + 1) * points.size() / runs);
    if (begin == end) continue;
    const auto [low, high] =
        std::minmax_element(begin, end, [](const PlotPoint& a, const PlotPoint& b) { return a.y < b.y; });
    thinned.push_back(*std::min(low, high));
    if (low != high) thinned.push_back(*std::max(low, high));
  }
  return thinned;
}

std::optional<Figure> TraceFigure(const v1::Traces& traces, int point, const v1::Job::Diagnostic* diagnostic) {
  const Chains found = OfPoint(traces, point);
  if (found.chains.empty() || found.values.low > found.values.high) return std::nullopt;
  const Scale values = Scale::Rounded(found.values.low, found.values.high, 6);
  Plot trace({"step", Scale::Linear(found.steps.low, found.steps.high), 8}, {traces.quantity(), values, 6},
             {66, 28, 740, 210});
  std::vector<std::vector<PlotPoint>> outlines;
  double most = 0;
  const size_t each = std::max(kFewestPoints, kMostPoints / found.chains.size());
  for (size_t i = 0; i < found.chains.size(); ++i) {
    trace.Line(Thinned(PointsOf(*found.chains[i]), each), SeriesStyle("trace", i));
    outlines.push_back(Outline(*found.chains[i], found.values, &most));
  }
  Plot histogram({"% of a chain's values", Scale::Rounded(0, most, 4), 4}, {"", values, 6, false}, {826, 28, 214, 210});
  for (size_t i = 0; i < outlines.size(); ++i) histogram.Line(outlines[i], SeriesStyle("trace", i));
  if (diagnostic != nullptr && diagnostic->has_rhat()) {
    histogram.Note(0.97, 0.08, absl::StrCat("R-hat ", Fixed(diagnostic->rhat(), 3)), "callout end");
  }
  const std::string id = "trace-" + ToId(traces.quantity());
  return Figure{
      id,
      Title(traces.quantity()),
      Drawing(id + "-chart", "Trace of " + traces.quantity(),
              absl::StrCat(traces.quantity(), " of ", found.chains.size(), " chains over steps"), 1060, 290,
              {trace.Svg(), histogram.Svg()}),
      "Good: level bands that lie on each other, histograms that coincide. Bad: a slope (not settled yet: more "
      "burn-in), or chains in bands of their own (they found different places; R-hat above 1.01).",
      Legend(found),
      true};
}

}  // namespace chainfleet

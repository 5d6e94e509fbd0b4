#include "client/cli/report/trace_series.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace chainfleet {
namespace {

using nlohmann::json;

constexpr size_t kMostPoints = 24'000;  // for one quantity, all chains together: half a megabyte of page
constexpr size_t kFewestPoints = 60;    // for a chain
constexpr size_t kBins = 40;

struct Span {
  double low = INFINITY, high = -INFINITY;
};

std::vector<TracePoint> PointsOf(const v1::Traces::Chain& chain) {
  std::vector<TracePoint> points;
  const int n = std::min(chain.steps_size(), chain.values_size());
  for (int i = 0; i < n; ++i) {
    if (std::isfinite(chain.values(i))) points.push_back({chain.steps(i), chain.values(i)});
  }
  return points;
}

// Eight digits: more cannot be seen, and make the page larger.
double Short(double value) { return std::strtod(absl::StrFormat("%.8g", value).c_str(), nullptr); }

std::vector<int64_t> Histogram(const std::vector<TracePoint>& points, const Span& span) {
  std::vector<int64_t> bins(kBins, 0);
  const double length = span.high - span.low;
  for (const TracePoint& point : points) {
    const double share = length > 0 && std::isfinite(length) ? (point.value - span.low) / length : 0.5;
    ++bins[static_cast<size_t>(std::clamp(share * kBins, 0.0, kBins - 1.0))];
  }
  return bins;
}

// REQUIRES: points are not empty.
double MedianOfTrace(const std::vector<TracePoint>& points) {
  std::vector<double> values;
  for (const TracePoint& point : points) values.push_back(point.value);
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  // std::midpoint: a sum of two values may overflow.
  return values.size() % 2 == 1 ? *middle : std::midpoint(*std::max_element(values.begin(), middle), *middle);
}

json ChainJson(int chain, const std::vector<TracePoint>& points, const Span& span, size_t most) {
  json steps = json::array(), values = json::array();
  for (const std::vector<TracePoint>& run : TracedRuns(points)) {
    if (!steps.empty()) {
      steps.push_back(run.front().step);
      values.push_back(nullptr);
    }
    const size_t share = std::max<size_t>(2, most * run.size() / points.size());
    for (const TracePoint& point : Thinned(run, share)) {
      steps.push_back(point.step);
      values.push_back(Short(point.value));
    }
  }
  return {{"chain", chain},
          {"steps", steps},
          {"values", values},
          {"median", Short(MedianOfTrace(points))},
          {"bins", Histogram(points, span)}};
}

// Null without values.
json QuantityJson(const v1::Traces& traces, int point) {
  std::vector<std::pair<int, std::vector<TracePoint>>> chains;
  Span span;
  for (const v1::Traces::Chain& chain : traces.chains()) {
    std::vector<TracePoint> points = chain.point() == point ? PointsOf(chain) : std::vector<TracePoint>();
    if (points.empty()) continue;
    for (const TracePoint& found : points) {
      span = {std::min(span.low, found.value), std::max(span.high, found.value)};
    }
    chains.emplace_back(chain.chain(), std::move(points));
  }
  if (chains.empty()) return nullptr;
  const size_t each = std::max(kFewestPoints, kMostPoints / chains.size());
  json found = json::array();
  for (const auto& [chain, points] : chains) found.push_back(ChainJson(chain, points, span, each));
  return {{"quantity", traces.quantity()}, {"low", span.low}, {"high", span.high}, {"chains", std::move(found)}};
}

}  // namespace

std::vector<std::vector<TracePoint>> TracedRuns(const std::vector<TracePoint>& points) {
  const auto stride = [&](size_t i) {
    return static_cast<double>(points[i].step) - static_cast<double>(points[i - 1].step);
  };
  std::vector<double> strides;
  for (size_t i = 1; i < points.size(); ++i) strides.push_back(stride(i));
  // Most strides are those of neighbours. Windows of two values each have as many gaps, so a quarter has to do.
  const auto quarter = strides.begin() + static_cast<int64_t>(strides.size() / 4);
  if (!strides.empty()) std::nth_element(strides.begin(), quarter, strides.end());
  const double most = strides.empty() ? 0 : 1.5 * *quarter;
  std::vector<std::vector<TracePoint>> runs;
  for (size_t i = 0; i < points.size(); ++i) {
    if (i == 0 || stride(i) > most) runs.emplace_back();
    runs.back().push_back(points[i]);
  }
  return runs;
}

std::vector<TracePoint> Thinned(const std::vector<TracePoint>& points, size_t most) {
  if (points.size() <= most) return points;
  const size_t stretches = std::max<size_t>(1, most / 2);
  std::vector<TracePoint> thinned;
  for (size_t i = 0; i < stretches; ++i) {
    const auto begin = points.begin() + static_cast<int64_t>(i * points.size() / stretches);
    const auto end = points.begin() + static_cast<int64_t>((i + 1) * points.size() / stretches);
    const auto [low, high] =
        std::minmax_element(begin, end, [](const TracePoint& a, const TracePoint& b) { return a.value < b.value; });
    thinned.push_back(*std::min(low, high));
    if (low != high) thinned.push_back(*std::max(low, high));
  }
  return thinned;
}

nlohmann::json TraceSeries(const std::vector<v1::Traces>& traces, int point) {
  json series = json::array();
  for (const v1::Traces& found : traces) {
    json quantity = QuantityJson(found, point);
    if (!quantity.is_null()) series.push_back(std::move(quantity));
  }
  return series;
}

}  // namespace chainfleet

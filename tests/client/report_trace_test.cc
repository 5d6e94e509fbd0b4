// Traces as the report draws them.
#include <algorithm>
#include <cmath>
#include <vector>

#include "client/cli/report/trace_series.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<TracePoint> AtSteps(const std::vector<int64_t>& steps) {
  std::vector<TracePoint> points;
  for (const int64_t step : steps) points.push_back({step, 1});
  return points;
}

std::vector<size_t> RunLengths(const std::vector<int64_t>& steps) {
  std::vector<size_t> lengths;
  for (const auto& run : TracedRuns(AtSteps(steps))) lengths.push_back(run.size());
  return lengths;
}

TEST(TracedRuns, AreCutWhereStepsWereNotTraced) {
  EXPECT_THAT(RunLengths({}), IsEmpty());
  EXPECT_THAT(RunLengths({7}), ElementsAre(1));
  EXPECT_THAT(RunLengths({10, 20, 30, 40}), ElementsAre(4)) << "evenly traced";
  EXPECT_THAT(RunLengths({10, 20, 30, 1000, 1010, 1020}), ElementsAre(3, 3)) << "two windows";
  EXPECT_THAT(RunLengths({10, 20, 1000, 1010, 2000, 2010}), ElementsAre(2, 2, 2))
      << "as many gaps as neighbours, nearly";
  EXPECT_THAT(RunLengths({10, 20, 30, 40, 43}), ElementsAre(5)) << "the last step, nearer than its neighbours";
}

v1::Traces TracesOf(const std::vector<int64_t>& steps, const std::vector<double>& values) {
  v1::Traces traces;
  traces.set_quantity("energy");
  v1::Traces::Chain* chain = traces.add_chains();
  chain->mutable_steps()->Add(steps.begin(), steps.end());
  chain->mutable_values()->Add(values.begin(), values.end());
  return traces;
}

TEST(TraceSeries, BreaksTheLineAndCountsValues) {
  const nlohmann::json series = TraceSeries({TracesOf({10, 20, 30, 1000, 1010, 1020}, {1, 2, 3, 4, NAN, 5})}, 0);
  const nlohmann::json& chain = series.at(0).at("chains").at(0);
  EXPECT_EQ(chain.at("steps").dump(), "[10,20,30,1000,1000,1020,1020]");
  EXPECT_EQ(chain.at("values").dump(), "[1.0,2.0,3.0,null,4.0,null,5.0]") << "also across the NaN";
  const auto bins = chain.at("bins").get<std::vector<int>>();
  EXPECT_EQ(bins.front(), 1);
  EXPECT_EQ(bins.back(), 1);
  EXPECT_EQ(std::count(bins.begin(), bins.end(), 1), 5) << "1, 2, 3, 4 and 5, without the NaN";
}

double MedianIn(const v1::Traces& traces) {
  return TraceSeries({traces}, 0).at(0).at("chains").at(0).at("median").get<double>();
}

TEST(TraceSeries, HasTheMedianOfAllValuesAndNotOfTheDrawnOnes) {
  EXPECT_EQ(MedianIn(TracesOf({10, 20, 30, 40}, {9, 1, NAN, 2})), 2);
  EXPECT_EQ(MedianIn(TracesOf({10, 20, 30, 40}, {9, 1, 4, 2})), 3) << "the mean of the two middle values";
  EXPECT_EQ(MedianIn(TracesOf({10, 20}, {1e308, 1.2e308})), 1.1e308);
  // Each stretch of the drawn values has its minimum 0 and its maximum 9; most values are 1.
  std::vector<int64_t> steps(100'000);
  std::vector<double> values(steps.size(), 1);
  for (size_t i = 0; i < steps.size(); ++i) {
    steps[i] = static_cast<int64_t>(i) + 1;
    if (i % 4 == 0) values[i] = i % 8 == 0 ? 0 : 9;
  }
  EXPECT_EQ(MedianIn(TracesOf(steps, values)), 1);
}

TEST(TraceSeries, LeavesOutWhatHasNoValues) {
  EXPECT_THAT(TraceSeries({TracesOf({10, 20}, {NAN, INFINITY})}, 0), IsEmpty());
  EXPECT_THAT(TraceSeries({TracesOf({10, 20}, {1, 2})}, 1), IsEmpty()) << "of another point";
  EXPECT_THAT(TraceSeries({TracesOf({10, 20}, {-1e308, 1e308})}, 0), SizeIs(1));
}

TEST(Thinned, KeepsSpikesAndEnds) {
  std::vector<TracePoint> points;
  for (int i = 0; i < 10'000; ++i) points.push_back({i, std::sin(0.001 * i)});
  points[6'543].value = 50;
  points[6'544].value = -50;
  const std::vector<TracePoint> thinned = Thinned(points, 200);
  EXPECT_LE(thinned.size(), 200u);
  EXPECT_TRUE(std::ranges::is_sorted(thinned, {}, &TracePoint::step));
  EXPECT_EQ(std::ranges::max(thinned, {}, &TracePoint::value).step, 6'543);
  EXPECT_EQ(std::ranges::min(thinned, {}, &TracePoint::value).step, 6'544);
  EXPECT_THAT(Thinned({{1, 2}, {3, 4}}, 200), SizeIs(2));
}

}  // namespace
}  // namespace chainfleet

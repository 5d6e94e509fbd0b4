// Axes, marks and pictures of the report.
#include <png.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "client/cli/report/plot.h"
#include "client/cli/report/png.h"
#include "client/cli/report/scale.h"
#include "client/cli/report/trace_chart.h"
#include "client/cli/views/markup.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

std::vector<std::string> Labels(const Scale& scale, int most) {
  std::vector<std::string> labels;
  for (const Tick& tick : scale.Ticks(most)) labels.push_back(tick.label);
  return labels;
}

TEST(Scale, TicksAreRoundNumbersInsideTheAxis) {
  EXPECT_THAT(Labels(Scale::Linear(0, 1), 6), ElementsAre("0", "0.2", "0.4", "0.6", "0.8", "1.0"));
  EXPECT_THAT(Labels(Scale::Linear(-130, 270), 5), ElementsAre("−100", "0", "100", "200"));
  EXPECT_THAT(Labels(Scale::Linear(1'200'000, 1'400'000), 3), ElementsAre("1,200,000", "1,300,000", "1,400,000"));
  EXPECT_THAT(Labels(Scale::Linear(0.2731, 0.2934), 6), ElementsAre("0.275", "0.280", "0.285", "0.290"));
}

TEST(Scale, TicksOfALogarithmArePowersOfTen) {
  EXPECT_THAT(Labels(Scale::Log(1, 16), 6), ElementsAre("1", "2", "5", "10"));
  EXPECT_THAT(Labels(Scale::Log(1e-9, 10), 6), ElementsAre("10⁻⁹", "10⁻⁷", "10⁻⁵", "0.001", "0.1", "10"));
  EXPECT_THAT(Labels(Scale::Log(120, 180), 6), ElementsAre("120", "140", "160", "180"));
}

TEST(Scale, RoundedEndsHoldTheNumbers) {
  const Scale scale = Scale::Rounded(0.2731, 0.2934, 6);
  EXPECT_NEAR(scale.low(), 0.27, 1e-12);
  EXPECT_NEAR(scale.high(), 0.295, 1e-12);
}

TEST(Scale, PutsNumbersWhereTheyBelong) {
  EXPECT_EQ(Scale::Linear(10, 20).Share(12.5), 0.25);
  EXPECT_NEAR(Scale::Log(1, 10'000).Share(100), 0.5, 1e-12);
  EXPECT_EQ(Scale::Linear(10, 20).Share(9), 0);
  EXPECT_EQ(Scale::Linear(10, 20).Share(99), 1);
  EXPECT_EQ(Scale::Linear(10, 20).Share(NAN), 0);
  EXPECT_EQ(Scale::Log(1, 10).Share(-3), 0);
}

TEST(Scale, HoldsAlsoWhatIsNoSpan) {
  const double huge = 1e308;
  for (const Scale& scale :
       {Scale::Linear(3, 3), Scale::Linear(0, 0), Scale::Linear(NAN, 1), Scale::Linear(-huge, huge),
        Scale::Linear(1e17, 1e17 + 32), Scale::Log(5, 5), Scale::Log(-1, 2), Scale::Log(1e-300, 1e300)}) {
    EXPECT_LT(scale.low(), scale.high());
    const size_t ticks = scale.Ticks(6).size();
    EXPECT_GE(ticks, 1u);
    EXPECT_LE(ticks, 12u);
  }
}

TEST(Markup, LeavesNoWayOutOfTheText) {
  EXPECT_EQ(Escape("<a href='x'>&\"\x01\n"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot; \n");
  EXPECT_EQ(ToId("theta.log_likelihood[3]"), "theta-log-likelihood-3-");
  EXPECT_EQ(Coordinate(12.5), "12.5");
  EXPECT_EQ(Coordinate(-0.001), "0");
  EXPECT_EQ(Coordinate(NAN), "0");
}

TEST(Plot, DrawsInTheNumbersOfItsAxes) {
  Plot plot({"x", Scale::Linear(0, 10)}, {"y", Scale::Linear(0, 2)}, {100, 50, 200, 80});
  plot.Line({{0, 0}, {5, 1}, {10, 2}}, "line");
  plot.Bar(5, 10, 2, 0, "bar", "five & more");
  const std::string svg = plot.Svg();
  EXPECT_THAT(svg, HasSubstr("<path d=\"M100 130L200 90L300 50\" class=\"line\"/>"));
  EXPECT_THAT(svg,
              HasSubstr("<rect x=\"200\" y=\"50\" width=\"100\" height=\"80\" class=\"bar\"><title>five &amp; more"));
}

TEST(Plot, ALineIsBrokenWhereANumberIsMissing) {
  Plot plot({"", Scale::Linear(0, 4)}, {"", Scale::Linear(0, 1)}, {0, 0, 400, 100});
  plot.Line({{0, 0}, {1, 1}, {2, NAN}, {3, 1}, {4, INFINITY}}, "line");
  plot.Bar(0, 1, NAN, 1, "bar");
  plot.Dot({NAN, 0}, "dot");
  const std::string svg = plot.Svg();
  EXPECT_THAT(svg, HasSubstr("d=\"M0 100L100 0M300 0\""));
  EXPECT_THAT(svg, Not(HasSubstr("<rect")));
  EXPECT_THAT(svg, Not(HasSubstr("<circle")));
}

TEST(Thinned, KeepsSpikesAndEnds) {
  std::vector<PlotPoint> points;
  for (int i = 0; i < 10'000; ++i) points.push_back({static_cast<double>(i), std::sin(0.001 * i)});
  points[6'543].y = 50;
  points[6'544].y = -50;
  const std::vector<PlotPoint> thinned = Thinned(points, 200);
  EXPECT_LE(thinned.size(), 200u);
  EXPECT_TRUE(std::ranges::is_sorted(thinned, {}, &PlotPoint::x));
  EXPECT_EQ(std::ranges::max(thinned, {}, &PlotPoint::y).x, 6'543);
  EXPECT_EQ(std::ranges::min(thinned, {}, &PlotPoint::y).x, 6'544);
  EXPECT_THAT(Thinned({{1, 2}, {3, 4}}, 200), SizeIs(2));
}

TEST(Png, IsReadBackAsItWas) {
  for (const int channels : {1, 3}) {
    std::string samples;
    for (int i = 0; i < 5 * 7 * channels; ++i) samples.push_back(static_cast<char>(37 * i));
    const std::string png = EncodePng(samples, 5, 7, channels);
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    ASSERT_TRUE(png_image_begin_read_from_memory(&image, png.data(), png.size())) << image.message;
    EXPECT_EQ(image.width, 5u);
    EXPECT_EQ(image.height, 7u);
    image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
    std::string read(samples.size(), '\0');
    ASSERT_TRUE(png_image_finish_read(&image, nullptr, read.data(), 0, nullptr)) << image.message;
    EXPECT_EQ(read, samples);
    const std::string uri = DataUri(png);
    std::string decoded;
    ASSERT_TRUE(absl::Base64Unescape(uri.substr(uri.find(',') + 1), &decoded));
    EXPECT_EQ(decoded, png);
  }
}

}  // namespace
}  // namespace chainfleet

#include "client/cli/report/plot.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "client/cli/views/markup.h"

namespace chainfleet {
namespace {

constexpr size_t kSeriesColors = 8;

std::string Text(double x, double y, const std::string& style, const std::string& text, const std::string& more = "") {
  return absl::StrCat("<text x=\"", Coordinate(x), "\" y=\"", Coordinate(y), "\" class=\"", style, "\"", more, ">",
                      Escape(text), "</text>\n");
}

std::string Segment(double x1, double y1, double x2, double y2, const std::string& style) {
  return absl::StrCat("<line x1=\"", Coordinate(x1), "\" y1=\"", Coordinate(y1), "\" x2=\"", Coordinate(x2), "\" y2=\"",
                      Coordinate(y2), "\" class=\"", style, "\"/>\n");
}

// Closes an element, with what the pointer is told.
std::string Close(const std::string& element, const std::string& tip) {
  return tip.empty() ? "/>\n" : absl::StrCat("><title>", Escape(tip), "</title></", element, ">\n");
}

}  // namespace

void Plot::Line(const std::vector<PlotPoint>& points, const std::string& style) {
  std::string path;
  bool pen_down = false;
  for (const PlotPoint& point : points) {
    const bool finite = std::isfinite(point.x) && std::isfinite(point.y);
    if (finite) {
      absl::StrAppend(&path, pen_down ? "L" : "M", Coordinate(PixelX(point.x)), " ", Coordinate(PixelY(point.y)));
    }
    pen_down = finite;
  }
  if (!path.empty()) absl::StrAppend(&marks_, "<path d=\"", path, "\" class=\"", style, "\"/>\n");
}

void Plot::Bar(double x0, double x1, double y0, double y1, const std::string& style, const std::string& tip) {
  if (!std::isfinite(x0 + x1 + y0 + y1)) return;
  const auto [left, right] = std::minmax({PixelX(x0), PixelX(x1)});
  const auto [top, bottom] = std::minmax({PixelY(y0), PixelY(y1)});
  absl::StrAppend(&marks_, "<rect x=\"", Coordinate(left), "\" y=\"", Coordinate(top), "\" width=\"",
                  Coordinate(right - left), "\" height=\"", Coordinate(bottom - top), "\" class=\"", style, "\"",
                  Close("rect", tip));
}

void Plot::Dot(PlotPoint at, const std::string& style, const std::string& tip) {
  if (!std::isfinite(at.x + at.y)) return;
  absl::StrAppend(&marks_, "<circle cx=\"", Coordinate(PixelX(at.x)), "\" cy=\"", Coordinate(PixelY(at.y)),
                  "\" r=\"3\" class=\"", style, "\"", Close("circle", tip));
}

void Plot::Rule(double y, const std::string& word) {
  if (!std::isfinite(y)) return;
  const double at = PixelY(y), right = area_.left + area_.width;
  absl::StrAppend(&marks_, Segment(area_.left, at, right, at, "rule"), Text(right - 4, at - 5, "note end", word));
}

void Plot::Note(double x_share, double y_share, const std::string& text, const std::string& style) {
  absl::StrAppend(&marks_, Text(area_.left + x_share * area_.width, area_.top + y_share * area_.height, style, text));
}

std::string Plot::AxesSvg() const {
  const double right = area_.left + area_.width, bottom = area_.top + area_.height;
  std::string svg;
  for (const Tick& tick : y_.scale.Ticks(y_.most_ticks)) {
    const double at = PixelY(tick.value);
    absl::StrAppend(&svg, Segment(area_.left, at, right, at, "grid"));
    if (y_.shows_labels) absl::StrAppend(&svg, Text(area_.left - 7, at + 4, "tick end", tick.label));
  }
  for (const Tick& tick : x_.scale.Ticks(x_.most_ticks)) {
    const double at = PixelX(tick.value);
    absl::StrAppend(&svg, Segment(at, bottom, at, bottom + 4, "axis"));
    if (x_.shows_labels) absl::StrAppend(&svg, Text(at, bottom + 18, "tick middle", tick.label));
  }
  absl::StrAppend(&svg, Segment(area_.left, bottom, right, bottom, "axis"));
  if (!x_.label.empty()) {
    absl::StrAppend(&svg, Text(area_.left + area_.width / 2, bottom + 38, "label middle", x_.label));
  }
  // The y label stands above its axis: turned text is hard to read.
  if (!y_.label.empty()) absl::StrAppend(&svg, Text(std::max(0.0, area_.left - 44), area_.top - 12, "label", y_.label));
  return svg;
}

std::string Plot::Svg() const { return absl::StrCat("<g>\n", AxesSvg(), marks_, "</g>\n"); }

std::string Drawing(const std::string& id, const std::string& title, const std::string& description, double width,
                    double height, const std::vector<std::string>& parts) {
  std::string svg =
      absl::StrCat("<svg viewBox=\"0 0 ", Coordinate(width), " ", Coordinate(height),
                   "\" role=\"img\" aria-labelledby=\"", id, "-title ", id, "-desc\">\n<title id=\"", id, "-title\">",
                   Escape(title), "</title>\n<desc id=\"", id, "-desc\">", Escape(description), "</desc>\n");
  for (const std::string& part : parts) svg += part;
  return svg + "</svg>\n";
}

std::string SeriesStyle(const std::string& mark, size_t i) { return absl::StrCat(mark, " s", i % kSeriesColors); }

}  // namespace chainfleet

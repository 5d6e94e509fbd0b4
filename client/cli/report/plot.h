// Drawing on two axes, as SVG: lines, bars, dots and rules given in the axes' own numbers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "client/cli/report/scale.h"

namespace chainfleet {

struct Axis {
  std::string label;  // what it is, with its unit
  Scale scale = Scale::Linear(0, 1);
  int most_ticks = 6;
  bool shows_labels = true;
};

// The plotting area alone, in the drawing's units; tick labels and axis labels lie outside of it.
struct PlotArea {
  double left = 0, top = 0, width = 0, height = 0;
};

struct PlotPoint {
  double x = 0, y = 0;
};

// `style` is one class of the page's style sheet or several: colors live there alone, so that dark and printed pages
// differ in no drawing. Numbers that are not finite are left out; a line is broken there.
class Plot {
 public:
  Plot(Axis x, Axis y, PlotArea area) : x_(std::move(x)), y_(std::move(y)), area_(area) {}

  void Line(const std::vector<PlotPoint>& points, const std::string& style);
  // Between (x0, y0) and (x1, y1), in either order. `tip` is shown under the pointer.
  void Bar(double x0, double x1, double y0, double y1, const std::string& style, const std::string& tip = "");
  void Dot(PlotPoint at, const std::string& style, const std::string& tip = "");
  // Across the whole area at `y`, with a word at its right end.
  void Rule(double y, const std::string& word);
  // At a place of the area: shares of its width and height from the upper left.
  void Note(double x_share, double y_share, const std::string& text, const std::string& style = "note");

  // Grid and axes below, then what was drawn, in its order.
  std::string Svg() const;

 private:
  double PixelX(double x) const { return area_.left + area_.width * x_.scale.Share(x); }
  double PixelY(double y) const { return area_.top + area_.height * (1 - y_.scale.Share(y)); }
  std::string AxesSvg() const;

  const Axis x_, y_;
  const PlotArea area_;
  std::string marks_;
};

// A whole picture: `parts` are what plots and legends of the drawing gave. Title and description are read aloud;
// neither is drawn.
std::string Drawing(const std::string& id, const std::string& title, const std::string& description, double width,
                    double height, const std::vector<std::string>& parts);

// The class of the i-th of several lines or bars: colors that color-blind people tell apart, again from the first after
// the eighth.
std::string SeriesStyle(const std::string& mark, size_t i);

}  // namespace chainfleet

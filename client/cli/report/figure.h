// One figure of the report: a heading, a drawing or table, its legend, and a line that says how to read it.
#pragma once

#include <string>
#include <vector>

namespace chainfleet {

struct Figure {
  std::string id;       // of the element, "reliability"
  std::string title;    // as a person would ask for it
  std::string body;     // markup: what was not made here is escaped already
  std::string caption;  // what good and bad look like
  struct Key {
    std::string style, text;
  };
  std::vector<Key> legend;
  bool wide = false;  // as broad as the page, else half of it
};

std::string RenderFigure(const Figure& figure);

}  // namespace chainfleet

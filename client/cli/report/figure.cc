#include "client/cli/report/figure.h"

#include "absl/strings/str_cat.h"
#include "client/cli/views/markup.h"

namespace chainfleet {

std::string RenderFigure(const Figure& figure) {
  std::string html = absl::StrCat("<figure id=\"", Escape(figure.id), "\"", figure.wide ? " class=\"wide\"" : "",
                                  ">\n<h3>", Escape(figure.title), "</h3>\n");
  if (!figure.legend.empty()) {
    html += "<ul class=\"legend\">";
    for (const Figure::Key& key : figure.legend) {
      absl::StrAppend(&html,
                      "<li><svg class=\"key\" viewBox=\"0 0 22 10\" aria-hidden=\"true\"><path d=\"M0 5L22 5\" "
                      "class=\"",
                      key.style, "\"/></svg>", Escape(key.text), "</li>");
    }
    html += "</ul>\n";
  }
  return absl::StrCat(html, figure.body, "<figcaption>", Escape(figure.caption), "</figcaption>\n</figure>\n");
}

}  // namespace chainfleet

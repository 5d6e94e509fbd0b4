#include "client/cli/views/table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/check.h"
#include "core/base/escaped.h"
#include "core/base/utf8.h"

namespace chainfleet {
namespace {

// Counts characters, as terminals show most of them, not bytes.
size_t Width(const std::string& text) { return static_cast<size_t>(std::ranges::count_if(text, BeginsCharacter)); }

void Cut(std::string* line, size_t width) {
  if (Width(*line) <= width) return;
  const auto end = std::ranges::find_if(
      *line, [left = width - 3](char byte) mutable { return BeginsCharacter(byte) && left-- == 0; });
  line->replace(end, line->end(), "...");
}

}  // namespace

Table::Table(std::vector<std::string> headers) {
  for (std::string& header : headers) {
    const bool wide_only = header.starts_with('+');
    if (wide_only) header.erase(0, 1);
    const bool right = header.starts_with('>');
    if (right) header.erase(0, 1);
    const size_t width = header.size();
    columns_.push_back({std::move(header), wide_only, right, width});
  }
}

void Table::AddRow(std::vector<std::string> cells) {
  CHAINFLEET_CHECK(cells.size() == columns_.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    cells[i] = cells[i].empty() ? "-" : Escaped(cells[i]);
    columns_[i].width = std::max(columns_[i].width, Width(cells[i]));
  }
  rows_.push_back(std::move(cells));
}

std::string Table::Render(const TableLayout& layout) const {
  std::string text;
  const auto add_line = [&](const auto& cell_of) {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].wide_only && !layout.wide) continue;
      const std::string& cell = cell_of(i);
      const std::string padding(columns_[i].width - Width(cell), ' ');
      absl::StrAppend(&line, i == 0 ? "" : "  ",
                      columns_[i].right ? absl::StrCat(padding, cell) : absl::StrCat(cell, padding));
    }
    line.resize(line.find_last_not_of(' ') + 1);
    if (layout.max_width > 3) Cut(&line, layout.max_width);
    absl::StrAppend(&text, line, "\n");
  };
  add_line([&](size_t i) -> const std::string& { return columns_[i].header; });
  const size_t shown = layout.max_rows == 0 ? rows_.size() : std::min(layout.max_rows, rows_.size());
  for (size_t row = 0; row < shown; ++row) {
    add_line([&](size_t i) -> const std::string& { return rows_[row][i]; });
  }
  if (shown < rows_.size()) absl::StrAppend(&text, "... and ", rows_.size() - shown, " more\n");
  return text;
}

std::string Fixed(double value, int decimals) {
  return std::isnan(value) ? "-" : absl::StrFormat("%.*f", decimals, value);
}

std::string Significant(double value, int digits) {
  return std::isnan(value) ? "-" : absl::StrFormat("%.*g", digits, value);
}

std::string FormatBytes(int64_t bytes) {
  if (bytes < 1000) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes);
  int unit = -1;
  for (; value >= 999.95 && unit < 3; ++unit) value /= 1000;
  return absl::StrFormat("%.1f %cB", value, "kMGT"[unit]);
}

}  // namespace chainfleet

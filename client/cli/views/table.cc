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

constexpr size_t kGap = 2;

}  // namespace

Table::Table(std::vector<std::string> headers) {
  for (std::string& header : headers) {
    const bool wide_only = header.starts_with('+');
    if (wide_only) header.erase(0, 1);
    const bool right = header.starts_with('>'), whole = right || header.starts_with('=');
    if (whole) header.erase(0, 1);
    const size_t width = header.size(), least = columns_.empty() ? kLeastName : width;
    columns_.push_back({std::move(header), wide_only, right, whole ? std::string::npos : least, width});
  }
}

void Table::AddRow(std::vector<std::string> cells) {
  CHAINFLEET_CHECK(cells.size() == columns_.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    cells[i] = cells[i].empty() ? "-" : Escaped(cells[i]);
    columns_[i].width = std::max(columns_[i].width, CountCharacters(cells[i]));
  }
  rows_.push_back(std::move(cells));
}

std::vector<size_t> Table::Widths(const TableLayout& layout) const {
  const size_t most = layout.max_width == 0 ? std::string::npos : layout.max_width;
  std::vector<size_t> widths(columns_.size());
  size_t used = 0;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].wide_only && !layout.wide) continue;
    const size_t least = std::min(columns_[i].least, columns_[i].width), end = used + (i == 0 ? 0 : kGap) + least;
    if (i > 0 && end > most) break;
    widths[i] = least;
    used = end;
  }
  // Gives each character that is left to the narrowest cropped column.
  for (; used < most; ++used) {
    size_t* narrowest = nullptr;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const bool cropped = widths[i] > 0 && widths[i] < columns_[i].width;
      if (cropped && (narrowest == nullptr || widths[i] < *narrowest)) narrowest = &widths[i];
    }
    if (narrowest == nullptr) break;
    ++*narrowest;
  }
  return widths;
}

std::string Table::Render(const TableLayout& layout) const {
  const std::vector<size_t> widths = Widths(layout);
  std::string text;
  const auto add_line = [&](const auto& cell_of) {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (widths[i] == 0) continue;
      const std::string cell = Cropped(cell_of(i), widths[i]);
      const std::string padding(widths[i] - CountCharacters(cell), ' ');
      absl::StrAppend(&line, std::string(i == 0 ? 0 : kGap, ' '),
                      columns_[i].right ? absl::StrCat(padding, cell) : absl::StrCat(cell, padding));
    }
    line.resize(line.find_last_not_of(' ') + 1);
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

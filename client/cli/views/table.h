// Plain text tables: aligned columns, two spaces apart, no trailing spaces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace chainfleet {

// Characters that cropping leaves of a job's id, or of the first cell, which names a row.
inline constexpr size_t kLeastName = 16;

struct TableLayout {
  size_t max_rows = 0;   // rows to print before the number of the rest; 0: all
  size_t max_width = 0;  // characters that a line may have, 0: any; where it needs more, text columns are cropped
                         // first, then the last columns left out
  bool wide = false;
};

class Table {
 public:
  // Headers are printed as given, without their marks: a leading '+' shows the column in wide tables only, and then '>'
  // right-aligns it, for numbers, and '=' aligns it left; neither is ever cropped.
  explicit Table(std::vector<std::string> headers = {});

  // As many cells as there are columns.
  void AddRow(std::vector<std::string> cells);

  // Lines end in '\n'.
  std::string Render(const TableLayout& layout = {}) const;

  struct Column {
    std::string header;
    bool wide_only = false, right = false;
    size_t least = 0;  // characters that stay where lines are too long
    size_t width = 0;  // width of the widest cell
  };
  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<std::vector<std::string>>& rows() const { return rows_; }

 private:
  // The width of each column, 0 for those that are not shown.
  std::vector<size_t> Widths(const TableLayout& layout) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Fixed decimals, "-" for NaN.
std::string Fixed(double value, int decimals);
// `digits` significant digits, "-" for NaN.
std::string Significant(double value, int digits);
// "61.7 kB", "4.0 MB": powers of 1000.
std::string FormatBytes(int64_t bytes);

}  // namespace chainfleet

// Plain text tables: aligned columns, two spaces apart, no trailing spaces.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace chainfleet {

struct TableLayout {
  size_t max_rows = 0;   // rows to print before the number of the rest; 0: all
  size_t max_width = 0;  // longer lines end in "..."; 0: any
  bool wide = false;
};

class Table {
 public:
  // Headers are printed as given, without their marks: a leading '+' shows the column in wide tables only, and then '>'
  // right-aligns it, for numbers.
  explicit Table(std::vector<std::string> headers = {});

  // As many cells as there are columns.
  void AddRow(std::vector<std::string> cells);

  // Lines end in '\n'.
  std::string Render(const TableLayout& layout = {}) const;

  struct Column {
    std::string header;
    bool wide_only = false, right = false;
    size_t width = 0;  // width of the widest cell
  };
  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<std::vector<std::string>>& rows() const { return rows_; }

 private:
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

// Plain text tables: columns aligned, two spaces apart, nothing after the last cell of a line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace chainfleet {

class Table {
 public:
  // Headers are printed as they are; one that starts with '>' (taken off) makes its column right-aligned: numbers.
  explicit Table(std::vector<std::string> headers);

  // As many cells as there are columns.
  void AddRow(std::vector<std::string> cells);

  // Lines ending in '\n'. At most `max_rows` rows if not 0, then a line that says how many are left out.
  std::string Render(size_t max_rows = 0) const;

  // A <table> of the same cells, escaped; columns of numbers have the class "number", those without a value are left
  // out.
  std::string RenderHtml() const;

 private:
  struct Column {
    std::string header;
    bool right = false;
    size_t width = 0;
  };
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

#include "core/formats/csv.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace chainfleet {
namespace {

std::vector<std::string> Cells(const std::string& line) {
  std::vector<std::string> cells;
  for (const auto cell : absl::StrSplit(line, ',')) {
    cells.emplace_back(absl::StripAsciiWhitespace(cell));
  }
  return cells;
}

bool IsHeader(const std::vector<std::string>& cells) {
  double ignored;
  for (const std::string& cell : cells) {
    if (!absl::SimpleAtod(cell, &ignored)) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<CsvTable> ReadCsv(const std::string& text) {
  CsvTable table;
  int64_t line_number = 0;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    ++line_number;
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    std::vector<std::string> cells = Cells(line);
    if (table.columns.empty()) {
      if (IsHeader(cells)) {
        table.columns = std::move(cells);
        continue;
      }
      for (size_t c = 0; c < cells.size(); ++c) table.columns.push_back(absl::StrCat(c));
    }
    if (cells.size() != table.columns.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", line_number, " has ", cells.size(), " cells, ", table.columns.size(), " are wanted"));
    }
    for (size_t c = 0; c < cells.size(); ++c) {
      double value;
      if (!absl::SimpleAtod(cells[c], &value) || !std::isfinite(value)) {
        return absl::InvalidArgumentError(absl::StrCat("line ", line_number, ", column ", table.columns[c], ": \"",
                                                       cells[c], "\" is not a finite number"));
      }
      table.values.push_back(value);
    }
    table.lines.push_back(line_number);
    ++table.num_rows;
  }
  if (table.num_rows == 0) return absl::InvalidArgumentError("the CSV has no rows of numbers");
  return table;
}

}  // namespace chainfleet

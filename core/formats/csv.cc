#include "core/formats/csv.h"

#include <charconv>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

std::string NumberedColumn(size_t column) { return absl::StrCat(column); }

bool IsHeader(const std::vector<std::string>& cells) {
  double ignored;
  for (const std::string& cell : cells) {
    if (!absl::SimpleAtod(cell, &ignored)) return true;
  }
  return false;
}

// The line of the columns' names, "" if they are those that columns without names get.
absl::StatusOr<std::string> Header(const std::vector<std::string>& columns) {
  bool numbered = true;
  for (size_t c = 0; c < columns.size(); ++c) numbered &= columns[c] == NumberedColumn(c);
  if (numbered) return "";
  const std::string line = absl::StrJoin(columns, ",");
  // Asked of the reader's own rules, so that the two cannot part.
  const bool one_line = line.find_first_of("\r\n") == std::string::npos && !absl::StripAsciiWhitespace(line).empty();
  if (one_line && Cells(line) == columns && IsHeader(columns)) return line + "\n";
  return absl::InvalidArgumentError(
      absl::StrCat("no header of a CSV can be read back as these columns, rename them: ", line));
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
      for (size_t c = 0; c < cells.size(); ++c) table.columns.push_back(NumberedColumn(c));
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

absl::StatusOr<std::string> WriteCsv(const CsvTable& table) {
  const size_t columns = table.columns.size(), rows = static_cast<size_t>(table.num_rows);
  if (columns == 0 || table.num_rows <= 0 || table.values.size() != rows * columns) {
    return absl::InvalidArgumentError(absl::StrCat("a CSV has rows of numbers: ", table.values.size(),
                                                   " values are not ", table.num_rows, " rows of ", columns));
  }
  CHAINFLEET_ASSIGN_OR_RETURN(std::string text, Header(table.columns));
  char digits[32];
  for (size_t i = 0; i < table.values.size(); ++i) {
    if (!std::isfinite(table.values[i])) {
      return absl::InvalidArgumentError(absl::StrCat("row ", i / columns, ", column ", table.columns[i % columns], ": ",
                                                     table.values[i], " is not a finite number"));
    }
    const std::to_chars_result end = std::to_chars(digits, digits + sizeof digits, table.values[i]);
    text.append(digits, end.ptr);
    text += (i + 1) % columns == 0 ? '\n' : ',';
  }
  return text;
}

}  // namespace chainfleet

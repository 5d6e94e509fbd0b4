#include "core/formats/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/content_limits.h"
#include "core/base/limits.h"

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

// Returns the header line; "" if the columns have the names that ReadCsv gives to columns without a header.
absl::StatusOr<std::string> Header(const std::vector<std::string>& columns) {
  bool numbered = true;
  for (size_t c = 0; c < columns.size(); ++c) numbered &= columns[c] == NumberedColumn(c);
  if (numbered) return "";
  const std::string line = absl::StrJoin(columns, ",");
  // Uses the reader's own rules, so that reader and writer cannot disagree.
  const bool one_line = line.find_first_of("\r\n") == std::string::npos && !absl::StripAsciiWhitespace(line).empty();
  if (one_line && Cells(line) == columns && IsHeader(columns)) return line + "\n";
  return absl::InvalidArgumentError(
      absl::StrCat("no header of a CSV can be read back as these columns, rename them: ", line));
}

absl::Status CheckColumns(const std::vector<std::string>& columns) {
  for (size_t c = 0; c < columns.size(); ++c) {
    if (columns[c].size() <= limits::kMaxFileNameBytes) continue;
    return absl::InvalidArgumentError(absl::StrCat("the name of column ", c, " has ", columns[c].size(),
                                                   " bytes, the most is ", limits::kMaxFileNameBytes));
  }
  return absl::OkStatus();
}

absl::Status AddLine(std::string_view line, int64_t line_number, CsvTable* table) {
  constexpr int64_t kMaxCells = limits::kMaxChannels + 1;
  if (const int64_t count = std::count(line.begin(), line.end(), ',') + 1; count > kMaxCells) {
    return absl::InvalidArgumentError(
        absl::StrCat("line ", line_number, " has ", count, " cells, the most is ", kMaxCells));
  }
  const std::string text(line);
  if (absl::StripAsciiWhitespace(text).empty()) return absl::OkStatus();
  std::vector<std::string> cells = Cells(text);
  if (table->columns.empty()) {
    if (IsHeader(cells)) {
      table->columns = std::move(cells);
      return CheckColumns(table->columns);
    }
    for (size_t c = 0; c < cells.size(); ++c) table->columns.push_back(NumberedColumn(c));
  }
  if (cells.size() != table->columns.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("line ", line_number, " has ", cells.size(), " cells, expected ", table->columns.size()));
  }
  for (size_t c = 0; c < cells.size(); ++c) {
    double value;
    if (!absl::SimpleAtod(cells[c], &value) || !std::isfinite(value)) {
      constexpr size_t kShown = 64;
      return absl::InvalidArgumentError(absl::StrCat("line ", line_number, ", column ", table->columns[c], ": \"",
                                                     cells[c].substr(0, kShown), "\" is not a finite number"));
    }
    table->values.push_back(value);
  }
  table->lines.push_back(line_number);
  ++table->num_rows;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CsvTable> ReadCsv(const std::string& text, const AdmitBytes& admit) {
  CsvTable table;
  const int64_t lines = std::count(text.begin(), text.end(), '\n') + 1;
  const int64_t cells_at_most = std::count(text.begin(), text.end(), ',') + lines;
  CHAINFLEET_RETURN_IF_ERROR(admit((cells_at_most + lines) * static_cast<int64_t>(sizeof(double))));
  table.values.reserve(static_cast<size_t>(cells_at_most));
  table.lines.reserve(static_cast<size_t>(lines));
  int64_t line_number = 0;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    CHAINFLEET_RETURN_IF_ERROR(AddLine(line, ++line_number, &table));
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

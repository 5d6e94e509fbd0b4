// Numeric CSV: an optional header line, then rows of numbers, as regression data comes.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/formats/admit_bytes.h"

namespace chainfleet {

struct CsvTable {
  std::vector<std::string> columns;  // from the header, else "0", "1", ...
  int64_t num_rows = 0;
  std::vector<double> values;  // [num_rows, columns], row-major, all finite
  std::vector<int64_t> lines;  // of the text, from 1, that each row was
};

// A first line with any cell that is no number is the header. INVALID_ARGUMENT names line and column of a cell that is
// text, empty, NaN or infinite, the line of a row of another length or with more cells than limits::kMaxChannels + 1,
// and a column whose name is longer than limits::kMaxFileNameBytes. Errors of `admit`.
absl::StatusOr<CsvTable> ReadCsv(const std::string& text, const AdmitBytes& admit = AdmitAll);

// The text to which ReadCsv gives back columns and values, each value in the fewest digits that are read as the same
// double; `lines` is not looked at. Columns called "0", "1", ... get no header. INVALID_ARGUMENT for no rows, a value
// that is NaN or infinite, values that do not fill the rows, or columns that no header tells: a name with a comma, a
// line break or white space around it (nothing is quoted, for ReadCsv knows no quotes), or nothing but numbers.
absl::StatusOr<std::string> WriteCsv(const CsvTable& table);

}  // namespace chainfleet

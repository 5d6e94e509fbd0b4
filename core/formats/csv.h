// Numeric CSV for regression data: an optional header line, then rows of numbers.
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
  std::vector<int64_t> lines;  // line number of each row in the text, from 1
};

// A first line with any cell that is no number is the header. INVALID_ARGUMENT names line and column of a cell that is
// text, empty, NaN or infinite; the line of a row of another length or with more than limits::kMaxChannels + 1 cells;
// and a column whose name is longer than limits::kMaxFileNameBytes. Returns errors of `admit`.
absl::StatusOr<CsvTable> ReadCsv(const std::string& text, const AdmitBytes& admit = AdmitAll);

// Returns text that ReadCsv reads back as the same columns and values, each value in the fewest digits that restore the
// same double. Ignores `lines`. Columns called "0", "1", ... get no header. INVALID_ARGUMENT for no rows, a NaN or
// infinite value, values that do not fill the rows, or columns that a header cannot hold: a name with a comma, a line
// break or outer white space (ReadCsv knows no quotes), or only numbers.
absl::StatusOr<std::string> WriteCsv(const CsvTable& table);

}  // namespace chainfleet

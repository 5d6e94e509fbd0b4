// Writes arrays of rows as CSV.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/formats/array.h"

namespace chainfleet {

// Appends a number as short as reads it back exactly; nothing for NaN.
void AppendNumber(double value, std::string* text);

// A header and `num_rows` lines; the first column counts the rows from 0. An array [n] is the column of its name, an
// array [n, K] the columns NAME_0 to NAME_{K-1}, or with its `column_names` in place of the numbers. Numbers are as
// short as reads them back exactly; NaN is empty. REQUIRES: float64 arrays of these shapes.
std::string CsvOf(const std::map<std::string, Array>& arrays, int64_t num_rows,
                  const std::map<std::string, std::vector<std::string>>& column_names = {});

}  // namespace chainfleet

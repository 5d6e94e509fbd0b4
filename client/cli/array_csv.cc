#include "client/cli/array_csv.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/check.h"

namespace chainfleet {
namespace {

// A cell of the header, quoted if it must be.
std::string Quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  return absl::StrCat("\"", absl::StrReplaceAll(cell, {{"\"", "\"\""}}), "\"");
}

int64_t Columns(const Array& array) { return array.shape.size() == 1 ? 1 : array.shape[1]; }

}  // namespace

void AppendNumber(double value, std::string* text) {
  if (std::isnan(value)) return;
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  text->append(digits.data(), end);
}

std::string CsvOf(const std::map<std::string, Array>& arrays, int64_t num_rows,
                  const std::map<std::string, std::vector<std::string>>& column_names) {
  std::string text = "row";
  for (const auto& [name, array] : arrays) {
    CHAINFLEET_CHECK(array.type == ArrayType::kFloat64 && array.shape.size() <= 2 && array.shape.at(0) == num_rows);
    if (array.shape.size() == 1) absl::StrAppend(&text, ",", name);
    const auto names = column_names.find(name);
    for (int64_t k = 0; array.shape.size() == 2 && k < array.shape[1]; ++k) {
      const std::string column =
          names == column_names.end() ? absl::StrCat(k) : names->second.at(static_cast<size_t>(k));
      absl::StrAppend(&text, ",", Quoted(absl::StrCat(name, "_", column)));
    }
  }
  for (int64_t row = 0; row < num_rows; ++row) {
    absl::StrAppend(&text, "\n", row);
    for (const auto& [name, array] : arrays) {
      const int64_t columns = Columns(array);
      for (int64_t k = 0; k < columns; ++k) {
        double value = 0;
        std::memcpy(&value, array.bytes.data() + (row * columns + k) * static_cast<int64_t>(sizeof(value)),
                    sizeof(value));
        text += ',';
        AppendNumber(value, &text);
      }
    }
  }
  return text + "\n";
}

}  // namespace chainfleet

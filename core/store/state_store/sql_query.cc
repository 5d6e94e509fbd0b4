#include "core/store/state_store/sql_query.h"

#include "absl/strings/str_join.h"

namespace chainfleet::sql {

std::string Listed(const std::vector<std::string>& columns, const std::string& table) {
  return absl::StrJoin(columns, ", ",
                       [&](std::string* out, const std::string& column) { absl::StrAppend(out, table, column); });
}

std::string InsertStatement(const std::string& table, const std::vector<std::string>& columns, size_t num_key) {
  const std::vector<std::string> parameters(columns.size(), "?");
  std::string sql = absl::StrCat("INSERT INTO ", table, " (", Listed(columns), ") VALUES (", Listed(parameters), ")");
  if (num_key == 0) return sql;
  const auto key_end = columns.begin() + static_cast<std::ptrdiff_t>(num_key);
  std::vector<std::string> replaced;
  for (auto column = key_end; column != columns.end(); ++column) {
    replaced.push_back(absl::StrCat(*column, " = excluded.", *column));
  }
  absl::StrAppend(&sql, " ON CONFLICT (", Listed({columns.begin(), key_end}), ") DO UPDATE SET ", Listed(replaced));
  return sql;
}

void ColumnReader::ReadStatus(absl::Status* value) {
  const auto code = static_cast<absl::StatusCode>(statement_.Int(column_));
  const std::string reason = statement_.Text(column_ + 1);
  *value = absl::Status(code, statement_.Text(column_ + 2));
  if (!reason.empty()) *value = WithReason(*value, reason);
  column_ += 3;
}

}  // namespace chainfleet::sql

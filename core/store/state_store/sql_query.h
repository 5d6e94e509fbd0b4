// Reads rows into structs and binds values by type. The columns of a struct follow from its fields
// (core/domain/fields.h):
//   number, bool, enum     an integer column
//   std::string            a text column; NULL reads as ""
//   absl::Time NAME        NAME_ns, nanoseconds since 1970
//   absl::Status NAME      NAME_code, NAME_reason and NAME
//   std::optional          NULL, in the first of its columns, without a value
//   a record               a text column (record_json.h)
//   another struct         its own columns, without a prefix
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/domain/fields.h"
#include "core/store/state_store/record_json.h"
#include "core/store/state_store/sql_connection.h"

namespace chainfleet::sql {

// A value for a column of bytes.
struct Bytes {
  const std::string& bytes;
};

// NULL instead of an empty text.
inline std::optional<std::string> IfAny(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

// Lists the columns of the visited fields.
class ColumnNames {
 public:
  template <typename T>
  void operator()(const std::string& name, const T& value, const Bounds& = {}) {
    if constexpr (HasFields<T> && !IsRecord<T>) {
      T::Fields(value, *this);
    } else if constexpr (std::same_as<T, absl::Time> || std::same_as<T, std::optional<absl::Time>>) {
      names_.push_back(name + "_ns");
    } else if constexpr (std::same_as<T, absl::Status>) {
      names_.insert(names_.end(), {name + "_code", name + "_reason", name});
    } else {
      names_.push_back(name);
    }
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
};

template <typename Row>
const std::vector<std::string>& ColumnsOf() {
  static const std::vector<std::string> kNames = [] {
    ColumnNames columns;
    columns("", Row());
    return columns.names();
  }();
  return kNames;
}

// "a.job, a.number": the columns, after the name of their table with its dot.
std::string Listed(const std::vector<std::string>& columns, const std::string& table = "");

// "SELECT job, number FROM snapshots WHERE ...".
template <typename Row>
std::string Select(const std::string& from) {
  return absl::StrCat("SELECT ", Listed(ColumnsOf<Row>()), " FROM ", from);
}

// Inserts a whole row. A row with the same key, its first `num_key` columns, is replaced; 0: that is an error.
std::string InsertStatement(const std::string& table, const std::vector<std::string>& columns, size_t num_key);
template <typename Row>
std::string Insert(const std::string& table, size_t num_key = 0) {
  return InsertStatement(table, ColumnsOf<Row>(), num_key);
}

// Reads the visited fields from consecutive columns of the row that Step found.
class ColumnReader {
 public:
  explicit ColumnReader(const SqlStatement& statement) : statement_(statement) {}

  template <typename T>
  void Read(T* value) {
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      *value = static_cast<T>(statement_.Int(column_++));
    } else if constexpr (std::same_as<T, std::string>) {
      *value = statement_.Text(column_++);
    } else if constexpr (std::same_as<T, absl::Time>) {
      *value = absl::FromUnixNanos(statement_.Int(column_++));
    } else if constexpr (std::same_as<T, absl::Status>) {
      ReadStatus(value);
    } else if constexpr (IsRecord<T>) {
      absl::StatusOr<T> record = DecodeRecord<T>(statement_.Text(column_++));
      if (record.ok()) *value = *std::move(record);
      if (!record.ok() && status_.ok()) status_ = record.status();
    } else {
      T::Fields(*value, *this);
    }
  }
  template <typename T>
  void Read(std::shared_ptr<const T>* value) {
    auto read = std::make_shared<T>();
    Read(read.get());
    *value = std::move(read);
  }
  template <typename T>
  void Read(std::optional<T>* value) {
    if (!statement_.IsNull(column_)) return Read(&value->emplace());
    if constexpr (HasFields<T> && !IsRecord<T>) {
      column_ += static_cast<int>(ColumnsOf<T>().size());
    } else {
      ++column_;
    }
  }
  template <typename T>
  void operator()(const char*, T& value, const Bounds& = {}) {
    Read(&value);
  }
  const absl::Status& status() const { return status_; }

 private:
  void ReadStatus(absl::Status* value);

  const SqlStatement& statement_;
  int column_ = 0;
  absl::Status status_;
};

// Binds the columns of `value`, in the order of its fields.
template <typename T>
void BindValue(const T& value, SqlStatement* statement) {
  if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    statement->Bind(static_cast<int64_t>(value));
  } else if constexpr (std::convertible_to<T, std::string>) {
    statement->Bind(value);
  } else if constexpr (std::same_as<T, Bytes>) {
    statement->BindBytes(value.bytes);
  } else if constexpr (std::same_as<T, absl::Time>) {
    statement->Bind(absl::ToUnixNanos(value));
  } else if constexpr (std::same_as<T, absl::Status>) {
    statement->Bind(static_cast<int64_t>(value.code())).Bind(ReasonOf(value)).Bind(std::string(value.message()));
  } else if constexpr (IsRecord<T>) {
    statement->Bind(EncodeRecord(value));
  } else {
    T::Fields(value, [&](const char*, const auto& field, const Bounds& = {}) { BindValue(field, statement); });
  }
}
template <typename T>
void BindValue(const std::optional<T>& value, SqlStatement* statement) {
  if (value) return BindValue(*value, statement);
  statement->BindNull();
}

template <typename... Values>
absl::StatusOr<SqlStatement> Bound(SqlConnection* connection, const std::string& sql, const Values&... values) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement statement, connection->Prepare(sql));
  (BindValue(values, &statement), ...);
  return statement;
}

// Runs a statement that returns no rows.
template <typename... Values>
absl::Status Run(SqlConnection* connection, const std::string& sql, const Values&... values) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement statement, Bound(connection, sql, values...));
  return statement.Run();
}
// As Run; SqlStatement::RunLater says when it runs.
template <typename... Values>
absl::Status RunLater(SqlConnection* connection, const std::string& sql, const Values&... values) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement statement, Bound(connection, sql, values...));
  return statement.RunLater();
}

// The next row, if any, as a struct or as the value of its only column.
template <typename Row>
absl::StatusOr<std::optional<Row>> Next(SqlStatement* statement) {
  CHAINFLEET_ASSIGN_OR_RETURN(const bool found, statement->Step());
  if (!found) return std::optional<Row>();
  ColumnReader reader(*statement);
  std::optional<Row> row(std::in_place);
  reader.Read(&*row);
  CHAINFLEET_RETURN_IF_ERROR(reader.status());
  return row;
}

// The first row.
template <typename Row, typename... Values>
absl::StatusOr<std::optional<Row>> First(SqlConnection* connection, const std::string& sql, const Values&... values) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement statement, Bound(connection, sql, values...));
  return Next<Row>(&statement);
}

// The integer of a query that has one row.
template <typename... Values>
absl::StatusOr<int64_t> Number(SqlConnection* connection, const std::string& sql, const Values&... values) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::optional<int64_t> number, First<int64_t>(connection, sql, values...));
  return number.value_or(0);
}

template <typename... Values>
absl::StatusOr<bool> Exists(SqlConnection* connection, const std::string& sql, const Values&... values) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement statement, Bound(connection, sql, values...));
  return statement.Step();
}

template <typename Row, typename... Values>
absl::StatusOr<std::vector<Row>> All(SqlConnection* connection, const std::string& sql, const Values&... values) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement statement, Bound(connection, sql, values...));
  std::vector<Row> rows;
  for (;;) {
    CHAINFLEET_ASSIGN_OR_RETURN(std::optional<Row> row, Next<Row>(&statement));
    if (!row) return rows;
    rows.push_back(*std::move(row));
  }
}

}  // namespace chainfleet::sql

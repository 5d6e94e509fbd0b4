// What the rows of a StateStore need of an SQL database: prepared statements and transactions. One dialect serves both
// implementations: `?` and `?N` for parameters, ON CONFLICT, RETURNING, row values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/base/status.h"

namespace chainfleet {

// A statement being bound and stepped through, as one database does it.
class SqlCursor {
 public:
  virtual ~SqlCursor() = default;
  virtual void BindNull() = 0;
  virtual void BindInt(int64_t value) = 0;
  virtual void BindText(const std::string& text) = 0;
  virtual void BindBytes(const std::string& bytes) = 0;
  virtual absl::StatusOr<bool> Step() = 0;
  virtual absl::Status RunLater() { return Step().status(); }
  virtual bool IsNull(int column) const = 0;
  virtual int64_t Int(int column) const = 0;
  virtual std::string Text(int column) const = 0;
};

// A prepared statement in use. Parameters are bound in order; a `?N` that occurs twice is bound once.
class SqlStatement {
 public:
  explicit SqlStatement(std::unique_ptr<SqlCursor> cursor) : cursor_(std::move(cursor)) {}

  SqlStatement& Bind(int64_t value) { return cursor_->BindInt(value), *this; }
  SqlStatement& Bind(const std::string& text) { return cursor_->BindText(text), *this; }
  SqlStatement& BindBytes(const std::string& bytes) { return cursor_->BindBytes(bytes), *this; }
  template <typename T>
  SqlStatement& Bind(const std::optional<T>& value) {
    if (value) return Bind(*value);
    return cursor_->BindNull(), *this;
  }

  // True: a row is there.
  absl::StatusOr<bool> Step() { return cursor_->Step(); }
  // For statements without rows.
  absl::Status Run() { return Step().status(); }
  // The same, at the latest when another one runs or the transaction commits, which then may have this one's error. For
  // a database to which each statement is a trip over the network.
  absl::Status RunLater() { return cursor_->RunLater(); }

  // Of the row that Step found; columns from 0.
  bool IsNull(int column) const { return cursor_->IsNull(column); }
  int64_t Int(int column) const { return cursor_->Int(column); }
  std::string Text(int column) const { return cursor_->Text(column); }  // bytes, too

 private:
  std::unique_ptr<SqlCursor> cursor_;
};

// Not thread-safe. Errors name the database and its own words: RESOURCE_EXHAUSTED / DISK_FULL, DATA_LOSS (damaged),
// else INTERNAL.
class SqlConnection {
 public:
  virtual ~SqlConnection() = default;

  // `sql` must be a literal: statements are cached by its address.
  virtual absl::StatusOr<SqlStatement> Prepare(const char* sql) = 0;
  // One or more statements without parameters and rows.
  virtual absl::Status Execute(const std::string& sql) = 0;
  // Rows the last statement changed.
  virtual int64_t changes() const = 0;

  // A transaction that writes, or one whose reads all see one state.
  virtual absl::Status BeginWrite() = 0;
  virtual absl::Status BeginRead() = 0;
  virtual absl::Status Commit() = 0;
  // Ends the open transaction, if the database has not done so itself.
  virtual void Rollback() = 0;
};

}  // namespace chainfleet

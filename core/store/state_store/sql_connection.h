// The interface of an SQL database for the rows of a StateStore: prepared statements and transactions. One dialect
// serves both implementations: `?` and `?N` for parameters, ON CONFLICT, RETURNING, row values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/base/status.h"

namespace chainfleet {

// A statement that is being bound and stepped, implemented for each database.
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
  SqlStatement& BindNull() { return cursor_->BindNull(), *this; }

  // True if there is a row.
  absl::StatusOr<bool> Step() { return cursor_->Step(); }
  // For statements that return no rows.
  absl::Status Run() { return Step().status(); }
  // As Run, but may be deferred until the next statement or the commit, which then may return this one's error. Saves
  // network round trips.
  absl::Status RunLater() { return cursor_->RunLater(); }

  // Columns (from 0) of the row that Step found.
  bool IsNull(int column) const { return cursor_->IsNull(column); }
  int64_t Int(int column) const { return cursor_->Int(column); }
  std::string Text(int column) const { return cursor_->Text(column); }  // also for bytes

 private:
  std::unique_ptr<SqlCursor> cursor_;
};

// Not thread-safe. Errors name the database and have its message: RESOURCE_EXHAUSTED / DISK_FULL, DATA_LOSS (damaged),
// else INTERNAL.
class SqlConnection {
 public:
  virtual ~SqlConnection() = default;

  // Statements are cached by their text, so it must hold no values.
  virtual absl::StatusOr<SqlStatement> Prepare(const std::string& sql) = 0;
  // Runs one or more statements without parameters or result rows.
  virtual absl::Status Execute(const std::string& sql) = 0;
  // Number of rows that the last statement changed.
  virtual int64_t changes() const = 0;

  // BeginWrite starts a transaction that writes. BeginRead starts one whose reads all see the same state.
  virtual absl::Status BeginWrite() = 0;
  virtual absl::Status BeginRead() = 0;
  virtual absl::Status Commit() = 0;
  // Ends the open transaction, unless the database has done so itself.
  virtual void Rollback() = 0;
};

}  // namespace chainfleet

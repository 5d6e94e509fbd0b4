#include "core/store/state_store/state_copy.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/file_system.h"
#include "core/store/state_store/postgres_connection.h"
#include "core/store/state_store/postgres_leader.h"
#include "core/store/state_store/postgres_schema.h"
#include "core/store/state_store/sql_query.h"
#include "core/store/state_store/sql_rows.h"
#include "core/store/state_store/sqlite_connection.h"
#include "core/store/state_store/sqlite_schema.h"

namespace chainfleet {
namespace {

// The copy's objects are not where a server would look, so a server refuses to open it by accident.
const ObjectHome kInBackup{.id = "backup", .address = "the folder of a backup"};

struct Column {
  std::string name, type;
  int64_t key = 0;  // position in the primary key, from 1; 0: not in it
  static void Fields(auto& self, auto&& visit) {
    visit("name", self.name);
    visit("type", self.type);
    visit("pk", self.key);
  }
};

struct TableOfRows {
  std::string name;
  std::vector<Column> columns;
  std::vector<size_t> key;  // indices of the columns that order the rows

  std::vector<size_t> all() const {
    std::vector<size_t> indices(columns.size());
    std::iota(indices.begin(), indices.end(), size_t{0});
    return indices;
  }
  // Rows of one read. PostgreSQL ends a statement after a few seconds, and a record or a value of bytes may have
  // megabytes.
  int page() const {
    const auto is_large = [](const Column& column) {
      return column.type == "BLOB" || column.name == "record" || column.name == "body" || column.name == "plan";
    };
    return std::ranges::any_of(columns, is_large) ? 16 : 1000;
  }
  std::string Names(const std::vector<size_t>& which) const {
    return absl::StrJoin(which, ", ",
                         [&](std::string* out, size_t column) { absl::StrAppend(out, columns[column].name); });
  }
  // True if the database numbers the rows, in the first column of the key.
  bool is_numbered() const { return key.size() == 1 && columns[key[0]].type == "INTEGER" && columns[key[0]].key == 1; }
};

// The tables of a copy are those of both engines; `store` differs.
absl::StatusOr<std::vector<TableOfRows>> ListTables(SqlConnection* copy) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      const std::vector<std::string> names,
      sql::All<std::string>(copy,
                            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'store' AND "
                            "name NOT LIKE 'sqlite%' ORDER BY name"));
  std::vector<TableOfRows> tables;
  for (const std::string& name : names) {
    TableOfRows table{.name = name};
    CHAINFLEET_ASSIGN_OR_RETURN(
        table.columns, sql::All<Column>(copy, "SELECT name, type, pk FROM pragma_table_info(?) ORDER BY pk", name));
    for (size_t i = 0; i < table.columns.size(); ++i) {
      if (table.columns[i].key > 0) table.key.push_back(i);
    }
    if (table.key.empty()) table.key.push_back(0);
    tables.push_back(std::move(table));
  }
  return tables;
}

std::string Marks(const std::vector<size_t>& columns) {
  return absl::StrJoin(std::vector<const char*>(columns.size(), "?"), ", ");
}

// A value of any column, as text; nullopt: NULL.
using Row = std::vector<std::optional<std::string>>;

Row ReadRow(const SqlStatement& statement, size_t num_columns) {
  Row row(num_columns);
  for (size_t i = 0; i < num_columns; ++i) {
    const int column = static_cast<int>(i);
    if (!statement.IsNull(column)) row[i] = statement.Text(column);
  }
  return row;
}

absl::Status BindColumn(const Column& column, const std::optional<std::string>& value, SqlStatement* statement) {
  int64_t number = 0;
  if (!value) {
    statement->BindNull();
  } else if (column.type == "BLOB") {
    statement->BindBytes(*value);
  } else if (column.type == "TEXT") {
    statement->Bind(*value);
  } else if (absl::SimpleAtoi(*value, &number)) {
    statement->Bind(number);
  } else {
    return absl::InternalError(absl::StrCat("column ", column.name, " has no number: ", *value));
  }
  return absl::OkStatus();
}

// Reads in pages by key, because PostgreSQL fetches all rows of a statement at once.
absl::StatusOr<std::vector<Row>> ReadPage(const TableOfRows& table, const Row* after, SqlConnection* from) {
  const std::string key = table.Names(table.key);
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement page,
      from->Prepare(absl::StrCat("SELECT ", table.Names(table.all()), " FROM ", table.name,
                                 after == nullptr ? "" : absl::StrCat(" WHERE (", key, ") > (", Marks(table.key), ")"),
                                 " ORDER BY ", key, " LIMIT ", table.page())));
  if (after != nullptr) {
    for (const size_t i : table.key) CHAINFLEET_RETURN_IF_ERROR(BindColumn(table.columns[i], (*after)[i], &page));
  }
  std::vector<Row> rows;
  for (;;) {
    CHAINFLEET_ASSIGN_OR_RETURN(const bool found, page.Step());
    if (!found) return rows;
    rows.push_back(ReadRow(page, table.columns.size()));
  }
}

absl::Status CopyTable(const TableOfRows& table, const std::string& overriding, SqlConnection* from,
                       SqlConnection* to) {
  const std::string insert = absl::StrCat("INSERT INTO ", table.name, " (", table.Names(table.all()), ") ",
                                          table.is_numbered() ? overriding : "", "VALUES (", Marks(table.all()), ")");
  Row last;
  for (;;) {
    CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<Row> rows, ReadPage(table, last.empty() ? nullptr : &last, from));
    for (const Row& row : rows) {
      CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement statement, to->Prepare(insert));
      for (size_t i = 0; i < row.size(); ++i) {
        CHAINFLEET_RETURN_IF_ERROR(BindColumn(table.columns[i], row[i], &statement));
      }
      CHAINFLEET_RETURN_IF_ERROR(statement.RunLater());
    }
    if (static_cast<int>(rows.size()) < table.page()) return absl::OkStatus();
    last = rows.back();
  }
}

// The database must number later rows from here on.
absl::Status SetNumbering(const TableOfRows& table, SqlConnection* postgres) {
  const std::string& column = table.columns[table.key[0]].name;
  return postgres->Execute(absl::StrCat("SELECT setval(pg_get_serial_sequence('", table.name, "', '", column,
                                        "'), (SELECT COALESCE(MAX(", column, "), 0) + 1 FROM ", table.name,
                                        "), false)"));
}

bool IsPostgresUri(const std::string& store) { return absl::StartsWith(store, "postgres"); }

absl::StatusOr<std::unique_ptr<SqlConnection>> OpenToRead(const std::string& store,
                                                          const std::shared_ptr<DatabasePassword>& password) {
  if (IsPostgresUri(store)) return PostgresConnection::Open(store, "chainfleet-backup", password);
  CHAINFLEET_ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> file, SqliteConnection::Open(store));
  CHAINFLEET_RETURN_IF_ERROR(file->Execute("PRAGMA query_only = 1"));
  return std::unique_ptr<SqlConnection>(std::move(file));
}

absl::Status CopyRows(const std::string& generation_sql, SqlConnection* from, SqliteConnection* copy) {
  CHAINFLEET_ASSIGN_OR_RETURN(const int64_t generation, sql::Number(from, generation_sql));
  CHAINFLEET_ASSIGN_OR_RETURN(const auto incarnation, sql::First<std::string>(from, "SELECT incarnation FROM store"));
  CHAINFLEET_RETURN_IF_ERROR(
      sql::Run(copy, "UPDATE store SET incarnation = ?, generation = ?", incarnation.value_or(""), generation));
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<TableOfRows> tables, ListTables(copy));
  for (const TableOfRows& table : tables) CHAINFLEET_RETURN_IF_ERROR(CopyTable(table, "", from, copy));
  return absl::OkStatus();
}

absl::Status CheckHasNoLeader(SqlConnection* database) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      const bool led,
      sql::Exists(database, "SELECT 1 FROM leader WHERE renewed_at >= clock_timestamp() - ? * INTERVAL '1 millisecond'",
                  absl::ToInt64Milliseconds(kLeaderTerm)));
  if (!led) return absl::OkStatus();
  return absl::FailedPreconditionError("a coordinator leads on the database: stop all servers on it and restore again");
}

absl::Status CheckHasNoContent(SqlConnection* store) {
  for (const char* table : {"jobs", "datasets", "models"}) {
    CHAINFLEET_ASSIGN_OR_RETURN(const bool any, sql::Exists(store, absl::StrCat("SELECT 1 FROM ", table, " LIMIT 1")));
    if (!any) continue;
    return WithReason(absl::FailedPreconditionError(absl::StrCat("the store is not empty, it has ", table,
                                                                 ": restore into the store of a new server")),
                      "NOT_EMPTY");
  }
  return absl::OkStatus();
}

// As CheckHasNoContent, but ALREADY_EXISTS if the content is that of a copy. The first server that opens the database
// replaces the place of its objects.
absl::Status CheckMayBeFilled(SqlConnection* database) {
  const absl::Status empty = CheckHasNoContent(database);
  if (ReasonOf(empty) != "NOT_EMPTY") return empty;
  CHAINFLEET_ASSIGN_OR_RETURN(const auto home, sql::First<ObjectHome>(database, sql::Select<ObjectHome>("store")));
  if (!home || home->id != kInBackup.id) return empty;
  return WithReason(absl::AlreadyExistsError("the store is not empty, it has a backup that no server has opened: start "
                                             "the server once with --restored --objects-moved, or restore into the "
                                             "store of a new server"),
                    "NOT_EMPTY");
}

// In one transaction of `database`.
absl::Status Fill(SqliteConnection* copy, PostgresConnection* database) {
  CHAINFLEET_ASSIGN_OR_RETURN(const int64_t version, LockPostgresSchema(database));
  CHAINFLEET_RETURN_IF_ERROR(MigratePostgresSchema(version, "new", database));
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<TableOfRows> tables, ListTables(copy));
  CHAINFLEET_RETURN_IF_ERROR(CheckHasNoLeader(database));
  CHAINFLEET_RETURN_IF_ERROR(CheckMayBeFilled(database));
  for (const TableOfRows& table : tables) {
    CHAINFLEET_RETURN_IF_ERROR(database->Execute(absl::StrCat("DELETE FROM ", table.name)));  // as tokens
    CHAINFLEET_RETURN_IF_ERROR(CopyTable(table, "OVERRIDING SYSTEM VALUE ", copy, database));
    if (table.is_numbered()) CHAINFLEET_RETURN_IF_ERROR(SetNumbering(table, database));
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const auto incarnation, sql::First<std::string>(copy, "SELECT incarnation FROM store"));
  CHAINFLEET_ASSIGN_OR_RETURN(const int64_t generation, sql::Number(copy, "SELECT generation FROM store"));
  CHAINFLEET_RETURN_IF_ERROR(sql::Run(database, "UPDATE store SET incarnation = ?", incarnation.value_or("")));
  ObjectHome home = kInBackup;
  home.moved = true;  // whatever home the database had
  CHAINFLEET_RETURN_IF_ERROR(SqlRows(database).KeepHome(home));
  return sql::Run(database, "UPDATE leader SET generation = ?", generation);
}

}  // namespace

absl::Status CopyState(const std::string& store, const std::string& path,
                       const std::shared_ptr<DatabasePassword>& password) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::unique_ptr<SqlConnection> from, OpenToRead(store, password));
  CHAINFLEET_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteConnection> copy, SqliteConnection::Open(path));
  CHAINFLEET_RETURN_IF_ERROR(copy->Execute("PRAGMA synchronous = OFF"));  // a copy that a crash ends is made again
  CHAINFLEET_RETURN_IF_ERROR(PrepareSqliteSchema("new", Opening::kUsual, kInBackup, copy.get()));
  CHAINFLEET_RETURN_IF_ERROR(copy->BeginWrite());
  CHAINFLEET_RETURN_IF_ERROR(from->BeginRead());
  absl::Status status = CopyRows(absl::StrCat("SELECT generation FROM ", IsPostgresUri(store) ? "leader" : "store"),
                                 from.get(), copy.get());
  from->Rollback();
  if (status.ok()) status = copy->Commit();
  return status;
}

absl::Status MigrateCopy(const std::string& from, const std::string& to) {
  FileSystem* const disk = RealFileSystem();
  // A log that a former process left must not be applied to this copy.
  for (const char* log : {"-wal", "-shm", "-journal"}) disk->Remove(to + log).IgnoreError();
  CHAINFLEET_ASSIGN_OR_RETURN(const int64_t size, disk->SizeBytes(from));
  CHAINFLEET_RETURN_IF_ERROR(disk->WriteSynced(to, ByteSource::InFile(from, size)));
  CHAINFLEET_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteConnection> copy, SqliteConnection::Open(to));
  return PrepareSqliteSchema("new", Opening::kUsual, kInBackup, copy.get());
}

absl::Status CheckHoldsNothing(const std::string& store, const std::shared_ptr<DatabasePassword>& password) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::unique_ptr<SqlConnection> connection, OpenToRead(store, password));
  return CheckHasNoContent(connection.get());
}

absl::Status VisitObjects(const std::string& path, const std::function<absl::Status(const BlobRef&)>& visit) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteConnection> copy, SqliteConnection::Open(path));
  SqlRows rows(copy.get());
  std::map<std::string, BlobRef> contents;  // several data sets or models may have one object
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<Dataset> datasets, rows.ListDatasets());
  for (const Dataset& dataset : datasets) {
    for (const DatasetShard& shard : dataset.shards) contents.emplace(shard.object.name, shard.object);
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<StoredModel> models, rows.ListModels());
  for (const StoredModel& model : models) contents.emplace(model.object.name, model.object);
  for (const auto& [name, object] : contents) CHAINFLEET_RETURN_IF_ERROR(visit(object));
  // Predictions may still read the objects of tombstones, so these are referenced too.
  CHAINFLEET_ASSIGN_OR_RETURN(
      const std::vector<std::string> jobs,
      sql::All<std::string>(copy.get(), "SELECT id FROM jobs WHERE purged = 0 ORDER BY sequence"));
  for (const std::string& job : jobs) {
    const auto visit_segment = [&](const SegmentRecord& record) -> absl::StatusOr<bool> {
      const BlobRef& object = record.segment.object;
      if (record.corrupt) return true;
      if (record.deleted) {
        CHAINFLEET_ASSIGN_OR_RETURN(
            const bool expired,
            sql::Exists(copy.get(), "SELECT 1 FROM expired WHERE job = ? AND chain = ? AND object = ?", record.chain,
                        object.name));
        if (!expired) return true;
      }
      CHAINFLEET_RETURN_IF_ERROR(visit(object));
      return true;
    };
    CHAINFLEET_RETURN_IF_ERROR(VisitSegments(&rows, {.job = job}, visit_segment));
    CHAINFLEET_ASSIGN_OR_RETURN(
        const std::vector<BlobRef> points,
        sql::All<BlobRef>(copy.get(), "SELECT object FROM resume_points WHERE job = ? AND object IS NOT NULL", job));
    for (const BlobRef& point : points) CHAINFLEET_RETURN_IF_ERROR(visit(point));
  }
  return absl::OkStatus();
}

absl::Status FillPostgres(const std::string& path, const std::string& uri,
                          const std::shared_ptr<DatabasePassword>& password) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteConnection> copy, SqliteConnection::Open(path));
  CHAINFLEET_ASSIGN_OR_RETURN(const std::unique_ptr<PostgresConnection> database,
                              PostgresConnection::Open(uri, "chainfleet-restore", password));
  CHAINFLEET_RETURN_IF_ERROR(database->BeginWrite());
  absl::Status status = Fill(copy.get(), database.get());
  if (status.ok()) status = database->Commit();
  if (!status.ok()) database->Rollback();
  return status;
}

}  // namespace chainfleet

#include "core/store/state_store/postgres_connection.h"

#include <algorithm>
#include <exception>
#include <initializer_list>
#include <pqxx/pqxx>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/percent.h"
#include "core/store/state_store/postgres_uri.h"

namespace chainfleet {
namespace {

constexpr char kTimeoutMillis[] = "3000";
constexpr size_t kMaxLaterBytes = size_t{1} << 20;

// True if the statement was correct, but the server's state prevented it, so that a retry may succeed. Classes:
// connection, transaction rollback, resources, operator or timeout, system error. 25006: the server is a replica for
// now; 25P03: the transaction was idle for too long.
bool IsPassing(const std::string& sqlstate) {
  return std::ranges::any_of(std::initializer_list<const char*>{"08", "40", "53", "57", "58", "25006", "25P03"},
                             [&](const char* prefix) { return absl::StartsWith(sqlstate, prefix); });
}

absl::Status StatusOf(const std::exception& error) {
  const std::string message = absl::StrCat("PostgreSQL: ", error.what());
  if (dynamic_cast<const pqxx::in_doubt_error*>(&error) != nullptr ||
      dynamic_cast<const pqxx::broken_connection*>(&error) != nullptr) {
    return WithReason(absl::UnavailableError(message), "STORE_UNREACHABLE");
  }
  const auto* sql = dynamic_cast<const pqxx::sql_error*>(&error);
  if (sql != nullptr && sql->sqlstate() == "53100") {
    return WithReason(absl::ResourceExhaustedError(absl::StrCat(message, ": free space on its disk, nothing was lost")),
                      "DISK_FULL");
  }
  const bool passing = dynamic_cast<const pqxx::transaction_rollback*>(&error) != nullptr ||
                       (sql != nullptr && IsPassing(sql->sqlstate()));
  return passing ? WithReason(absl::UnavailableError(message), "STORE_UNREACHABLE") : absl::InternalError(message);
}

// Converts libpqxx's exceptions to a status.
template <typename Call>
absl::Status Caught(Call call) {
  try {
    call();
    return absl::OkStatus();
  } catch (const std::exception& error) {
    return StatusOf(error);
  }
}

// Keepalives end a connection that falls silent while a reply is awaited; no other timeout covers this.
std::string WithSettings(const std::string& uri, const std::string& password) {
  std::vector<std::string> settings = {"connect_timeout=3", absl::StrCat("tcp_user_timeout=", kTimeoutMillis),
                                       "keepalives_idle=1", "keepalives_interval=1", "keepalives_count=2"};
  if (!absl::StartsWith(uri, "postgres://") && !absl::StartsWith(uri, "postgresql://")) {
    return absl::StrCat(absl::StrJoin(settings, " "), " ", uri);
  }
  if (!password.empty()) settings.push_back("password=" + PercentEncoded(password));
  return absl::StrCat(uri, absl::StrContains(uri, '?') ? "&" : "?", absl::StrJoin(settings, "&"));
}

// PostgreSQL uses $1 where SQLite uses ? or ?1.
std::string WithDollars(const std::string& sql) {
  std::string text;
  int count = 0;
  for (const char* c = sql.c_str(); *c != 0; ++c) {
    if (*c != '?') {
      text += *c;
    } else if (c[1] >= '1' && c[1] <= '9') {
      text += '$';
    } else {
      absl::StrAppend(&text, "$", ++count);
    }
  }
  return text;
}

}  // namespace

struct PostgresConnection::Line {
  std::unique_ptr<pqxx::connection> connection;
  std::unique_ptr<pqxx::dbtransaction> transaction;  // null outside one

  pqxx::result Run(const std::string& name, const std::vector<const char*>& parameters) {
    const auto values = pqxx::prepare::make_dynamic_params(parameters);
    if (transaction) return transaction->exec_prepared(name, values);
    pqxx::nontransaction alone(*connection);
    return alone.exec_prepared(name, values);
  }
};

// Binds parameters as text. The first step fetches all rows.
class PostgresCursor final : public SqlCursor {
 public:
  PostgresCursor(PostgresConnection* owner, const std::string& name) : owner_(owner), name_(name) {}

  void BindNull() override { values_.push_back(std::nullopt); }
  void BindInt(int64_t value) override { values_.push_back(std::to_string(value)); }
  void BindText(const std::string& text) override { values_.push_back(text); }
  void BindBytes(const std::string& bytes) override {
    values_.push_back(absl::StrCat("\\x", absl::BytesToHexString(bytes)));
  }

  absl::StatusOr<bool> Step() override {
    if (row_ < 0) {
      CHAINFLEET_RETURN_IF_ERROR(owner_->CatchUp());
      std::vector<const char*> parameters;
      for (const auto& value : values_) parameters.push_back(value ? value->c_str() : nullptr);
      CHAINFLEET_RETURN_IF_ERROR(Caught([&] { result_ = owner_->line_->Run(name_, parameters); }));
      owner_->changes_ = static_cast<int64_t>(result_.affected_rows());
    }
    return ++row_ < static_cast<int>(result_.size());
  }

  // Deferred statements are sent together, in one message.
  absl::Status RunLater() override {
    if (owner_->line_->transaction == nullptr) return Step().status();
    CHAINFLEET_RETURN_IF_ERROR(Caught([&] {
      pqxx::connection& connection = *owner_->line_->connection;
      connection.prepare_now(name_);
      std::string* text = &owner_->later_;
      absl::StrAppend(text, "EXECUTE ", name_, "(");
      for (size_t i = 0; i < values_.size(); ++i) {
        absl::StrAppend(text, i > 0 ? "," : "", values_[i] ? connection.quote(*values_[i]) : "NULL");
      }
      absl::StrAppend(text, ");");
    }));
    return owner_->later_.size() < kMaxLaterBytes ? absl::OkStatus() : owner_->CatchUp();
  }

  bool IsNull(int column) const override { return Field(column).is_null(); }
  int64_t Int(int column) const override { return Field(column).as<int64_t>(); }
  std::string Text(int column) const override {
    constexpr pqxx::oid kBytea = 17;
    const pqxx::field field = Field(column);
    if (field.is_null()) return "";
    return field.type() == kBytea ? pqxx::binarystring(field).str() : std::string(field.c_str(), field.size());
  }

 private:
  pqxx::field Field(int column) const { return result_[row_][column]; }

  PostgresConnection* const owner_;
  const std::string name_;
  std::vector<std::optional<std::string>> values_;
  pqxx::result result_;
  int row_ = -1;
};

PostgresConnection::PostgresConnection(std::string uri, std::string name, std::shared_ptr<DatabasePassword> password)
    : uri_(std::move(uri)), name_(std::move(name)), password_(std::move(password)), line_(std::make_unique<Line>()) {}
PostgresConnection::~PostgresConnection() = default;

absl::StatusOr<std::unique_ptr<PostgresConnection>> PostgresConnection::Open(
    const std::string& uri, const std::string& name, std::shared_ptr<DatabasePassword> password) {
  CHAINFLEET_RETURN_IF_ERROR(CheckPostgresUri(uri));
  std::unique_ptr<PostgresConnection> opened(new PostgresConnection(uri, name, std::move(password)));
  CHAINFLEET_RETURN_IF_ERROR(opened->Connect());
  return opened;
}

absl::Status PostgresConnection::Connect() {
  std::string password, durability;
  if (password_ != nullptr) {
    CHAINFLEET_ASSIGN_OR_RETURN(password, password_->Get());
  }
  const absl::Status connected = Caught([&] {
    line_->connection = std::make_unique<pqxx::connection>(WithSettings(uri_, password));
    for (const char* timeout : {"statement_timeout", "idle_in_transaction_session_timeout", "tcp_user_timeout"}) {
      line_->connection->set_variable(timeout, kTimeoutMillis);
    }
    line_->connection->set_variable("application_name", absl::StrCat("'", name_, "'"));
    durability = line_->connection->get_variable("synchronous_commit");
    for (const auto& [sql, name] : statements_) line_->connection->prepare(name, WithDollars(sql));
  });
  if (!connected.ok() && password_ != nullptr) password_->Distrust();
  CHAINFLEET_RETURN_IF_ERROR(connected);
  if (durability != "off") return absl::OkStatus();
  return absl::FailedPreconditionError(
      "PostgreSQL runs with synchronous_commit=off and may lose what it has committed: set it to on");
}

absl::Status PostgresConnection::CatchUp() {
  if (later_.empty()) return absl::OkStatus();
  return Caught([&] { line_->transaction->exec(std::exchange(later_, {})); });
}

absl::Status PostgresConnection::EnsureLine() {
  const bool broken = line_->connection == nullptr || !line_->connection->is_open();
  return broken && line_->transaction == nullptr ? Connect() : absl::OkStatus();
}

absl::StatusOr<SqlStatement> PostgresConnection::Prepare(const std::string& sql) {
  CHAINFLEET_RETURN_IF_ERROR(EnsureLine());
  auto [entry, fresh] = statements_.try_emplace(sql, absl::StrCat("s", statements_.size()));
  if (fresh) {
    CHAINFLEET_RETURN_IF_ERROR(Caught([&] { line_->connection->prepare(entry->second, WithDollars(sql)); }));
  }
  return SqlStatement(std::make_unique<PostgresCursor>(this, entry->second));
}

absl::Status PostgresConnection::Execute(const std::string& sql) {
  CHAINFLEET_RETURN_IF_ERROR(EnsureLine());
  CHAINFLEET_RETURN_IF_ERROR(CatchUp());
  return Caught([&] {
    if (line_->transaction) {
      line_->transaction->exec(sql);
    } else {
      pqxx::nontransaction(*line_->connection).exec(sql);
    }
  });
}

absl::Status PostgresConnection::BeginWrite() {
  CHAINFLEET_RETURN_IF_ERROR(EnsureLine());
  return Caught([&] { line_->transaction = std::make_unique<pqxx::work>(*line_->connection); });
}

absl::Status PostgresConnection::BeginRead() {
  CHAINFLEET_RETURN_IF_ERROR(EnsureLine());
  using OneState = pqxx::transaction<pqxx::repeatable_read, pqxx::read_only>;
  return Caught([&] { line_->transaction = std::make_unique<OneState>(*line_->connection); });
}

absl::Status PostgresConnection::Commit() {
  absl::Status status = CatchUp();
  if (status.ok()) status = Caught([&] { line_->transaction->commit(); });
  line_->transaction.reset();
  return status;
}

void PostgresConnection::Rollback() {
  later_.clear();
  line_->transaction.reset();
}

int PostgresConnection::backend_pid() const { return line_->connection->backendpid(); }

}  // namespace chainfleet

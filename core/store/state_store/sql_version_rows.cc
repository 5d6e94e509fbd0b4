// The methods of SqlRows for versions, aliases and expired draws.
#include <utility>

#include "core/store/state_store/record_json.h"
#include "core/store/state_store/sql_rows.h"

namespace chainfleet {
namespace {

#define CHAINFLEET_SNAPSHOT_COLUMNS "s.job, s.number, s.draws_of_chain, s.created_ns"
#define CHAINFLEET_ALIAS_COLUMNS "a.tenant, a.name, a.job, a.number"
constexpr int kNumAliasColumns = 4;

// Reads the columns from `column` on.
absl::StatusOr<Snapshot> ReadSnapshot(const SqlStatement& s, int column = 0) {
  Snapshot snapshot{s.Text(column), s.Int(column + 1), {}, absl::FromUnixNanos(s.Int(column + 3))};
  CHAINFLEET_ASSIGN_OR_RETURN(snapshot.draws_of_chain, DecodeCounts(s.Text(column + 2)));
  return snapshot;
}

absl::StatusOr<std::optional<Snapshot>> OneSnapshot(SqlStatement s) {
  CHAINFLEET_ASSIGN_OR_RETURN(const bool found, s.Step());
  if (!found) return std::optional<Snapshot>();
  CHAINFLEET_ASSIGN_OR_RETURN(Snapshot snapshot, ReadSnapshot(s));
  return std::optional<Snapshot>(std::move(snapshot));
}

Alias ReadAlias(const SqlStatement& s) { return {s.Text(0), s.Text(1), s.Text(2), s.Int(3)}; }

}  // namespace

absl::StatusOr<std::optional<std::string>> SqlRows::Tombstone(const ChainId& id, int64_t first_index) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s,
                              connection_->Prepare("UPDATE segments SET deleted = 1 WHERE job = ? AND chain = ? AND "
                                                   "first_index = ? AND deleted = 0 RETURNING object"));
  CHAINFLEET_ASSIGN_OR_RETURN(const bool found, s.Bind(id.job).Bind(int64_t{id.index}).Bind(first_index).Step());
  return found ? std::optional(s.Text(0)) : std::nullopt;
}

absl::Status SqlRows::AddExpired(const ChainId& id, const std::string& object) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s,
                              connection_->Prepare("INSERT INTO expired (job, chain, object) VALUES (?, ?, ?)"));
  return s.Bind(id.job).Bind(int64_t{id.index}).Bind(object).RunLater();
}

absl::StatusOr<std::optional<std::string>> SqlRows::TakeExpired(int64_t ticket) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s,
                              connection_->Prepare("DELETE FROM expired WHERE ticket = ? RETURNING object"));
  CHAINFLEET_ASSIGN_OR_RETURN(const bool found, s.Bind(ticket).Step());
  return found ? std::optional(s.Text(0)) : std::nullopt;
}

absl::StatusOr<std::optional<Snapshot>> SqlRows::NewestSnapshot(const std::string& job) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s,
                              connection_->Prepare("SELECT " CHAINFLEET_SNAPSHOT_COLUMNS
                                                   " FROM snapshots s WHERE s.job = ? ORDER BY s.number DESC LIMIT 1"));
  s.Bind(job);
  return OneSnapshot(std::move(s));
}

absl::StatusOr<std::optional<Snapshot>> SqlRows::FindSnapshot(const std::string& job, int64_t number) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s,
      connection_->Prepare("SELECT " CHAINFLEET_SNAPSHOT_COLUMNS " FROM snapshots s WHERE s.job = ? AND s.number = ?"));
  s.Bind(job).Bind(number);
  return OneSnapshot(std::move(s));
}

absl::StatusOr<std::vector<Snapshot>> SqlRows::ListSnapshots(const std::string& job, int64_t after, int32_t limit) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s,
      connection_->Prepare("SELECT " CHAINFLEET_SNAPSHOT_COLUMNS
                           " FROM snapshots s WHERE s.job = ? AND s.number > ? ORDER BY s.number LIMIT ?"));
  s.Bind(job).Bind(after).Bind(int64_t{limit});
  std::vector<Snapshot> snapshots;
  for (;;) {
    CHAINFLEET_ASSIGN_OR_RETURN(const bool found, s.Step());
    if (!found) return snapshots;
    CHAINFLEET_ASSIGN_OR_RETURN(Snapshot snapshot, ReadSnapshot(s));
    snapshots.push_back(std::move(snapshot));
  }
}

absl::StatusOr<std::vector<int64_t>> SqlRows::SnapshotNumbers(const std::string& job, int64_t last) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s,
      connection_->Prepare("SELECT number FROM snapshots WHERE job = ? AND number <= ? ORDER BY number"));
  s.Bind(job).Bind(last);
  std::vector<int64_t> numbers;
  for (;;) {
    CHAINFLEET_ASSIGN_OR_RETURN(const bool found, s.Step());
    if (!found) return numbers;
    numbers.push_back(s.Int(0));
  }
}

absl::StatusOr<int64_t> SqlRows::LastSnapshotNumber(const std::string& job) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s, connection_->Prepare("SELECT last_version FROM jobs WHERE id = ?"));
  CHAINFLEET_ASSIGN_OR_RETURN(const bool found, s.Bind(job).Step());
  return found ? s.Int(0) : 0;
}

absl::Status SqlRows::InsertSnapshot(const Snapshot& snapshot) {
  {
    CHAINFLEET_ASSIGN_OR_RETURN(
        SqlStatement s,
        connection_->Prepare("INSERT INTO snapshots (job, number, draws_of_chain, created_ns) VALUES (?, ?, ?, ?)"));
    s.Bind(snapshot.job).Bind(snapshot.number).Bind(EncodeCounts(snapshot.draws_of_chain));
    CHAINFLEET_RETURN_IF_ERROR(s.Bind(absl::ToUnixNanos(snapshot.created_at)).Run());
  }
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s, connection_->Prepare("UPDATE jobs SET last_version = ? WHERE id = ?"));
  return s.Bind(snapshot.number).Bind(snapshot.job).Run();
}

absl::Status SqlRows::DeleteSnapshot(const std::string& job, int64_t number) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s,
                              connection_->Prepare("DELETE FROM snapshots WHERE job = ? AND number = ?"));
  return s.Bind(job).Bind(number).Run();
}

absl::StatusOr<std::optional<Alias>> SqlRows::FindAlias(const std::string& tenant, const std::string& name) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s,
      connection_->Prepare("SELECT " CHAINFLEET_ALIAS_COLUMNS " FROM aliases a WHERE a.tenant = ? AND a.name = ?"));
  CHAINFLEET_ASSIGN_OR_RETURN(const bool found, s.Bind(tenant).Bind(name).Step());
  return found ? std::optional(ReadAlias(s)) : std::nullopt;
}

absl::StatusOr<std::vector<Alias>> SqlRows::AliasesOfJob(const std::string& job) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s, connection_->Prepare("SELECT " CHAINFLEET_ALIAS_COLUMNS
                                                                   " FROM aliases a WHERE a.job = ? ORDER BY a.name"));
  s.Bind(job);
  std::vector<Alias> aliases;
  for (;;) {
    CHAINFLEET_ASSIGN_OR_RETURN(const bool found, s.Step());
    if (!found) return aliases;
    aliases.push_back(ReadAlias(s));
  }
}

absl::StatusOr<int64_t> SqlRows::CountAliases(const std::string& tenant) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s, connection_->Prepare("SELECT COUNT(*) FROM aliases WHERE tenant = ?"));
  CHAINFLEET_RETURN_IF_ERROR(s.Bind(tenant).Step().status());
  return s.Int(0);
}

absl::Status SqlRows::PutAlias(const Alias& alias) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s, connection_->Prepare("INSERT INTO aliases (tenant, name, job, number) VALUES (?, ?, ?, ?) "
                                           "ON CONFLICT (tenant, name) DO UPDATE SET job = excluded.job, "
                                           "number = excluded.number"));
  return s.Bind(alias.tenant).Bind(alias.name).Bind(alias.job).Bind(alias.number).Run();
}

absl::Status SqlRows::DeleteAlias(const std::string& tenant, const std::string& name) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s,
                              connection_->Prepare("DELETE FROM aliases WHERE tenant = ? AND name = ?"));
  return s.Bind(tenant).Bind(name).Run();
}

absl::StatusOr<std::vector<StoredAlias>> SqlRows::ListAliases() {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s, connection_->Prepare("SELECT " CHAINFLEET_ALIAS_COLUMNS ", " CHAINFLEET_SNAPSHOT_COLUMNS
                                           " FROM aliases a JOIN snapshots s ON s.job = a.job AND s.number = a.number "
                                           "ORDER BY a.tenant, a.name"));
  std::vector<StoredAlias> aliases;
  for (;;) {
    CHAINFLEET_ASSIGN_OR_RETURN(const bool found, s.Step());
    if (!found) return aliases;
    CHAINFLEET_ASSIGN_OR_RETURN(Snapshot snapshot, ReadSnapshot(s, kNumAliasColumns));
    aliases.push_back({ReadAlias(s), std::move(snapshot)});
  }
}

absl::StatusOr<std::vector<ExpiredObject>> SqlRows::ListExpired(int64_t last, int32_t limit) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s,
      connection_->Prepare("SELECT ticket, object FROM expired WHERE ticket <= ? ORDER BY ticket LIMIT ?"));
  s.Bind(last).Bind(int64_t{limit});
  std::vector<ExpiredObject> objects;
  for (;;) {
    CHAINFLEET_ASSIGN_OR_RETURN(const bool found, s.Step());
    if (!found) return objects;
    objects.push_back({s.Int(0), s.Text(1)});
  }
}

absl::StatusOr<int64_t> SqlRows::LastExpired() {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s, connection_->Prepare("SELECT COALESCE(MAX(ticket), 0) FROM expired"));
  CHAINFLEET_RETURN_IF_ERROR(s.Step().status());
  return s.Int(0);
}

}  // namespace chainfleet

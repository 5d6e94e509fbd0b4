// The methods of SqlRows for data sets, models, garbage, uploads and garbage sweeps.
#include "core/store/state_store/sql_query.h"
#include "core/store/state_store/sql_rows.h"

namespace chainfleet {
namespace {

// The values of content_objects.content. A data set and a model may have the same key.
std::string DatasetContent(const std::string& key) { return "dataset " + key; }
std::string ModelContent(const std::string& key) { return "model " + key; }

absl::Status AddContentObject(SqlConnection* connection, const std::string& content, const std::string& object) {
  // Equal shards of a data set are one object.
  return sql::RunLater(connection, "INSERT INTO content_objects (content, object) VALUES (?, ?) ON CONFLICT DO NOTHING",
                       content, object);
}

absl::Status DropContentObjects(SqlConnection* connection, const std::string& content) {
  return sql::RunLater(connection, "DELETE FROM content_objects WHERE content = ?", content);
}

template <typename Record>
struct NamedRecord {
  std::string name;
  Record body;
  static void Fields(auto& self, auto&& visit) {
    visit("name", self.name);
    visit("body", self.body);
  }
};

// Reads in pages: PostgreSQL fetches all rows of a statement at once and ends it after a few seconds, and a record may
// have megabytes.
template <typename Record>
absl::StatusOr<std::vector<Record>> AllRecords(SqlConnection* connection, const std::string& table) {
  constexpr int64_t kPage = 16;
  const std::string page_sql = sql::Select<NamedRecord<Record>>(table + " WHERE name > ? ORDER BY name LIMIT ?");
  std::vector<Record> all;
  std::string last;
  for (;;) {
    CHAINFLEET_ASSIGN_OR_RETURN(std::vector<NamedRecord<Record>> page,
                                sql::All<NamedRecord<Record>>(connection, page_sql, last, kPage));
    for (NamedRecord<Record>& row : page) all.push_back(std::move(row.body));
    if (static_cast<int64_t>(page.size()) < kPage) return all;
    last = page.back().name;
  }
}

}  // namespace

absl::StatusOr<std::vector<Dataset>> SqlRows::ListDatasets() { return AllRecords<Dataset>(connection_, "datasets"); }

absl::StatusOr<std::optional<Dataset>> SqlRows::FindDataset(const std::string& key) {
  return sql::First<Dataset>(connection_, "SELECT body FROM datasets WHERE name = ?", key);
}

absl::Status SqlRows::InsertDataset(const Dataset& dataset) {
  const std::string key = ContentKey(dataset);
  CHAINFLEET_RETURN_IF_ERROR(sql::Run(connection_, "INSERT INTO datasets (name, body) VALUES (?, ?)", key, dataset));
  for (const DatasetShard& shard : dataset.shards) {
    CHAINFLEET_RETURN_IF_ERROR(AddContentObject(connection_, DatasetContent(key), shard.object.name));
  }
  return absl::OkStatus();
}

absl::Status SqlRows::DeleteDataset(const std::string& key) {
  CHAINFLEET_RETURN_IF_ERROR(DropContentObjects(connection_, DatasetContent(key)));
  return sql::Run(connection_, "DELETE FROM datasets WHERE name = ?", key);
}

absl::StatusOr<std::vector<UseByJob>> SqlRows::JobsOfDataset(const std::string& key) {
  return sql::All<UseByJob>(connection_, sql::Select<UseByJob>("jobs WHERE dataset = ? AND intent != ? ORDER BY id"),
                            key, JobIntent::kDelete);
}

absl::StatusOr<std::vector<StoredModel>> SqlRows::ListModels() {
  return AllRecords<StoredModel>(connection_, "models");
}

absl::StatusOr<std::optional<StoredModel>> SqlRows::FindModel(const std::string& key) {
  return sql::First<StoredModel>(connection_, "SELECT body FROM models WHERE name = ?", key);
}

absl::StatusOr<bool> SqlRows::HasModel(const StoredModel& model) {
  return sql::Exists(connection_, "SELECT 1 FROM content_objects WHERE content = ? AND object = ?",
                     ModelContent(ContentKey(model)), model.object.name);
}

absl::Status SqlRows::InsertModel(const StoredModel& model) {
  const std::string key = ContentKey(model);
  CHAINFLEET_RETURN_IF_ERROR(sql::Run(connection_, "INSERT INTO models (name, body) VALUES (?, ?)", key, model));
  return AddContentObject(connection_, ModelContent(key), model.object.name);
}

absl::Status SqlRows::DeleteModel(const std::string& key) {
  CHAINFLEET_RETURN_IF_ERROR(DropContentObjects(connection_, ModelContent(key)));
  return sql::Run(connection_, "DELETE FROM models WHERE name = ?", key);
}

absl::StatusOr<std::vector<UseByJob>> SqlRows::JobsOfModel(const std::string& key) {
  // A key has no blank and none of LIKE's wildcards.
  return sql::All<UseByJob>(connection_,
                            sql::Select<UseByJob>("jobs WHERE ' ' || module || ' ' LIKE ? AND intent != ? ORDER BY id"),
                            absl::StrCat("% ", key, " %"), JobIntent::kDelete);
}

absl::StatusOr<bool> SqlRows::IsContent(const std::string& object) {
  return sql::Exists(connection_, "SELECT 1 FROM content_objects WHERE object = ? LIMIT 1", object);
}

absl::Status SqlRows::AddGarbage(const std::string& object) {
  return sql::RunLater(connection_, "INSERT INTO garbage (object) VALUES (?) ON CONFLICT DO NOTHING", object);
}

absl::Status SqlRows::RemoveGarbage(const std::string& object) {
  return sql::RunLater(connection_, "DELETE FROM garbage WHERE object = ?", object);
}

absl::Status SqlRows::HoldObject(const std::string& upload, const std::string& object) {
  return sql::Run(connection_, "INSERT INTO uploads (upload, object) VALUES (?, ?) ON CONFLICT DO NOTHING", upload,
                  object);
}

absl::StatusOr<std::vector<std::string>> SqlRows::ListHeld(const std::optional<std::string>& upload) {
  return sql::All<std::string>(
      connection_, "SELECT DISTINCT object FROM uploads WHERE CAST(?1 AS TEXT) IS NULL OR upload = ?1", upload);
}

absl::Status SqlRows::DropHeld(const std::optional<std::string>& upload) {
  return sql::Run(connection_, "DELETE FROM uploads WHERE CAST(?1 AS TEXT) IS NULL OR upload = ?1", upload);
}

absl::StatusOr<bool> SqlRows::IsHeld(const std::string& object) {
  return sql::Exists(connection_, "SELECT 1 FROM uploads WHERE object = ? LIMIT 1", object);
}

absl::Status SqlRows::QueueSweep(const ChainId& chain) {  // queueing again assigns a new, later ticket
  CHAINFLEET_RETURN_IF_ERROR(sql::RunLater(connection_, "DELETE FROM sweeps WHERE job = ? AND chain = ?", chain));
  return sql::RunLater(connection_, "INSERT INTO sweeps (job, chain) VALUES (?, ?)", chain);
}

absl::Status SqlRows::RemoveSweep(int64_t ticket) {
  return sql::RunLater(connection_, "DELETE FROM sweeps WHERE ticket = ?", ticket);
}

absl::StatusOr<std::vector<ChainSweep>> SqlRows::ListSweeps(int64_t after, int32_t limit) {
  return sql::All<ChainSweep>(connection_, sql::Select<ChainSweep>("sweeps WHERE ticket > ? ORDER BY ticket LIMIT ?"),
                              after, limit);
}

absl::StatusOr<std::vector<std::string>> SqlRows::ListGarbage(const std::string& after, int32_t limit) {
  return sql::All<std::string>(connection_, "SELECT object FROM garbage WHERE object > ? ORDER BY object LIMIT ?",
                               after, limit);
}

absl::StatusOr<std::vector<std::string>> SqlRows::FormerIncarnations() {
  return sql::All<std::string>(connection_, "SELECT incarnation FROM former_incarnations");
}

absl::Status SqlRows::CheckKeptHome(const ObjectHome& mine) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::optional<ObjectHome> kept,
                              sql::First<ObjectHome>(connection_, sql::Select<ObjectHome>("store")));
  const absl::Status other = CheckHome(kept.value_or(ObjectHome()), mine);
  if (other.ok()) return other;
  CHAINFLEET_ASSIGN_OR_RETURN(
      const bool has_objects,
      sql::Exists(
          connection_,
          "SELECT 1 WHERE EXISTS (SELECT 1 FROM jobs) OR EXISTS (SELECT 1 FROM datasets) OR EXISTS (SELECT 1 FROM "
          "models) OR EXISTS (SELECT 1 FROM garbage) OR EXISTS (SELECT 1 FROM uploads)"));
  return has_objects ? other : absl::OkStatus();
}

absl::Status SqlRows::KeepHome(const ObjectHome& mine) {
  CHAINFLEET_RETURN_IF_ERROR(CheckKeptHome(mine));
  if (mine.id.empty()) return absl::OkStatus();
  return sql::Run(connection_, "UPDATE store SET objects_id = ?, objects_in = ?", mine);
}

absl::Status SqlRows::Restore(const std::string& fresh_incarnation) {
  CHAINFLEET_RETURN_IF_ERROR(
      connection_->Execute("INSERT INTO former_incarnations (incarnation) SELECT incarnation FROM store"));
  CHAINFLEET_RETURN_IF_ERROR(sql::Run(connection_, "UPDATE store SET incarnation = ?", fresh_incarnation));
  CHAINFLEET_RETURN_IF_ERROR(sql::Run(connection_, "UPDATE chains SET lease_epoch = lease_epoch + ?", kRestoredLeap));
  return sql::Run(connection_, "UPDATE jobs SET last_version = last_version + ?", kRestoredLeap);
}

}  // namespace chainfleet

// The methods of SqlRows for data sets, models, garbage, uploads and garbage sweeps.
#include <utility>

#include "core/store/state_store/record_json.h"
#include "core/store/state_store/sql_rows.h"

namespace chainfleet {

absl::StatusOr<std::vector<Dataset>> SqlRows::ListDatasets() {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s, connection_->Prepare("SELECT body FROM datasets ORDER BY name"));
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<std::string> bodies, Texts(std::move(s)));
  std::vector<Dataset> datasets(bodies.size());
  for (size_t i = 0; i < bodies.size(); ++i) {
    CHAINFLEET_ASSIGN_OR_RETURN(datasets[i], DecodeDataset(bodies[i]));
  }
  return datasets;
}

absl::Status SqlRows::InsertDataset(const Dataset& dataset) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s, connection_->Prepare("INSERT INTO datasets (name, body) VALUES (?, ?)"));
  return s.Bind(dataset.name).Bind(EncodeDataset(dataset)).Run();
}

absl::Status SqlRows::DeleteDataset(const std::string& name) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s, connection_->Prepare("DELETE FROM datasets WHERE name = ?"));
  return s.Bind(name).Run();
}

absl::StatusOr<std::vector<std::string>> SqlRows::JobsOfDataset(const std::string& name) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s, connection_->Prepare("SELECT id FROM jobs WHERE dataset = ? AND intent != ? ORDER BY id"));
  s.Bind(name).Bind(static_cast<int64_t>(JobIntent::kDelete));
  return Texts(std::move(s));
}

absl::StatusOr<std::vector<StoredModel>> SqlRows::ListModels() {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s, connection_->Prepare("SELECT body FROM models ORDER BY name"));
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<std::string> bodies, Texts(std::move(s)));
  std::vector<StoredModel> models(bodies.size());
  for (size_t i = 0; i < bodies.size(); ++i) {
    CHAINFLEET_ASSIGN_OR_RETURN(models[i], DecodeModel(bodies[i]));
  }
  return models;
}

absl::Status SqlRows::InsertModel(const StoredModel& model) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s, connection_->Prepare("INSERT INTO models (name, body) VALUES (?, ?)"));
  return s.Bind(model.name).Bind(EncodeModel(model)).Run();
}

absl::Status SqlRows::DeleteModel(const std::string& name) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s, connection_->Prepare("DELETE FROM models WHERE name = ?"));
  return s.Bind(name).Run();
}

absl::StatusOr<std::vector<std::string>> SqlRows::JobsOfModel(const std::string& name) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s,
                              connection_->Prepare("SELECT id FROM jobs WHERE module = ? AND intent != ? ORDER BY id"));
  s.Bind(name).Bind(static_cast<int64_t>(JobIntent::kDelete));
  return Texts(std::move(s));
}

absl::Status SqlRows::AddGarbage(const std::string& object) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s,
                              connection_->Prepare("INSERT INTO garbage (object) VALUES (?) ON CONFLICT DO NOTHING"));
  return s.Bind(object).RunLater();
}

absl::Status SqlRows::RemoveGarbage(const std::string& object) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s, connection_->Prepare("DELETE FROM garbage WHERE object = ?"));
  return s.Bind(object).RunLater();
}

absl::Status SqlRows::HoldObject(const std::string& upload, const std::string& object) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s,
      connection_->Prepare("INSERT INTO uploads (upload, object) VALUES (?, ?) ON CONFLICT DO NOTHING"));
  return s.Bind(upload).Bind(object).Run();
}

absl::StatusOr<std::vector<std::string>> SqlRows::ListHeld(const std::optional<std::string>& upload) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s,
      connection_->Prepare("SELECT DISTINCT object FROM uploads WHERE CAST(?1 AS TEXT) IS NULL OR upload = ?1"));
  s.Bind(upload);
  return Texts(std::move(s));
}

absl::Status SqlRows::DropHeld(const std::optional<std::string>& upload) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s, connection_->Prepare("DELETE FROM uploads WHERE CAST(?1 AS TEXT) IS NULL OR upload = ?1"));
  return s.Bind(upload).Run();
}

absl::StatusOr<bool> SqlRows::IsHeld(const std::string& object) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s, connection_->Prepare("SELECT 1 FROM uploads WHERE object = ? LIMIT 1"));
  return s.Bind(object).Step();
}

absl::Status SqlRows::QueueSweep(const ChainId& chain) {  // queueing again assigns a new, later ticket
  for (const char* sql :
       {"DELETE FROM sweeps WHERE job = ? AND chain = ?", "INSERT INTO sweeps (job, chain) VALUES (?, ?)"}) {
    CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s, connection_->Prepare(sql));
    CHAINFLEET_RETURN_IF_ERROR(s.Bind(chain.job).Bind(int64_t{chain.index}).RunLater());
  }
  return absl::OkStatus();
}

absl::Status SqlRows::RemoveSweep(int64_t ticket) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s, connection_->Prepare("DELETE FROM sweeps WHERE ticket = ?"));
  return s.Bind(ticket).RunLater();
}

absl::StatusOr<std::vector<ChainSweep>> SqlRows::ListSweeps(int64_t after, int32_t limit) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s,
      connection_->Prepare("SELECT ticket, job, chain FROM sweeps WHERE ticket > ? ORDER BY ticket LIMIT ?"));
  s.Bind(after).Bind(int64_t{limit});
  std::vector<ChainSweep> sweeps;
  for (;;) {
    CHAINFLEET_ASSIGN_OR_RETURN(const bool found, s.Step());
    if (!found) return sweeps;
    sweeps.push_back({s.Int(0), {s.Text(1), static_cast<int32_t>(s.Int(2))}});
  }
}

absl::StatusOr<std::vector<std::string>> SqlRows::ListGarbage(const std::string& after, int32_t limit) {
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement s, connection_->Prepare("SELECT object FROM garbage WHERE object > ? ORDER BY object LIMIT ?"));
  s.Bind(after).Bind(int64_t{limit});
  return Texts(std::move(s));
}

absl::StatusOr<std::vector<std::string>> SqlRows::FormerIncarnations() {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s, connection_->Prepare("SELECT incarnation FROM former_incarnations"));
  return Texts(std::move(s));
}

absl::Status SqlRows::CheckKeptHome(const ObjectHome& mine) {
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s, connection_->Prepare("SELECT objects_id, objects_in FROM store"));
  CHAINFLEET_RETURN_IF_ERROR(s.Step().status());
  const absl::Status other = CheckHome({s.Text(0), s.Text(1)}, mine);
  if (other.ok()) return other;
  CHAINFLEET_ASSIGN_OR_RETURN(
      SqlStatement used, connection_->Prepare("SELECT 1 WHERE EXISTS (SELECT 1 FROM jobs) OR EXISTS (SELECT 1 FROM "
                                              "datasets) OR EXISTS (SELECT 1 FROM models) OR EXISTS (SELECT 1 FROM "
                                              "garbage) OR EXISTS (SELECT 1 FROM uploads)"));
  CHAINFLEET_ASSIGN_OR_RETURN(const bool has_objects, used.Step());
  return has_objects ? other : absl::OkStatus();
}

absl::Status SqlRows::KeepHome(const ObjectHome& mine) {
  CHAINFLEET_RETURN_IF_ERROR(CheckKeptHome(mine));
  if (mine.id.empty()) return absl::OkStatus();
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement s, connection_->Prepare("UPDATE store SET objects_id = ?, objects_in = ?"));
  return s.Bind(mine.id).Bind(mine.address).Run();
}

absl::Status SqlRows::Restore(const std::string& fresh_incarnation) {
  CHAINFLEET_RETURN_IF_ERROR(
      connection_->Execute("INSERT INTO former_incarnations (incarnation) SELECT incarnation FROM store"));
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement name, connection_->Prepare("UPDATE store SET incarnation = ?"));
  CHAINFLEET_RETURN_IF_ERROR(name.Bind(fresh_incarnation).Run());
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement leap,
                              connection_->Prepare("UPDATE chains SET lease_epoch = lease_epoch + ?"));
  CHAINFLEET_RETURN_IF_ERROR(leap.Bind(kRestoredLeap).Run());
  CHAINFLEET_ASSIGN_OR_RETURN(SqlStatement versions,
                              connection_->Prepare("UPDATE jobs SET last_version = last_version + ?"));
  return versions.Bind(kRestoredLeap).Run();
}

}  // namespace chainfleet

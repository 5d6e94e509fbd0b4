// Databases that the build of 25 November 2026 wrote (stored_rows.db of SQLite, stored_rows.sql of PostgreSQL) hold
// every kind of row. A later build must read them as that build did (stored_rows.txt), write each stored text again as
// it stands, and make the same state from the same changes.
#include <filesystem>
#include <fstream>
#include <optional>
#include <tuple>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/store/state_store/record_json.h"
#include "core/store/state_store/sqlite_connection.h"
#include "core/store/state_store/state_copy.h"
#include "tests/core/state_store/state_store_fixture.h"

namespace chainfleet {
namespace {

constexpr char kSwept[] = "job-swept", kLayered[] = "job-layered", kEnded[] = "job-ended", kGone[] = "job-gone";
constexpr char kFolder[] = CHAINFLEET_STORED_ROWS_FOLDER "/";

std::string ReadFile(const std::string& name) {
  std::ifstream file(kFolder + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Dataset NumberDataset() {
  Dataset dataset = SmallDataset("numbers", "shard-1");
  dataset.input_type = InputType::kFloat32;
  dataset.input_shape = {3};
  dataset.targets = Numbers();
  dataset.normalisation = {};
  dataset.target_units = {0.1 + 0.2, 1e-300};
  return dataset;
}

// Every optional part of a plan is there.
JobPlan SweptPlan() {
  JobPlan plan = *PlanOf(kSwept, 2);
  plan.dataset = NumberDataset();
  plan.dataset->tenant = "vision";
  plan.module = {"mine", {"model-1", 12, DigestOf(3)}, absl::FromUnixSeconds(9), "vision"};
  plan.normalisation = {{0.1, 0.2}, {0.3, 0.4}};
  plan.target_units = {3, 2};
  JobSpec& spec = plan.spec;
  spec.model = {StoredNetworkModel{"mine", ModelFormat::kTorchScript}, HeteroscedasticGaussianLikelihood()};
  spec.dataset = "numbers";
  spec.prior.kind = GaussianPrior{25};
  spec.sampler.kind = EmcmcSpec{0.1 + 0.2};
  spec.schedule = {StepScale::kStepSize, CyclicalSchedule{0.2, 1e-300, 4}};
  spec.temperature = 1e-4;
  spec.minibatches = Minibatches::kIndependent;
  spec.augmentation = {.crop_padding = 4, .flip = true};
  spec.precision = Precision::kTf32;
  spec.standardize.inputs = false;
  spec.init = {.theta = {0.1 + 0.2, -7}, .perturb = 1e-3};
  spec.num_steps.reset();
  spec.num_epochs = 12;
  spec.burn_in.cycles = 2;
  spec.collect = {1, std::nullopt, {DrawKind::kTheta, DrawKind::kThetaA}, 5};
  spec.seed = ~uint64_t{0};
  spec.sweep = {.temperature = {0.1 + 0.2, 1}, .eta = {7}};
  spec.until = {.rhat_below = 1.01, .ess_above = 0.1 + 0.2, .max_draws = 7};
  spec.trace_every = 5;
  return plan;
}

JobPlan LayeredPlan() {
  const LayerList branch = {{ConvLayer{.out_channels = 4, .bias = false}}, {BatchNormLayer{}}, {FrnLayer{0.5, false}}};
  JobPlan plan = *PlanOf(kLayered, 4, true);
  plan.spec.dataset = "digits";
  plan.spec.model.kind = LayeredModel{{{ResidualLayer{branch, {{MaxPoolLayer{3, 2, 1}}}}},
                                       {ConcatLayer{branch}},
                                       {DropoutLayer{0.25}},
                                       {LinearLayer{7}}}};
  plan.spec.burn_in.steps = 3;
  plan.spec.collect.every_steps = 2;
  return plan;
}

// Makes every kind of row in an empty store.
class Writer {
 public:
  explicit Writer(StateStore* store) : store_(store) {}

  void Fill() {
    PutObjects();
    Do(change::CreateJob{std::make_shared<JobPlan>(SweptPlan()), "r1", "vision"});
    Do(change::CreateJob{std::make_shared<JobPlan>(LayeredPlan()), ""});
    Do(change::CreateJob{PlanOf(kEnded, 1), "r1"});
    Do(change::CreateJob{PlanOf(kGone, 1), "r2"});
    SampleAndServe();
    EndChains();
    Evaluate();
    Do(change::SetIntent{kGone, JobIntent::kDelete});
    Do(change::PurgeJob{kGone});
  }

 private:
  void Do(StateChange change) {
    now_ += absl::Seconds(1) + absl::Nanoseconds(7);
    const auto results = store_->Apply(std::vector<StateChange>{std::move(change)}, now_);
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_TRUE(results->front().status.ok()) << results->front().status;
    for (const ChainRow& row : results->front().chains) rows_[row.id] = row;
  }
  void PutObjects() {
    Do(change::BeginUpload{"upload-1", {"shard-0"}});
    Do(change::PutDataset{SmallDataset("digits"), "upload-1"});
    Do(change::BeginUpload{"upload-2", {"shard-1"}});
    Dataset numbers = NumberDataset();
    numbers.tenant = "vision";
    Do(change::PutDataset{numbers, "upload-2"});
    Do(change::BeginUpload{"upload-3", {"model-1"}});
    Do(change::PutModel{{"mine", {"model-1", 12, DigestOf(3)}, {}, "vision"}, "upload-3"});
    Do(change::BeginUpload{"upload-4", {"let-go"}});
    Do(change::EndUpload{"upload-4"});
    Do(change::BeginUpload{"upload-5", {"half-written"}});
  }
  void Grant(const ChainId& chain) { Do(change::GrantLease{chain, rows_[chain].lease_epoch + 1, "w1", "w1-life"}); }
  // Commits one draw at the next step; its resume point is an object at odd steps.
  void Commit(const ChainId& chain, std::optional<ChainState> ends_as = std::nullopt, const std::string& reason = "") {
    const ChainRow& row = rows_[chain];
    const int64_t step = row.step + 1;
    const std::string name = ToString(chain) + "-" + std::to_string(step);
    change::CommitProgress c;
    c.chain = chain;
    c.lease_epoch = row.lease_epoch;
    c.resume_point = {step, std::string("state\0\xff", 7), std::nullopt, DigestOf(1000 + step)};
    if (step % 2 == 1) c.resume_point = {step, "", BlobRef{"resume-" + name, 9, DigestOf(step)}, DigestOf(step)};
    c.segment = Segment{row.num_draws,         {step},         {1.0 / 3}, {DrawKind::kTheta}, {name, 10, DigestOf(7)},
                        DigestOf(3000 + step), row.last_digest};
    c.ends_as = ends_as;
    c.reason = reason;
    c.author.worker = row.worker;
    c.incarnation = row.incarnation;
    c.author.host = "host";
    c.author.device_kind = "cpu";
    c.author.numerics_version = 3;
    Do(c);
  }
  void SampleAndServe() {
    const ChainId first{kSwept, 0}, second{kSwept, 1};
    Grant(first);
    Commit(first);
    Grant(second);
    Commit(second);
    Do(change::CreateVersion{kSwept});
    Do(change::SetAlias{{"vision", "champion", kSwept, 1}});
    Commit(first);
    Commit(second);
    Do(change::CreateVersion{kSwept});
    Commit(first);
    Do(change::CreateVersion{kSwept});
    Do(change::DeleteVersion{kSwept, 3});
    Do(change::ExpireSegments{first, {1, 2}});
    Do(change::ReleaseExpired{{1}});
    Do(change::MarkCorrupt{kSwept, ToString(second) + "-2", true});
    Do(change::EndLease{first, 1, false, false, "worker lost", change::EndLease::Crash::kAlone});
    Grant(first);
    Do(change::EndLease{first, 2, false, false, "worker lost", change::EndLease::Crash::kInCompany});
    Do(change::StopPoint{kSwept, 1, "R-hat 1.005"});
    Do(change::SetIntent{kSwept, JobIntent::kPause});
  }
  void EndChains() {
    Do(change::ScaleJob{kLayered, 6});
    const ChainId diverged{kLayered, 0}, done{kLayered, 1}, handed_back{kLayered, 2};
    for (const ChainId& chain : {diverged, done, handed_back}) Grant(chain);
    Commit(diverged, ChainState::kDiverged, "energy is NaN");
    Commit(done, ChainState::kSucceeded);
    Commit(handed_back, ChainState::kPending);
    Do(change::RetireChain{{kLayered, 3}, "no worker can run it", true});
    Do(change::RetireChain{{kLayered, 4}, "enough"});
    Do(change::QueueSweep{{kSwept, 0}});
    Do(change::SetIntent{kEnded, JobIntent::kCancel});
    Do(change::KeepFindings{kEnded, {{"traces", std::string("\0\xff bytes", 8)}, {"warnings", ""}}});
  }
  void Evaluate() {
    for (const char* id : {"running", "succeeded", "failed", "cancelled"}) {
      EvaluationRow row;
      row.id = id;
      row.job = kSwept;
      row.tenant = "vision";
      row.request_id = row.id == "cancelled" ? "" : "request-" + row.id;
      row.request = std::string("asked\0\xff", 7);
      row.version = row.id == "running" ? 1 : 0;
      Do(change::CreateEvaluation{row});
    }
    Do(change::EndEvaluation{"succeeded", EvaluationState::kSucceeded, std::string("\0found", 6), {}});
    Do(change::EndEvaluation{"failed", EvaluationState::kFailed, "",
                             WithReason(absl::UnavailableError("no worker"), "NO_WORKERS")});
    Do(change::EndEvaluation{"cancelled", EvaluationState::kCancelled, "", {}});
  }

  StateStore* const store_;
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  std::map<ChainId, ChainRow> rows_;
};

std::string Text(absl::Time time) { return std::to_string(absl::ToUnixNanos(time)); }
std::string Text(const std::optional<absl::Time>& time) { return time ? Text(*time) : "-"; }
std::string Text(const std::string& bytes) { return "'" + absl::CHexEscape(bytes) + "'"; }
std::string Text(const Version& s) {
  return absl::StrCat(s.job, " ", s.number, " [", absl::StrJoin(s.draws_of_chain, " "), "] ", Text(s.created_at));
}

// A value of its own, which a loop may run over.
template <typename T>
T Read(absl::StatusOr<T> read) {
  return *std::move(read);
}

// All that a store tells, in lines.
class Description {
 public:
  explicit Description(StateStore* store) : store_(*store) {}

  std::string Text() {
    const StoredState state = store_.Load().value();
    Line("store", store_.incarnation(), "before", absl::StrJoin(store_.FormerIncarnations().value(), " "));
    for (const StoredJob& job : state.jobs) Job(job);
    for (const RetiredName& name : state.retired_names) Line("retired", name.tenant, name.name, name.sequence);
    for (const Dataset& dataset : state.datasets) Line("dataset", EncodeRecord(dataset));
    for (const StoredModel& model : state.models) Line("model", EncodeRecord(model));
    for (const StoredAlias& alias : state.aliases) {
      Line("alias", alias.alias.tenant, alias.alias.name, chainfleet::Text(alias.version));
    }
    Evaluations();
    for (const char* part : {"traces", "warnings"}) {
      Line("finding", part, chainfleet::Text(store_.FindFinding(kEnded, part).value()));
    }
    Objects();
    ResumePoints();
    return text_;
  }

 private:
  void Line(const auto&... words) { text_ += absl::StrJoin(std::tuple(words...), " ") + "\n"; }

  void Job(const StoredJob& job) {
    const JobRow& row = job.row;
    Line("job", row.sequence, row.id, row.tenant, chainfleet::Text(row.request_id), ToString(row.intent),
         chainfleet::Text(row.created_at), chainfleet::Text(row.finished_at), EncodeRecord(row.stopped),
         row.asked_chains);
    Line("plan", EncodeRecord(*row.plan));
    for (const ChainRow& c : job.chains) {
      const ChainReferences references = store_.ReferencesOfChain(c.id).value();
      Line("chain", ToString(c.id), ToString(c.state), c.lease_epoch, chainfleet::Text(c.worker),
           chainfleet::Text(c.incarnation), c.lease_committed, c.attempts, c.crashes, c.step, c.num_draws,
           c.last_digest, chainfleet::Text(c.resume_sha256), chainfleet::Text(c.reason), references.is_final,
           store_.MayCommit(c.id, c.lease_epoch).value(), absl::StrJoin(references.objects, " "));
    }
    if (job.newest_version) Line("newest", chainfleet::Text(*job.newest_version));
    for (const Version& version : Read(store_.ListVersions(row.id, 0, 100))) {
      Line("version", chainfleet::Text(version));
    }
    for (const SegmentRecord& record : Read(store_.ListSegments({.job = row.id}))) Segment(record);
  }
  void Segment(const SegmentRecord& record) {
    Line("segment", ToString(record.chain), record.corrupt, record.deleted, EncodeRecord(record));
  }
  void Evaluations() {
    for (const EvaluationRow& listed : Read(store_.ListEvaluations({}))) {
      const EvaluationRow row = store_.FindEvaluation(listed.id, listed.tenant).value();
      Line("evaluation", row.sequence, row.id, row.job, row.tenant, chainfleet::Text(row.request_id),
           chainfleet::Text(row.request), row.version, static_cast<int>(row.state), chainfleet::Text(row.result),
           row.error.ToString(), chainfleet::Text(row.created_at), chainfleet::Text(row.finished_at));
    }
  }
  void Objects() {
    for (const SegmentRecord& record : Read(store_.ListCorrupt({}, 100))) Segment(record);
    for (const ExpiredObject& expired : Read(store_.ListExpired(store_.LastExpired().value(), 100))) {
      Line("expired", expired.ticket, expired.object);
    }
    for (const ChainSweep& sweep : Read(store_.ListSweeps(0, 100))) Line("sweep", sweep.ticket, ToString(sweep.chain));
    for (const std::string& object : Read(store_.ListGarbage("", 100))) Line("garbage", object);
  }
  // Only a grant tells them: chains are granted, or granted again to their holder.
  void ResumePoints() {
    ASSERT_TRUE(store_.Apply(std::vector<StateChange>{change::SetIntent{kSwept, JobIntent::kRun}}, {}).ok());
    for (const StoredJob& job : Read(store_.Load()).jobs) {
      for (const ChainRow& row : job.chains) {
        change::GrantLease grant{row.id, row.lease_epoch, row.worker, row.incarnation};
        if (row.state != ChainState::kLeased) grant = {row.id, row.lease_epoch + 1, "w2", "w2-life"};
        const ApplyResult result = store_.Apply(std::vector<StateChange>{grant}, {}).value().front();
        if (!result.resume_point) continue;
        const ResumePoint& point = *result.resume_point;
        Line("resume", ToString(row.id), point.step, chainfleet::Text(point.inline_bytes), point.sha256,
             point.object ? EncodeRecord(*point.object) : "-");
      }
    }
  }

  StateStore& store_;
  std::string text_;
};

template <typename Record>
std::string Again(absl::StatusOr<Record> (*decode)(const std::string&), std::string (*encode)(const Record&),
                  const std::string& text) {
  const auto record = decode(text);
  return record.ok() ? encode(*record) : record.status().ToString();
}

// Reads every stored text and writes it again.
void ExpectTextsAsTheyWere(SqlConnection* connection) {
  const auto expect = [&](const char* sql, size_t least, auto decode, auto encode) {
    SqlStatement statement = connection->Prepare(sql).value();
    size_t count = 0;
    for (; statement.Step().value(); ++count) EXPECT_EQ(Again(decode, encode, statement.Text(0)), statement.Text(0));
    EXPECT_GE(count, least) << sql;
  };
  expect("SELECT plan FROM jobs", 4, DecodeRecord<JobPlan>, EncodeRecord<JobPlan>);
  expect("SELECT stopped FROM jobs WHERE stopped <> '[]'", 1, DecodeRecord<StoppedPoints>, EncodeRecord<StoppedPoints>);
  expect("SELECT body FROM datasets", 2, DecodeRecord<Dataset>, EncodeRecord<Dataset>);
  expect("SELECT body FROM models", 1, DecodeRecord<StoredModel>, EncodeRecord<StoredModel>);
  expect("SELECT record FROM segments", 5, DecodeRecord<SegmentRecord>, EncodeRecord<SegmentRecord>);
  expect("SELECT object FROM resume_points WHERE object IS NOT NULL", 1, DecodeRecord<BlobRef>, EncodeRecord<BlobRef>);
  expect("SELECT draws_of_chain FROM snapshots", 2, DecodeRecord<DrawsOfChain>, EncodeRecord<DrawsOfChain>);
}

// A file of SQLite, or a database on the server that this run has.
class StoredRows : public testing::TestWithParam<StoreKind> {
 protected:
  // As the earlier build left it.
  std::unique_ptr<SqlConnection> Load() {
    if (GetParam() == StoreKind::kSqlite) {
      auto* const file = static_cast<SqliteHarness*>(harness_.get());
      std::filesystem::copy_file(std::string(kFolder) + "stored_rows.db", file->path());
      return SqliteConnection::Open(file->path()).value();
    }
    auto connection = PostgresConnection::Open(static_cast<PostgresHarness*>(harness_.get())->uri(), "test").value();
    const absl::Status loaded = connection->Execute(ReadFile("stored_rows.sql"));
    EXPECT_TRUE(loaded.ok()) << loaded;
    return connection;
  }

  const std::unique_ptr<StoreHarness> harness_ = MakeHarness(GetParam());
};

TEST_P(StoredRows, AreReadAsAnEarlierBuildReadThem) {
  ExpectTextsAsTheyWere(Load().get());
  EXPECT_EQ(ReasonOf(harness_->OpenAt({"elsewhere", "/srv/elsewhere"}).status()), "OTHER_STORE");
  const auto store = harness_->OpenAt({"id-1", "/srv/blobs"});
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_GT((*store)->generation(), kRestoredLeap);
  EXPECT_EQ(Description(store->get()).Text(), ReadFile("stored_rows.txt"));
}

TEST_P(StoredRows, FollowFromTheChangesThatTheEarlierBuildMade) {
  Writer(harness_->OpenAt({"id-1", "/srv/blobs"}).value().get()).Fill();
  EXPECT_EQ(Description(harness_->OpenRestored("incarnation-2").get()).Text(), ReadFile("stored_rows.txt"));
}

// A store of either engine is copied while it is open, and the copy becomes a store of either engine.
TEST_P(StoredRows, AreAllInACopy) {
  const auto open = harness_->OpenAt({"id-1", "/srv/blobs"}).value();
  Writer(open.get()).Fill();
  const ObjectHome moved{"id-2", "/srv/other", /*moved=*/true};
  std::optional<SqliteHarness> folder;
  const PostgresHarness* postgres = nullptr;
  if (GetParam() == StoreKind::kPostgres) {
    folder.emplace();
    postgres = static_cast<PostgresHarness*>(harness_.get());
  }
  const SqliteHarness& file = folder ? *folder : *static_cast<SqliteHarness*>(harness_.get());
  const std::string copy = file.path() + ".copy", store = postgres != nullptr ? postgres->uri() : file.path();
  ASSERT_TRUE(CopyState(store, copy).ok());

  std::vector<std::string> objects;
  const absl::Status visited = VisitObjects(copy, [&](const BlobRef& object) {
    objects.push_back(object.name);
    return absl::OkStatus();
  });
  EXPECT_TRUE(visited.ok()) << visited;
  // Without the corrupt segment and the tombstone that is released.
  EXPECT_THAT(objects, testing::UnorderedElementsAre(
                           "shard-0", "shard-1", "model-1", "job-swept/0-1", "job-swept/0-3", "job-swept/1-1",
                           "resume-job-swept/0-3", "job-layered/0-1", "resume-job-layered/0-1", "job-layered/1-1",
                           "resume-job-layered/1-1", "job-layered/2-1", "resume-job-layered/2-1"));

  if (postgres != nullptr) {
    PostgresHarness other(PostgresServer());
    ASSERT_TRUE(MigrateCopy(copy, copy + ".migrated").ok());
    const absl::Status filled = FillPostgres(copy + ".migrated", other.uri());
    ASSERT_TRUE(filled.ok()) << filled;
    const absl::Status again = FillPostgres(copy + ".migrated", other.uri());
    EXPECT_EQ(ReasonOf(again), "NOT_EMPTY") << "it has rows now";
    EXPECT_TRUE(absl::IsAlreadyExists(again)) << "a copy that no server has opened: " << again;
    EXPECT_EQ(ReasonOf(other.OpenAt({"id-2", "/srv/other"}).status()), "OTHER_STORE") << "it is not restored yet";
    ASSERT_TRUE(other.OpenAt(moved).ok());
    EXPECT_EQ(Description(other.OpenRestored("incarnation-2").get()).Text(), ReadFile("stored_rows.txt"));
    change::CreateJob later{PlanOf("job-later", 1), ""};
    EXPECT_TRUE(other.OpenAt(moved).value()->Apply(std::vector<StateChange>{later}, {}).value().front().status.ok());
  }
  EXPECT_EQ(ReasonOf(OpenSqliteStateStore(copy, "x", Opening::kUsual, {"id-2", "/srv/other"}).status()), "OTHER_STORE");
  const auto restored = OpenSqliteStateStore(copy, "incarnation-2", Opening::kRestored, moved);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_GT((*restored)->generation(), open->generation() + kRestoredLeap);
  EXPECT_EQ(Description(restored->get()).Text(), ReadFile("stored_rows.txt"));
}

INSTANTIATE_TEST_SUITE_P(AllFormats, StoredRows,
                         testing::Values(PostgresServer() != nullptr ? StoreKind::kPostgres : StoreKind::kSqlite),
                         StoreKindName);

}  // namespace
}  // namespace chainfleet

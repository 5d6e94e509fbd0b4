#include "server/predict/evaluation/evaluation_operations.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/domain/job_spec.h"
#include "core/domain/no_such.h"
#include "core/store/draw_codec/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/predict/evaluation/evaluation_memory.h"
#include "tests/server/predict/fake_serving.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"
#include "tests/support/memory_blob_store.h"
#include "tests/support/memory_database.h"

namespace chainfleet {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Mood = testing::FakeShardPort::Mood;
using View = EvaluationOperations::View;

constexpr char kJob[] = "job-aaaaaa";

// Over a store, on the executor.
class StoredLog final : public EvaluationLog {
 public:
  StoredLog(Executor* executor, StateStore* store) : executor_(executor), store_(store) {}

  bool full = false;

  void Create(const EvaluationRow& row, Done done) override { Apply(change::CreateEvaluation{row}, std::move(done)); }
  void End(const change::EndEvaluation& end, Done done) override { Apply(end, std::move(done)); }
  absl::StatusOr<EvaluationRow> Find(const std::string& id, const std::string& tenant) override {
    return store_->FindEvaluation(id, tenant);
  }
  absl::StatusOr<std::vector<EvaluationRow>> List(const EvaluationQuery& query) override {
    return store_->ListEvaluations(query);
  }

 private:
  void Apply(StateChange change, Done done) {
    executor_->Schedule([this, change = std::move(change), done = std::move(done)] {
      if (full) return done(WithReason(absl::ResourceExhaustedError("disk full"), "DISK_FULL"));
      const ApplyResult result =
          store_->Apply(std::vector<StateChange>{change}, absl::FromUnixSeconds(1'700'000'000))->front();
      if (!result.status.ok()) return done(result.status);
      done(Stored{*result.evaluation, result.replayed});
    });
  }

  Executor* const executor_;
  StateStore* const store_;
};

// Stores that outlive servers; `server` is the one that runs, made again by Restart.
struct World {
  explicit World(int64_t max_row_bytes = Evaluator::kMaxRowBytes)
      : evaluator(&executor, &catalog, &blobs, &queue, max_row_bytes) {
    JobPlan plan;
    plan.job = kJob;
    plan.spec.model.kind = GaussianPotential{2, 1.0};
    Apply(change::CreateJob{std::make_shared<const JobPlan>(plan), ""});
    StoreAVersion();
    PutDataset("data", {0, 1});
    port.workers = {{"a", Mood::kAnswers}};
    Restart();
  }

  void PutDataset(const std::string& name, const std::vector<int32_t>& labels) {
    const auto rows = std::ssize(labels);
    const auto* bytes = reinterpret_cast<const char*>(labels.data());
    EXPECT_TRUE(blobs.Put(name, WriteSafetensors({{"labels", TensorType::kInt32, {rows}, bytes, 4 * rows}}, {})).ok());
    catalog.datasets[name] = {.name = name,
                              .input_shape = {1},
                              .num_rows = rows,
                              .targets = Classes{2},
                              .shards = {{0, rows, {name, 0, ""}}}};
    port.labels[name] = labels;
  }

  // Version 1, of one draw.
  void StoreAVersion() {
    Apply(change::GrantLease{{kJob, 0}, 1, "w", "life"});
    change::CommitProgress c;
    c.chain = {kJob, 0};
    c.lease_epoch = 1;
    c.resume_point = {1, "state", std::nullopt, {}};
    c.segment = Segment{.first_index = 0, .steps = {1}, .weights = {1}, .kinds = {DrawKind::kTheta}};
    c.segment->parent_digest = store->Load()->jobs.at(0).chains.at(0).last_digest;
    c.author.worker = "w";
    c.incarnation = "life";
    Apply(c);
    Apply(change::CreateVersion{kJob});
    catalog.pinned.version = 1;
  }

  void Apply(StateChange change) {
    const auto results = store->Apply(std::vector<StateChange>{std::move(change)}, absl::UnixEpoch());
    EXPECT_TRUE(results.ok() && results->front().status.ok())
        << (results.ok() ? results->front().status : results.status());
  }

  // Restarts the operations; running evaluations are lost.
  void Restart() {
    port.Break("a");
    executor.RunUntilIdle();
    operations.reset();
    port.workers = {{"a", Mood::kAnswers}};
    EvaluationCodec codec;
    codec.query = [](const std::string& request) -> absl::StatusOr<EvaluateQuery> {
      return EvaluateQuery{.draws = {.job = kJob}, .kinds = {}, .dataset = request};
    };
    codec.result = [](const Evaluation& evaluation) { return absl::StrCat(evaluation.scores.back().nll); };
    operations =
        std::make_unique<EvaluationOperations>(&clock, &executor, &evaluator, &log, std::move(codec), RngKey{++lives});
  }

  static EvaluationOperations::Asked Asked(const std::string& tenant, const std::string& request_id,
                                           const std::string& dataset) {
    return {.job = kJob,
            .tenant = tenant,
            .request_id = request_id,
            .query = {.draws = {.job = kJob}, .kinds = {}, .dataset = dataset},
            .request = [dataset](int64_t) { return dataset; }};
  }
  absl::StatusOr<View> Start(EvaluationOperations::Asked asked) {
    return Answered([&](auto done) { operations->Start(std::move(asked), absl::Seconds(5), done); });
  }
  absl::StatusOr<View> Start(const std::string& request_id = "", const std::string& dataset = "data") {
    return Start(Asked("blue", request_id, dataset));
  }
  // For one of the tenants who share the server.
  absl::StatusOr<View> StartFor(const std::string& tenant, const std::string& dataset = "data") {
    EvaluationOperations::Asked asked = Asked(tenant, "", dataset);
    asked.shared = true;
    return Start(std::move(asked));
  }
  absl::StatusOr<View> Get(const std::string& id, const std::string& tenant = "blue") {
    return Answered([&](auto done) { operations->Get(id, tenant, done); });
  }
  absl::StatusOr<View> Cancel(const std::string& id) {
    return Answered([&](auto done) { operations->Cancel(id, done); });
  }
  template <typename Call>
  absl::StatusOr<View> Answered(Call call) {
    std::optional<absl::StatusOr<View>> answer;
    call([&](absl::StatusOr<View> view) { answer = std::move(view); });
    executor.RunUntilIdle();
    return answer ? *answer : absl::InternalError("never answered");
  }
  // The data sets of the shards that workers got, in order.
  std::vector<std::string> Sent() const {
    std::vector<std::string> names;
    for (const auto& shard : port.sent) names.push_back(shard.request.rows->dataset.name);
    return names;
  }
  EvaluationRow Stored(const std::string& id) { return store->FindEvaluation(id, "blue").value(); }

  FakeClock clock;
  ManualExecutor executor{&clock};
  const std::unique_ptr<StateStore> store = MemoryDatabase("store").Open();
  MemoryBlobStore blobs;
  StoredLog log{&executor, store.get()};
  testing::FakeDrawCatalog catalog{&executor, {2, 1}, Classes{2}};
  testing::FakeShardPort port{&executor, testing::ArbitraryProbabilities(2)};
  ShardQueue queue{&clock, &executor, &port};
  Evaluator evaluator;
  uint64_t lives = 0;
  std::unique_ptr<EvaluationOperations> operations;
};

TEST(EvaluationOperations, AreStoredBeforeTheyRunAndTheirResultBeforeItIsTold) {
  World world;
  world.port.workers = {{"a", Mood::kHangs}};
  const absl::StatusOr<View> started = world.Start();
  ASSERT_TRUE(started.ok()) << started.status();
  EXPECT_THAT(started->row.id, ::testing::MatchesRegex("eval-[a-z2-7]{10}"));
  EXPECT_EQ(world.Stored(started->row.id).state, EvaluationState::kRunning);
  EXPECT_EQ(world.Stored(started->row.id).version, 1) << "which stays for it";
  EXPECT_TRUE(world.Get(started->row.id)->progress.has_value());
  EXPECT_EQ(world.Get(started->row.id, "red").status(), NoSuch("evaluation", started->row.id)) << "another tenant asks";
  std::vector<EvaluationState> told;
  world.operations->Watch(
      started->row, [](const EvaluationProgress&) { return true; },
      [&](const absl::StatusOr<EvaluationRow>& row) {
        told.push_back(row->state);
        EXPECT_EQ(world.Stored(row->id).result, row->result);
      });
  world.executor.RunUntilIdle();
  EXPECT_THAT(told, IsEmpty());
  world.port.AnswerOpen();
  world.executor.RunUntilIdle();
  EXPECT_THAT(told, ElementsAre(EvaluationState::kSucceeded));
  EXPECT_FALSE(world.Get(started->row.id)->progress.has_value());
  EXPECT_NE(world.Stored(started->row.id).result, "");
}

TEST(EvaluationOperations, TheSameRequestIsTheSameOperation) {
  World world;
  const std::string id = world.Start("r1")->row.id;
  EXPECT_EQ(world.Start("r1")->row.id, id);
  world.Restart();
  world.port.workers.clear();
  const absl::StatusOr<View> again = world.Start("r1");
  ASSERT_TRUE(again.ok()) << "its end is known: " << again.status();
  EXPECT_EQ(again->row.id, id);
  EXPECT_EQ(again->row.state, EvaluationState::kSucceeded);
  EXPECT_NE(again->row.result, "");
}

TEST(EvaluationOperations, OneThatIsStoredAndHasNotBegunHasNoEndYet) {
  World world;
  world.Apply(
      change::CreateEvaluation{{.id = "eval-a", .job = kJob, .tenant = "blue", .request_id = "r1", .version = 1}});
  ASSERT_EQ(world.Start("r1")->row.state, EvaluationState::kRunning);
  absl::StatusOr<EvaluationRow> told = absl::InternalError("nothing was told");
  world.operations->Watch(
      world.Stored("eval-a"), [](const EvaluationProgress&) { return true; },
      [&](absl::StatusOr<EvaluationRow> row) { told = std::move(row); });
  world.executor.RunUntilIdle();
  EXPECT_EQ(told.status().code(), absl::StatusCode::kUnavailable) << told.status();
  EXPECT_THAT(std::string(told.status().message()), HasSubstr("eval-a"));
}

TEST(EvaluationOperations, GoOnAfterARestartWithTheSameResult) {
  World world;
  const std::string calm = world.Start()->row.id;
  const std::string expected = world.Stored(calm).result;
  ASSERT_NE(expected, "");
  world.port.workers = {{"a", Mood::kHangs}};
  const std::string id = world.Start()->row.id;
  EXPECT_EQ(world.Stored(id).state, EvaluationState::kRunning);
  world.Restart();
  EXPECT_EQ(world.Get(id)->row.state, EvaluationState::kRunning) << "nobody runs it";
  ASSERT_TRUE(world.operations->Recover().ok());
  world.executor.RunFor(absl::Seconds(1));
  EXPECT_EQ(world.Stored(id).state, EvaluationState::kSucceeded);
  EXPECT_EQ(world.Stored(id).result, expected);
}

TEST(EvaluationOperations, GoOnInTheOrderThatTheTenantsHad) {
  World world;
  world.PutDataset("other", {0, 1});
  world.port.workers = {{"a", Mood::kHangs}};
  for (int i = 0; i < 2 * limits::kRunningEvaluations; ++i) ASSERT_TRUE(world.StartFor("blue").ok());
  ASSERT_TRUE(world.StartFor("red", "other").ok());
  world.Restart();
  world.port.sent.clear();
  world.port.workers = {{"a", Mood::kHangs}};
  ASSERT_TRUE(world.operations->Recover().ok());
  world.executor.RunUntilIdle();
  EXPECT_THAT(world.Sent(), Contains("other")) << "red runs none, so its first is the second to run";
}

TEST(EvaluationOperations, WaitForWorkersButNotForEver) {
  World world;
  world.port.workers = {{"a", Mood::kHangs}};
  const std::string id = world.Start()->row.id;
  world.port.Break("a");  // no worker is left
  world.executor.RunFor(absl::Minutes(2));
  EXPECT_EQ(world.Stored(id).state, EvaluationState::kRunning);
  world.port.workers = {{"b", Mood::kAnswers}};
  world.executor.RunFor(2 * limits::kRetryMax);
  EXPECT_EQ(world.Stored(id).state, EvaluationState::kSucceeded);

  world.port.workers = {{"a", Mood::kHangs}};
  const std::string lost = world.Start()->row.id;
  world.port.Break("a");
  world.executor.RunFor(limits::kEvaluateDeadline + absl::Seconds(1));
  EXPECT_EQ(world.Stored(lost).state, EvaluationState::kFailed);
  EXPECT_EQ(ReasonOf(world.Stored(lost).error), "NO_SERVING_WORKER");
}

TEST(EvaluationOperations, FailAtOnceByWhatWouldComeAgain) {
  World world;
  EXPECT_EQ(world.Start("", "none").status().code(), absl::StatusCode::kNotFound) << "nothing is stored";
  EXPECT_THAT(*world.store->ListEvaluations({}), IsEmpty());
  ASSERT_TRUE(world.blobs.Delete("data").ok());
  const std::string id = world.Start()->row.id;
  EXPECT_EQ(world.Stored(id).state, EvaluationState::kFailed);
  EXPECT_EQ(world.Stored(id).error.code(), absl::StatusCode::kDataLoss);
}

TEST(EvaluationOperations, RunAFewAtATimeAndRefuseTooMany) {
  World world;
  world.port.workers = {{"a", Mood::kHangs}};
  std::vector<std::string> ids;
  for (int i = 0; i < limits::kRunningEvaluations + limits::kWaitingEvaluations; ++i) {
    const absl::StatusOr<View> started = world.Start(absl::StrCat("r", i));
    ASSERT_TRUE(started.ok()) << started.status();
    ids.push_back(started->row.id);
  }
  const absl::Status refused = world.Start().status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(refused), "QUEUE_FULL");
  EXPECT_EQ(BoundOf(refused), "waiting_evaluations");
  EXPECT_EQ(world.Start("r70")->row.id, ids[70]) << "one that is there is no further one";
  world.port.workers = {{"a", Mood::kAnswers}, {"b", Mood::kAnswers}};
  world.port.AnswerOpen();
  world.executor.RunFor(absl::Seconds(10));
  for (const std::string& id : ids) EXPECT_EQ(world.Stored(id).state, EvaluationState::kSucceeded);
}

// Smaller ones that come later do not take the memory away that it waits for.
TEST(EvaluationOperations, OneThatWaitsForMemoryIsNotOvertaken) {
  const int64_t large_bytes = EvaluationBytes({.labelled = 20}, 2, Classes{2});
  World world(large_bytes);
  world.PutDataset("large", std::vector<int32_t>(20));
  world.port.workers = {{"a", Mood::kHangs}};
  ASSERT_TRUE(world.Start("first").ok());
  ASSERT_TRUE(world.Start("large", "large").ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(world.Start(absl::StrCat("later", i)).ok());
  world.executor.RunFor(absl::Seconds(20));
  EXPECT_THAT(world.Sent(), ElementsAre("data"));
  world.port.AnswerOldest();
  world.executor.RunFor(limits::kRetryMax);
  EXPECT_THAT(world.Sent(), ElementsAre("data", "large"));
  world.port.workers = {{"a", Mood::kAnswers}};
  world.port.AnswerOpen();
  world.executor.RunFor(absl::Seconds(10));
  EXPECT_THAT(world.Sent(), ElementsAre("data", "large", "data", "data", "data"));
}

TEST(EvaluationOperations, OneThatWaitsForMemoryHoldsBackOnlyItsTenant) {
  World world(EvaluationBytes({.labelled = 20}, 2, Classes{2}));
  world.PutDataset("large", std::vector<int32_t>(20));
  world.PutDataset("other", {0, 1});
  world.port.workers = {{"a", Mood::kHangs}};
  ASSERT_TRUE(world.StartFor("blue").ok());
  ASSERT_TRUE(world.StartFor("blue", "large").ok());
  ASSERT_TRUE(world.StartFor("blue").ok());
  ASSERT_TRUE(world.StartFor("red", "other").ok());
  EXPECT_THAT(world.Sent(), ElementsAre("data", "other"));
}

TEST(EvaluationOperations, OneThatWaitsForMemoryIsNotOvertakenForEver) {
  World world(EvaluationBytes({.labelled = 20}, 2, Classes{2}));
  world.PutDataset("large", std::vector<int32_t>(20));
  world.port.workers = {{"a", Mood::kHangs}};
  ASSERT_TRUE(world.StartFor("red").ok());
  ASSERT_TRUE(world.StartFor("blue", "large").ok());
  world.executor.RunFor(limits::kMemoryPatience + limits::kRetryMax);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(world.StartFor("red").ok());
  EXPECT_THAT(world.Sent(), ElementsAre("data")) << "red has had its turn";
  world.port.AnswerOldest();
  world.executor.RunFor(limits::kRetryMax);
  EXPECT_THAT(world.Sent(), ElementsAre("data", "large"));
}

TEST(EvaluationOperations, TheTenantWithTheFewestRunningIsNext) {
  World world;
  world.PutDataset("other", {0, 1});
  world.port.workers = {{"a", Mood::kHangs}};
  for (int i = 0; i < limits::kRunningEvaluations + 2; ++i) ASSERT_TRUE(world.StartFor("blue").ok());
  ASSERT_TRUE(world.StartFor("red", "other").ok());
  world.port.workers = {{"a", Mood::kAnswers}};
  world.port.AnswerOpen();
  world.executor.RunFor(absl::Seconds(10));
  std::vector<std::string> expected(limits::kRunningEvaluations, "data");
  expected.insert(expected.end(), {"other", "data", "data"});
  EXPECT_THAT(world.Sent(), ElementsAreArray(expected)) << "the one of red waited for the first place only";
}

TEST(EvaluationOperations, OneTenantTakesHalfOfThePlaces) {
  World world;
  world.port.workers = {{"a", Mood::kHangs}};
  constexpr int kHalf = (limits::kRunningEvaluations + limits::kWaitingEvaluations) / 2;
  std::vector<absl::StatusOr<View>> answers;
  for (int i = 0; i < kHalf + 1; ++i) {  // all at once, so that most are being stored when others are checked
    auto asked = World::Asked("blue", "", "data");
    asked.shared = true;
    world.operations->Start(std::move(asked), absl::Seconds(5), [&](auto view) { answers.push_back(std::move(view)); });
  }
  world.executor.RunUntilIdle();
  ASSERT_THAT(answers, SizeIs(kHalf + 1));
  std::erase_if(answers, [](const auto& view) { return view.ok(); });
  ASSERT_THAT(answers, SizeIs(1));
  const absl::Status refused = answers[0].status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(refused), "TENANT_LIMIT");
  EXPECT_EQ(BoundOf(refused), "tenant_evaluations");
  EXPECT_EQ(RetryAfterOf(refused), absl::Seconds(1));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("tenant blue has 36 evaluations"));
  for (int i = 0; i < kHalf / 2; ++i) ASSERT_TRUE(world.StartFor("red").ok()) << "half of what is left";
  EXPECT_EQ(BoundOf(world.StartFor("red").status()), "tenant_evaluations");
  EXPECT_TRUE(world.StartFor("green").ok());
}

// A caller that watches until `stays` is false.
struct Caller {
  std::shared_ptr<bool> stays = std::make_shared<bool>(true);
  std::shared_ptr<std::vector<absl::Status>> told = std::make_shared<std::vector<absl::Status>>();

  void Watch(World* world, const std::string& id) const {
    world->operations->Watch(
        world->Stored(id), [stays = stays](const EvaluationProgress&) { return *stays; },
        [told = told](const absl::StatusOr<EvaluationRow>& row) { told->push_back(row.status()); });
    world->executor.RunUntilIdle();
  }
};

TEST(EvaluationOperations, AFewCallersWatchOneAndThoseThatHaveGoneMakeRoom) {
  World world;
  world.port.workers = {{"a", Mood::kHangs}};
  const std::string id = world.Start()->row.id;
  std::vector<Caller> callers(limits::kEvaluationWatchers);
  for (const Caller& caller : callers) caller.Watch(&world, id);
  const Caller refused, next;
  refused.Watch(&world, id);
  ASSERT_THAT(*refused.told, SizeIs(1));
  EXPECT_EQ(ReasonOf(refused.told->front()), "QUEUE_FULL");
  EXPECT_EQ(BoundOf(refused.told->front()), "evaluation_watchers");
  EXPECT_THAT(std::string(refused.told->front().message()), HasSubstr(id));
  *callers[7].stays = false;
  next.Watch(&world, id);
  EXPECT_EQ(callers[7].told.use_count(), 1) << "nothing of it is kept";
  world.port.AnswerOpen();
  world.executor.RunUntilIdle();
  EXPECT_THAT(*next.told, ElementsAre(absl::OkStatus()));
  EXPECT_THAT(*callers[8].told, ElementsAre(absl::OkStatus()));
  EXPECT_THAT(*callers[7].told, IsEmpty());
}

TEST(EvaluationOperations, ACallerThatHasGoneIsForgottenWithTheNextProgress) {
  World world;
  world.PutDataset("long", std::vector<int32_t>(5 * limits::kMaxShardRows));
  world.port.workers = {{"a", Mood::kHangs}};
  const std::string id = world.Start("", "long")->row.id;
  const Caller caller;
  caller.Watch(&world, id);
  *caller.stays = false;
  world.port.AnswerOpen();
  world.executor.RunUntilIdle();
  ASSERT_EQ(world.Stored(id).state, EvaluationState::kRunning);
  EXPECT_GT(world.Get(id)->progress->rows_done, 0);
  EXPECT_EQ(caller.told.use_count(), 1);
}

TEST(EvaluationOperations, ACancelledOneLeavesItsWorkersAndStaysCancelled) {
  World world;
  world.port.workers = {{"a", Mood::kHangs}};
  const std::string id = world.Start()->row.id;
  absl::StatusOr<EvaluationRow> told = absl::InternalError("nothing was told");
  world.operations->Watch(
      world.Stored(id), [](const EvaluationProgress&) { return true; },
      [&](absl::StatusOr<EvaluationRow> row) { told = std::move(row); });
  EXPECT_EQ(world.Cancel(id)->row.state, EvaluationState::kCancelled);
  EXPECT_EQ(told->state, EvaluationState::kCancelled);
  EXPECT_EQ(world.port.num_open(), 0u);
  EXPECT_EQ(world.Cancel(id)->row.state, EvaluationState::kCancelled);
  world.port.workers = {{"a", Mood::kAnswers}};
  const std::string done = world.Start()->row.id;
  EXPECT_EQ(world.Cancel(done)->row.state, EvaluationState::kSucceeded) << "it has ended";
  EXPECT_EQ(world.Cancel("eval-none").status().code(), absl::StatusCode::kNotFound);
  world.Restart();
  ASSERT_TRUE(world.operations->Recover().ok());
  world.executor.RunFor(absl::Seconds(10));
  EXPECT_EQ(world.Stored(id).state, EvaluationState::kCancelled);
}

TEST(EvaluationOperations, AFullDiskIsWaitedForWithTheResultInHand) {
  World world;
  world.port.workers = {{"a", Mood::kHangs}};
  const std::string id = world.Start()->row.id;
  world.log.full = true;
  world.port.AnswerOpen();
  world.executor.RunFor(absl::Minutes(1));
  EXPECT_EQ(world.Get(id)->row.state, EvaluationState::kRunning);
  EXPECT_EQ(world.Start().status().code(), absl::StatusCode::kResourceExhausted);
  world.log.full = false;
  const size_t sent = world.port.sent.size();
  world.executor.RunFor(2 * limits::kRetryMax);
  EXPECT_EQ(world.Stored(id).state, EvaluationState::kSucceeded);
  EXPECT_THAT(world.port.sent, SizeIs(sent)) << "not run again";
}

TEST(EvaluationOperations, AnEvaluationGoesWithItsJob) {
  World world;
  world.port.workers = {{"a", Mood::kHangs}};
  const std::string id = world.Start()->row.id;
  absl::Status told;
  world.operations->Watch(
      world.Stored(id), [](const EvaluationProgress&) { return true; },
      [&](const absl::StatusOr<EvaluationRow>& row) { told = row.status(); });
  world.Apply(change::SetIntent{kJob, JobIntent::kDelete});
  world.Apply(change::PurgeJob{kJob});
  world.port.AnswerOpen();
  world.executor.RunUntilIdle();
  EXPECT_EQ(told.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(world.Get(id).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(world.Get(id).status().message()), HasSubstr(id));
}

}  // namespace
}  // namespace chainfleet

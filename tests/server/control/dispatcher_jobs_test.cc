// Jobs, versions and data sets.
#include "tests/server/control/dispatcher_fixture.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

class DispatcherJobs : public DispatcherTest {
 protected:
  static Dataset Digits() {
    Dataset dataset;
    dataset.name = "digits";
    dataset.digest = DigestOf(7);
    dataset.input_shape = {1, 28, 28};
    dataset.num_rows = 1000;
    dataset.targets = Classes{10};
    dataset.normalisation = {{0.5}, {0.25}};
    dataset.shards = {{0, 1000, {"shard", 1, DigestOf(8)}}};
    return dataset;
  }
  static JobSpec OnDigits() {
    JobSpec spec = SmallSpec("digits-job", 1);
    spec.model.kind = BuiltinModel{"softmax_regression", {}};
    spec.dataset = "digits";
    return spec;
  }
  absl::StatusOr<Dataset> Put(const Dataset& dataset) {
    const std::vector<std::string> objects{dataset.shards.at(0).object.name};
    const auto upload = Wait<std::string>([&](auto done) { catalog_->BeginUpload(objects, done); });
    return Wait<Dataset>([&](auto done) { catalog_->Put(dataset, *upload, done); });
  }

  int named_ = 0;
};

TEST_F(DispatcherJobs, CreatedJobIsPendingAndItsIdIsDrawnFromTheKey) {
  const JobView job = TryCreate(SmallSpec("job", 3)).value();
  EXPECT_THAT(job.id, MatchesRegex("job-[a-z2-7]{6}"));
  EXPECT_EQ(job.state, JobState::kPending);
  EXPECT_EQ(job.chains.size(), 3u);
  EXPECT_EQ(job.chains[0].total_steps, 1000);
  EXPECT_EQ(job.created_at, clock_.Wall());
  EXPECT_NE(Create("job", 1), job.id);
}

TEST_F(DispatcherJobs, RequestIdMakesCreationRepeatable) {
  const std::string first = TryCreate(SmallSpec("job", 1), "r1")->id;
  EXPECT_EQ(TryCreate(SmallSpec("job", 1), "r1")->id, first);
  EXPECT_EQ(dispatcher_->ListJobs({}, 0, "")->items.size(), 1u);
  EXPECT_TRUE(absl::IsAlreadyExists(TryCreate(SmallSpec("job", 2), "r1").status())) << "another job, the same request";
}

TEST_F(DispatcherJobs, RequestIdHoldsAcrossARestart) {
  const std::string first = TryCreate(SmallSpec("job", 1), "r1")->id;
  Start();
  EXPECT_EQ(TryCreate(SmallSpec("job", 1), "r1")->id, first);
}

TEST_F(DispatcherJobs, BadSpecNamesItsFields) {
  JobSpec spec = SmallSpec("job", 0);
  spec.temperature = -1;
  const absl::Status status = TryCreate(spec).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  std::vector<std::string> paths;
  for (const FieldViolation& violation : FieldViolationsOf(status)) paths.push_back(violation.path);
  EXPECT_THAT(paths, testing::IsSupersetOf({"chains", "temperature"}));
}

TEST_F(DispatcherJobs, MissingDatasetIsNotFoundByName) {
  const absl::Status status = TryCreate(OnDigits()).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("digits"));
}

TEST_F(DispatcherJobs, JobPinsItsDatasetAndNormalisation) {
  ASSERT_TRUE(Put(Digits()).ok());
  const JobView job = TryCreate(OnDigits()).value();
  EXPECT_EQ(job.plan->dataset->digest, DigestOf(7));
  EXPECT_EQ(job.plan->normalisation, Digits().normalisation);
  JobSpec big = OnDigits();
  big.batch_size = 1001;
  EXPECT_TRUE(absl::IsInvalidArgument(TryCreate(big).status()));
}

TEST_F(DispatcherJobs, StandardizeTurnsTheNormalisationOff) {
  ASSERT_TRUE(Put(Digits()).ok());
  JobSpec spec = OnDigits();
  spec.standardize.inputs = false;
  EXPECT_EQ(TryCreate(spec)->plan->normalisation, Normalisation());
}

// One input is indices, or several are side by side in a row.
TEST_F(DispatcherJobs, IndicesAndMasksAreNotStandardised) {
  const auto normalisation = [&](InputType type, const Normalisation& measured,
                                 const std::vector<TensorSignature>& inputs) {
    Dataset dataset = Digits();
    const std::string name = "data-" + std::to_string(++named_);
    dataset.name = name;
    dataset.input_type = type;
    dataset.input_shape = {4};
    dataset.normalisation = measured;
    const StoredModel model{
        .name = name,
        .object = {name, 1, DigestOf(9)},
        .signature = NetworkSignature{
            .inputs = inputs, .output = {"y", "float32", {10}}, .parameters = {{"w", "float32", {3}}}}};
    const auto upload = Wait<std::string>([&](auto done) { catalog_->BeginUpload({name}, done); });
    EXPECT_TRUE(Wait<StoredModel>([&](auto done) { catalog_->Put(model, *upload, done); }).ok());
    EXPECT_TRUE(Put(dataset).ok());
    JobSpec spec = OnDigits();
    spec.dataset = name;
    spec.model.kind = StoredNetworkModel{name, ModelFormat::kExported};
    const auto job = TryCreate(spec);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? job->plan->normalisation : Normalisation();
  };
  const TensorSignature ids{"ids", "int64", {2}}, x{"x", "float32", {1}}, mask{"mask", "bool", {1}};
  const Normalisation columns{{1, 2, 3, 4}, {5, 6, 7, 8}}, all{{0.5}, {0.25}};
  EXPECT_EQ(normalisation(InputType::kFloat32, columns, {ids, x, mask}), (Normalisation{{0, 0, 3, 0}, {1, 1, 7, 1}}));
  EXPECT_EQ(normalisation(InputType::kUint8, all, {x, ids, mask}),
            (Normalisation{{0.5, 0, 0, 0}, {0.25, 1.0 / 255, 1.0 / 255, 1.0 / 255}}));
  const TensorSignature numbers{"z", "float32", {3}};
  EXPECT_EQ(normalisation(InputType::kFloat32, columns, {x, numbers}), columns);
  EXPECT_EQ(normalisation(InputType::kFloat32, columns, {{"ids", "int64", {4}}}), Normalisation());
  EXPECT_EQ(normalisation(InputType::kUint8, all, {{"ids", "int64", {4}}}), (Normalisation{{0}, {1.0 / 255}}));
}

TEST_F(DispatcherJobs, StartsThatAreNotWholePointsAreRefused) {
  JobSpec spec = SmallSpec("walk", 2);
  spec.init.theta = {1, 2, 3};
  const auto violations = FieldViolationsOf(TryCreate(spec).status());
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].path, "init.theta");
  EXPECT_EQ(violations[0].message, "has 3 numbers; the model has 2 parameters: give 1 number, 2, or a multiple");
  spec.init = {.theta = {1, NAN}};
  EXPECT_EQ(FieldViolationsOf(TryCreate(spec).status())[0].path, "init.theta[1]");
  spec.init = {.theta = {1, 2, 3, 4}, .perturb = 0.1};
  EXPECT_EQ(TryCreate(spec)->plan->spec.init, spec.init);
}

TEST_F(DispatcherJobs, ModelThatNoWorkerCouldHoldIsRefused) {
  ASSERT_TRUE(Put(Digits()).ok());
  JobSpec spec = OnDigits();
  spec.model.kind = BuiltinModel{"mlp", {65536, 65536, 10}};
  const auto violations = FieldViolationsOf(TryCreate(spec).status());
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].path, "model");
  EXPECT_THAT(violations[0].message,
              MatchesRegex("one chain of 4347[0-9]+ parameters in batches of .* would take about "
                           "14[0-9][.0-9]* GiB, the most is 64 GiB"));
  spec.model.kind = BuiltinModel{"mlp", {65536, 10}};
  EXPECT_TRUE(TryCreate(spec).ok());
}

// "refuse beyond the free disk": 2 chains of 1,000 draws of two float32.
TEST_F(DispatcherJobs, DrawsThatTheDiskCannotHoldAreRefused) {
  free_bytes_ = 2 * 1000 * 2 * 4 - 1;
  const absl::Status refused = TryCreate(SmallSpec("walk", 2)).status();
  EXPECT_EQ(ReasonOf(refused), "DISK_TOO_SMALL");
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("16000 bytes, and the disk for them has 15999 free"));
  JobSpec may_end_early = SmallSpec("walk", 2);
  may_end_early.until.max_draws = 10;
  EXPECT_TRUE(TryCreate(may_end_early).ok());
  free_bytes_ = 2 * 1000 * 2 * 4;
  EXPECT_TRUE(TryCreate(SmallSpec("walk", 2)).ok());
}

TEST_F(DispatcherJobs, ValidateOnlyStoresNothing) {
  const auto view =
      Wait<JobView>([&](auto done) { dispatcher_->CreateJob(kDefaultTenant, SmallSpec("job", 1), "", true, done); });
  EXPECT_TRUE(view.ok());
  EXPECT_EQ(view->id, "");
  EXPECT_TRUE(store_->Load()->jobs.empty());
}

// "after a job is deleted an older one of its name answers silently": it is another posterior.
TEST_F(DispatcherJobs, NamesResolveToTheNewestJobAndToNoOlderOne) {
  const std::string older = Create("job", 1), newer = Create("job", 1);
  EXPECT_EQ(dispatcher_->GetJob(IdOf("job"))->id, newer);
  EXPECT_EQ(dispatcher_->GetJob(IdOf("@latest"))->id, newer);
  ASSERT_TRUE(SetIntent(newer, JobIntent::kDelete).ok());
  EXPECT_EQ(dispatcher_->GetJob(IdOf("@latest"))->id, older);
  const auto expect_refusal = [&] {
    const absl::Status refused = dispatcher_->ResolveJob(kDefaultTenant, "job").status();
    EXPECT_TRUE(absl::IsNotFound(refused));
    EXPECT_EQ(refused.message(),
              "the newest job job was deleted; " + older + " is an older one of this name: ask for it by its id");
    EXPECT_EQ(dispatcher_->ResolveJob(kDefaultTenant, older).value(), older);
  };
  expect_refusal();
  executor_.RunFor(limits::kPredictDeadline + absl::Seconds(1));  // purged
  EXPECT_EQ(store_->Load()->jobs.size(), 1u);
  expect_refusal();
  Start();
  expect_refusal();
  for (int i = 0; i < 2; ++i) Create("spare", 1);  // a new process makes the same ids again
  const std::string newest = Create("job", 1);
  EXPECT_EQ(dispatcher_->ResolveJob(kDefaultTenant, "job").value(), newest);
  EXPECT_TRUE(absl::IsNotFound(dispatcher_->GetJob(IdOf("other")).status()));
}

TEST_F(DispatcherJobs, ListsNewestFirstByPagesBoundToTheirArguments) {
  std::vector<std::string> created;
  for (int i = 0; i < 5; ++i) created.push_back(Create("job", 1));
  std::vector<std::string> listed;
  std::string token;
  do {
    const Page<ListedJob> page = dispatcher_->ListJobs({}, 2, token).value();
    for (const ListedJob& job : page.items) listed.push_back(job.id);
    token = page.next_page_token;
  } while (!token.empty());
  EXPECT_THAT(listed, testing::ElementsAreArray(created.rbegin(), created.rend()));
  token = dispatcher_->ListJobs({}, 2, "")->next_page_token;
  EXPECT_TRUE(absl::IsInvalidArgument(dispatcher_->ListJobs({.state = JobState::kPending}, 2, token).status()));
  ASSERT_TRUE(SetIntent(created[1], JobIntent::kCancel).ok());
  const Page<ListedJob> cancelled = dispatcher_->ListJobs({.state = JobState::kCancelled}, 2, "").value();
  ASSERT_EQ(cancelled.items.size(), 1u);
  EXPECT_EQ(cancelled.items[0].id, created[1]);
}

TEST_F(DispatcherJobs, PageTokensDoNotTellHowManyJobsOtherTenantsMade) {
  const auto create = [&](const std::string& tenant) {
    return Wait<JobView>([&](auto done) { dispatcher_->CreateJob(tenant, SmallSpec("job", 1), "", false, done); })->id;
  };
  const auto list = [&](const std::string& token) { return dispatcher_->ListJobs({.tenant = "mine"}, 1, token); };
  const std::string first = create("mine"), second = create("mine");
  const std::string before = list("")->next_page_token;
  for (int i = 0; i < 3; ++i) create("other");
  const std::string third = create("mine"), after = list("")->next_page_token;
  // A token is the hash of its cursor, and the cursor. The ids are random, and the caller has them anyway.
  EXPECT_THAT(before, testing::EndsWith("." + second));
  EXPECT_THAT(after, testing::EndsWith("." + third));
  Start();
  EXPECT_EQ(list(after)->items.at(0).id, second) << "the token outlives the server";
  EXPECT_EQ(list(before)->items.at(0).id, first);
}

TEST_F(DispatcherJobs, APageTokenIsRefusedOnceTheLastJobBeforeItIsPurged) {
  Create("job", 1);
  const std::string newest = Create("job", 1), token = dispatcher_->ListJobs({}, 1, "")->next_page_token;
  ASSERT_TRUE(SetIntent(newest, JobIntent::kDelete).ok());
  EXPECT_TRUE(dispatcher_->ListJobs({}, 1, token).ok());
  executor_.RunFor(limits::kPredictDeadline + absl::Seconds(1));
  EXPECT_EQ(ReasonOf(dispatcher_->ListJobs({}, 1, token).status()), "BAD_PAGE_TOKEN");
}

TEST_F(DispatcherJobs, ListHasSumsOverTheChainsOfAJob) {
  const std::string id = Create("job", 3);
  const auto listed = [this] { return dispatcher_->ListJobs({}, 0, "")->items.at(0); };
  FakeWorker worker("w1", 3);
  for (int i = 0; i < 3; ++i) Sync(&worker);
  ASSERT_EQ(worker.chains.size(), 3u);
  EXPECT_FALSE(listed().has_usable_draws);
  Advance(&worker, {id, 0}, ChainState::kDiverged);
  EXPECT_FALSE(listed().has_usable_draws) << "those of a chain that diverged";
  Advance(&worker, {id, 1});
  Advance(&worker, {id, 1});
  const ListedJob job = listed();
  EXPECT_EQ(job.state, JobState::kRunning);
  EXPECT_EQ(job.num_draws, 3);
  EXPECT_EQ(job.step, 10 + 20);
  EXPECT_EQ(job.total_steps, 3000);
  EXPECT_TRUE(job.has_usable_draws);
}

TEST_F(DispatcherJobs, WatcherHearsOfTheNextChangeOnly) {
  const std::string id = Create("job", 1);
  const auto first = Wait<Dispatcher::Watched>([&](auto done) { dispatcher_->WatchJob(id, 0, done); });
  ASSERT_TRUE(first.ok());
  Answer<Dispatcher::Watched> next;
  dispatcher_->WatchJob(id, first->version, next.reply());
  executor_.RunUntilIdle();
  EXPECT_FALSE(next.has());
  ASSERT_TRUE(SetIntent(id, JobIntent::kPause).ok());
  ASSERT_TRUE(next.has());
  EXPECT_EQ(next.get()->job->state, JobState::kPaused);
  EXPECT_GT(next.get()->version, first->version);
}

TEST_F(DispatcherJobs, WatchersOfOneVersionShareItsView) {
  const std::string id = Create("job", 1);
  const auto watch = [&] {
    return Wait<Dispatcher::Watched>([&](auto done) { dispatcher_->WatchJob(id, 0, done); }).value();
  };
  const Dispatcher::Watched first = watch();
  EXPECT_EQ(watch().job, first.job);
  Answer<Dispatcher::Watched> one, another;
  dispatcher_->WatchJob(id, first.version, one.reply());
  dispatcher_->WatchJob(id, first.version, another.reply());
  ASSERT_TRUE(SetIntent(id, JobIntent::kPause).ok());
  ASSERT_TRUE(one.has() && another.has());
  EXPECT_EQ(one.get()->job->state, JobState::kPaused);
  EXPECT_EQ(one.get()->job, another.get()->job);
  EXPECT_EQ(watch().job, one.get()->job);
  EXPECT_EQ(first.job->state, JobState::kPending) << "a view does not change";
}

TEST_F(DispatcherJobs, WatchersSeeStatisticsOfTheCommitAndNewVersions) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  Answer<Dispatcher::Watched> committed, versioned;
  dispatcher_->WatchJob(chain.job, 1000, committed.reply());
  Advance(&worker, chain);
  ASSERT_TRUE(committed.has());
  EXPECT_EQ(committed.get()->job->num_draws, 1);
  EXPECT_EQ(committed.get()->job->chains.at(0).stats.energy, 10);
  EXPECT_EQ(committed.get()->job->newest_version, 0);
  dispatcher_->WatchJob(chain.job, committed.get()->version, versioned.reply());
  ASSERT_TRUE(Pin("job", 0, true).ok());
  ASSERT_TRUE(versioned.has());
  EXPECT_EQ(versioned.get()->job->newest_version, 1);
}

TEST_F(DispatcherJobs, ViewIsFreedWhenItsVersionPassesOrTheJobHasEnded) {
  const std::string id = Create("job", 1);
  const auto watch = [&]() -> std::weak_ptr<const JobView> {
    return Wait<Dispatcher::Watched>([&](auto done) { dispatcher_->WatchJob(id, 0, done); })->job;
  };
  const std::weak_ptr<const JobView> running = watch();
  EXPECT_FALSE(running.expired()) << "the next watcher takes it";
  ASSERT_TRUE(SetIntent(id, JobIntent::kCancel).ok());
  EXPECT_TRUE(running.expired());
  EXPECT_TRUE(watch().expired());
}

TEST_F(DispatcherJobs, WatcherThatLeftMakesRoomForAnother) {
  const std::string id = Create("job", 1);
  std::vector<Dispatcher::WatchTicket> tickets;
  Answer<Dispatcher::Watched> left, refused, next;
  tickets.push_back(dispatcher_->WatchJob(id, 1000, left.reply()));
  for (int i = 1; i < 1024; ++i) tickets.push_back(dispatcher_->WatchJob(id, 1000, [](const auto&) {}));
  dispatcher_->WatchJob(id, 1000, refused.reply());
  executor_.RunUntilIdle();
  EXPECT_EQ(ReasonOf(refused.get().status()), "QUEUE_FULL");
  EXPECT_EQ(BoundOf(refused.get().status()), "job_watchers");
  dispatcher_->Unwatch(tickets.front());
  dispatcher_->Unwatch(tickets.front());
  dispatcher_->WatchJob(id, 1000, next.reply());
  executor_.RunUntilIdle();
  EXPECT_TRUE(absl::IsCancelled(left.get().status()));
  EXPECT_FALSE(next.has());
}

TEST_F(DispatcherJobs, DeletedJobGoesAfterTheLongestPrediction) {
  const std::string id = Create("job", 1);
  ASSERT_TRUE(SetIntent(id, JobIntent::kDelete).ok());
  EXPECT_EQ(dispatcher_->GetJob(id)->state, JobState::kDeleting);
  Answer<Dispatcher::Watched> gone;
  dispatcher_->WatchJob(id, 1000, gone.reply());
  executor_.RunFor(limits::kPredictDeadline - absl::Seconds(1));
  EXPECT_TRUE(dispatcher_->GetJob(id).ok());
  Start();  // a deletion outlives the server
  executor_.RunFor(limits::kPredictDeadline + absl::Seconds(1));
  EXPECT_TRUE(absl::IsNotFound(dispatcher_->GetJob(id).status()));
  EXPECT_TRUE(store_->Load()->jobs.empty());
}

TEST_F(DispatcherJobs, WatcherOfADeletedJobHearsThatItIsGone) {
  const std::string id = Create("job", 1);
  ASSERT_TRUE(SetIntent(id, JobIntent::kDelete).ok());
  Answer<Dispatcher::Watched> gone;
  dispatcher_->WatchJob(id, 1000, gone.reply());
  executor_.RunFor(limits::kPredictDeadline + absl::Seconds(1));
  EXPECT_TRUE(absl::IsNotFound(gone.get().status()));
}

TEST_F(DispatcherJobs, IntentsOnlyTighten) {
  const std::string id = Create("job", 1);
  EXPECT_EQ(SetIntent(id, JobIntent::kPause)->state, JobState::kPaused);
  EXPECT_EQ(SetIntent(id, JobIntent::kPause)->state, JobState::kPaused) << "idempotent";
  EXPECT_EQ(SetIntent(id, JobIntent::kRun)->state, JobState::kPending);
  EXPECT_EQ(SetIntent(id, JobIntent::kCancel)->state, JobState::kCancelled);
  EXPECT_EQ(SetIntent(id, JobIntent::kCancel)->state, JobState::kCancelled) << "idempotent";
  EXPECT_TRUE(absl::IsFailedPrecondition(SetIntent(id, JobIntent::kRun).status()));
  EXPECT_TRUE(absl::IsNotFound(SetIntent("nothing", JobIntent::kPause).status()));
}

// The last one that is told so counts, also if the one before is still on its way to the store.
TEST_F(DispatcherJobs, AResumeAfterAPauseThatIsNotWrittenYetResumes) {
  const std::string id = Create("job", 1);
  Answer<JobView> paused, resumed;
  dispatcher_->SetIntent(id, JobIntent::kPause, paused.reply());
  dispatcher_->SetIntent(id, JobIntent::kRun, resumed.reply());
  executor_.RunUntilIdle();
  EXPECT_EQ(paused.get()->state, JobState::kPaused);
  EXPECT_EQ(resumed.get()->state, JobState::kPending);
  EXPECT_EQ(dispatcher_->GetJob(id)->state, JobState::kPending);
}

TEST_F(DispatcherJobs, VersionsPinDrawsAndTheLastIsMadeWhenTheJobEnds) {
  FakeWorker worker("w1");
  const ChainId chain = LeaseOne(&worker);
  EXPECT_EQ(ReasonOf(Pin("job", 0, true).status()), "NO_DRAWS");
  Advance(&worker, chain);
  EXPECT_EQ(ReasonOf(Pin("job", 0, false).status()), "NO_DRAWS") << "no version yet";
  EXPECT_EQ(Pin("job", 0, true)->number, 1);
  EXPECT_EQ(Pin("job", 0, true)->number, 1);
  Advance(&worker, chain);
  EXPECT_EQ(Pin("job", 0, false)->number, 1);
  EXPECT_EQ(Pin("job", 0, true)->number, 2);
  Advance(&worker, chain, ChainState::kSucceeded);
  const JobView job = dispatcher_->GetJob(IdOf("job")).value();
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.newest_version, 3);
  EXPECT_THAT(Pin("job", 0, false)->draws_of_chain, ElementsAre(3));
  EXPECT_THAT(Pin("job", 1, false)->draws_of_chain, ElementsAre(1));
  EXPECT_TRUE(absl::IsNotFound(Pin("job", 9, false).status()));
  Start();
  EXPECT_EQ(Pin("job", 0, false)->number, 3);
}

TEST_F(DispatcherJobs, DatasetInUseIsKept) {
  ASSERT_TRUE(Put(Digits()).ok());
  EXPECT_TRUE(Put(Digits()).ok());
  Dataset other = Digits();
  other.digest = DigestOf(9);
  EXPECT_TRUE(absl::IsAlreadyExists(Put(other).status()));
  const std::string id = TryCreate(OnDigits())->id;
  const auto drop = [&] { return Wait<bool>([&](auto done) { catalog_->DeleteDataset({}, "digits", done); }); };
  EXPECT_EQ(ReasonOf(drop().status()), "IN_USE");
  EXPECT_THAT(std::string(drop().status().message()), HasSubstr(id));
  ASSERT_TRUE(SetIntent(id, JobIntent::kDelete).ok());
  EXPECT_TRUE(drop().ok());
  EXPECT_TRUE(absl::IsNotFound(catalog_->datasets().Get({}, "digits").status()));
}

TEST_F(DispatcherJobs, ListsDatasetsByPages) {
  for (const char* name : {"a", "b", "c"}) {
    Dataset dataset = Digits();
    dataset.name = name;
    ASSERT_TRUE(Put(dataset).ok());
  }
  const Page<Dataset> first = catalog_->datasets().List({}, 2, "").value();
  ASSERT_EQ(first.items.size(), 2u);
  const Page<Dataset> rest = catalog_->datasets().List({}, 2, first.next_page_token).value();
  ASSERT_EQ(rest.items.size(), 1u);
  EXPECT_EQ(rest.items[0].name, "c");
  EXPECT_EQ(rest.next_page_token, "");
}

}  // namespace
}  // namespace chainfleet

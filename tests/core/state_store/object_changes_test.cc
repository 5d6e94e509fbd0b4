// Which objects every StateStore keeps, declares garbage, or queues for a sweep.
#include "tests/core/state_store/state_store_fixture.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ObjectChanges : public StateStoreTest {
 protected:
  ApplyResult Begin(const std::string& upload, const std::string& object = "shard-0") {
    return Apply(change::BeginUpload{upload, {object}});
  }
  ApplyResult Repair(const std::string& upload, const std::vector<std::string>& objects = {"shard-0"}) {
    return Apply(change::BeginUpload{upload, objects, true});
  }
  std::vector<ChainId> Queued() {
    std::vector<ChainId> chains;
    const std::vector<ChainSweep> sweeps = store_->ListSweeps(0, 10).value();
    for (const ChainSweep& sweep : sweeps) chains.push_back(sweep.chain);
    return chains;
  }
  void EndSweeps() {
    const std::vector<ChainSweep> sweeps = store_->ListSweeps(0, 10).value();
    for (const ChainSweep& sweep : sweeps) Apply(change::EndSweep{sweep.ticket});
    ASSERT_THAT(Queued(), IsEmpty());
  }
};

TEST_P(ObjectChanges, ARepairHoldsWhatIsStoredAndNothingElse) {
  Put(SmallDataset("digits"));
  EXPECT_EQ(ReasonOf(Repair("u", {"shard-0", "shard-1"}).status), "BEING_DELETED");
  EXPECT_TRUE(Apply(change::DeleteDataset{"digits"}).status.ok());
  EXPECT_THAT(Garbage(), ElementsAre("shard-0")) << "the refused one holds nothing";
}

TEST_P(ObjectChanges, NoRepairTakesGarbageBackBeforeOrAfterItsDeletion) {
  Put(SmallDataset("digits"));
  Apply(change::DeleteDataset{"digits"});
  EXPECT_EQ(ReasonOf(Repair("u").status), "BEING_DELETED");
  EXPECT_THAT(Garbage(), ElementsAre("shard-0"));
  Apply(change::ForgetGarbage{{"shard-0"}});
  EXPECT_EQ(ReasonOf(Repair("u").status), "BEING_DELETED");
}

TEST_P(ObjectChanges, RepairedContentMayBeRegisteredAgain) {
  Put(SmallDataset("digits"));
  ASSERT_TRUE(Repair("u").status.ok());
  Apply(change::DeleteDataset{"digits"});
  EXPECT_THAT(Garbage(), IsEmpty());
  EXPECT_TRUE(Apply(change::PutDataset{SmallDataset("digits"), "u"}).status.ok());
  EXPECT_THAT(Garbage(), IsEmpty());
}

TEST_P(ObjectChanges, TheOwnerNamesTheClassesOfStoredContentAnew) {
  const auto put = [&](const std::vector<std::string>& names) {
    EXPECT_TRUE(Repair("u").status.ok());
    Dataset again = SmallDataset("digits");
    again.class_names = names;
    return Apply(change::PutDataset{again, "u"});
  };
  Put(SmallDataset("digits"));
  EXPECT_THAT(put({"zero", "one"}).dataset->class_names, ElementsAre("zero", "one"));
  EXPECT_THAT(put({}).dataset->class_names, ElementsAre("zero", "one")) << "no names change nothing";
  EXPECT_THAT(store_->Load().value().datasets.at(0).class_names, ElementsAre("zero", "one"));
  EXPECT_THAT(Garbage(), IsEmpty());
}

TEST_P(ObjectChanges, TheSecondOfTwoFirstPutsLeavesItsObjects) {
  Begin("u");
  Begin("v", "shard-1");
  EXPECT_TRUE(Apply(change::PutDataset{SmallDataset("digits"), "u"}).status.ok());
  const ApplyResult second = Apply(change::PutDataset{SmallDataset("digits", "shard-1"), "v"});
  ASSERT_TRUE(second.status.ok()) << second.status;
  EXPECT_EQ(second.dataset->shards[0].object.name, "shard-0");
  EXPECT_THAT(Garbage(), ElementsAre("shard-1"));
}

TEST_P(ObjectChanges, ADatasetOfEqualShardsKeepsThemAfterItsClassesGetNames) {
  Dataset digits = SmallDataset("digits");
  digits.shards.push_back({100, 100, digits.shards[0].object});
  digits.shards.push_back({200, 1, {"shard-1", 1, DigestOf(9)}});
  ASSERT_TRUE(Put(digits).status.ok());
  digits.class_names = {"zero", "one"};
  ASSERT_TRUE(Put(digits).status.ok());
  EXPECT_TRUE(Repair("u", {"shard-0", "shard-1"}).status.ok());
  Apply(change::EndUpload{"u"});
  EXPECT_THAT(Garbage(), IsEmpty());
  EXPECT_TRUE(Apply(change::DeleteDataset{"digits"}).status.ok());
  EXPECT_THAT(Garbage(), ElementsAre("shard-0", "shard-1"));
}

TEST_P(ObjectChanges, ADatasetAndAModelOfOneNameAreDeletedApart) {
  Put(SmallDataset("mine"));
  Put(StoredModel{.name = "mine", .object = {"module-0", 12, DigestOf(3)}});
  EXPECT_TRUE(Apply(change::DeleteDataset{"mine"}).status.ok());
  EXPECT_THAT(Garbage(), ElementsAre("shard-0"));
  EXPECT_TRUE(Repair("u", {"module-0"}).status.ok());
  Apply(change::EndUpload{"u"});
  EXPECT_TRUE(Apply(change::DeleteModel{"mine"}).status.ok());
  EXPECT_THAT(Garbage(), ElementsAre("module-0", "shard-0"));
}

TEST_P(ObjectChanges, MoreContentsThanOnePageOfReadsAreLoadedByName) {
  for (int i = 0; i < 40; ++i) {
    const std::string n = std::to_string(100 + i);
    Put(SmallDataset("d" + n, "shard-" + n));
    Put(StoredModel{.name = "m" + n, .object = {"module-" + n, 12, DigestOf(i)}});
  }
  const StoredState state = store_->Load().value();
  ASSERT_EQ(state.datasets.size(), 40u);
  ASSERT_EQ(state.models.size(), 40u);
  for (size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(state.datasets[i].name, "d" + std::to_string(100 + i));
    EXPECT_EQ(state.models[i].name, "m" + std::to_string(100 + i));
  }
}

TEST_P(ObjectChanges, TenantsHaveNamesOfTheirOwn) {
  const auto put = [&](const std::string& tenant, uint64_t digest) {
    Begin(tenant, "of-" + tenant);
    Dataset digits = SmallDataset("digits", "of-" + tenant);
    digits.tenant = tenant;
    digits.digest = DigestOf(digest);
    return Apply(change::PutDataset{digits, tenant}).status;
  };
  EXPECT_TRUE(put("vision", 1).ok());
  EXPECT_TRUE(put("speech", 2).ok());
  EXPECT_TRUE(put(kDefaultTenant, 3).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(put("speech", 1))) << "what vision has changes nothing";
  EXPECT_TRUE(Apply(change::DeleteDataset{"speech/digits"}).status.ok());
  EXPECT_THAT(Garbage(), ElementsAre("of-speech"));
  EXPECT_EQ(ReasonOf(Apply(change::DeleteDataset{"speech/digits"}).status), "DATASET_NOT_FOUND");
  EXPECT_TRUE(Apply(change::DeleteDataset{"digits"}).status.ok());
  ASSERT_EQ(store_->Load()->datasets.size(), 1u);
  EXPECT_EQ(store_->Load()->datasets[0].tenant, "vision");
  EXPECT_EQ(store_->Load()->datasets[0].digest, DigestOf(1));
}

TEST_P(ObjectChanges, SharingIsKeptUntilItEnds) {
  StoredModel model = {.name = "mine", .object = {"module-0", 12, DigestOf(3)}, .tenant = "vision"};
  Begin("u", "module-0");
  ASSERT_TRUE(Apply(change::PutModel{model, "u"}).status.ok());
  const auto share = [&](const std::vector<std::string>& tenants, bool stop = false) {
    return Apply(change::ShareContent{"vision/mine", true, tenants, stop});
  };
  EXPECT_THAT(share({"speech", "audio", "speech"}).model->shared_with, ElementsAre("audio", "speech"));
  EXPECT_THAT(share({"*"}).model->shared_with, ElementsAre("*", "audio", "speech"));
  store_ = harness_->Open();
  EXPECT_THAT(store_->Load()->models.at(0).shared_with, ElementsAre("*", "audio", "speech"));
  EXPECT_THAT(share({"audio", "nobody"}, true).model->shared_with, ElementsAre("*", "speech"));
  std::vector<std::string> many;
  for (size_t i = 0; i < limits::kMaxTenantsSharedWith; ++i) many.push_back("t" + std::to_string(i));
  EXPECT_EQ(ReasonOf(share(many).status), "INVALID_FIELD");
  EXPECT_THAT(share({}, true).model->shared_with, IsEmpty());
  EXPECT_EQ(ReasonOf(Apply(change::ShareContent{"mine", true, {"speech"}}).status), "MODEL_NOT_FOUND");
  EXPECT_EQ(ReasonOf(Apply(change::ShareContent{"vision/mine", false, {"speech"}}).status), "DATASET_NOT_FOUND");
  EXPECT_THAT(Garbage(), IsEmpty());
}

TEST_P(ObjectChanges, TheOwnerLearnsNoJobsOfOthers) {
  Dataset digits = SmallDataset("digits");
  digits.tenant = "vision";
  Begin("u");
  ASSERT_TRUE(Apply(change::PutDataset{digits, "u"}).status.ok());
  for (const auto& [job, tenant] : {std::pair("own-aaaaaa", "vision"), std::pair("theirs-aaaaaa", "speech")}) {
    auto plan = std::make_shared<JobPlan>(*PlanOf(job, 1));
    plan->dataset = digits;
    ASSERT_TRUE(Apply(change::CreateJob{plan, "", tenant}).status.ok());
  }
  const absl::Status used = Apply(change::DeleteDataset{"vision/digits"}).status;
  EXPECT_EQ(ReasonOf(used), "IN_USE");
  EXPECT_EQ(used.message(), "dataset digits is used by own-aaaaaa, jobs of other tenants: delete these jobs first");
}

TEST_P(ObjectChanges, ADatasetNeedsAnUploadThatHoldsItsShards) {
  EXPECT_EQ(ReasonOf(Apply(change::PutDataset{SmallDataset("digits"), "u"}).status), "NOT_HELD");
  Begin("u", "shard-1");
  EXPECT_EQ(ReasonOf(Apply(change::PutDataset{SmallDataset("digits"), "u"}).status), "NOT_HELD");
  EXPECT_THAT(Garbage(), ElementsAre("shard-1")) << "the upload is over";
  EXPECT_THAT(store_->Load()->datasets, IsEmpty());
}

TEST_P(ObjectChanges, AnUploadThatBreaksOffLeavesGarbage) {
  Begin("u");
  Apply(change::EndUpload{"u"});
  EXPECT_THAT(Garbage(), ElementsAre("shard-0"));
}

TEST_P(ObjectChanges, AnUploadThatBreaksOffLeavesWhatOthersHaveAlone) {
  Begin("u");
  Begin("v");
  Apply(change::EndUpload{"u"});
  EXPECT_THAT(Garbage(), IsEmpty()) << "v holds it";
  EXPECT_TRUE(Apply(change::PutDataset{SmallDataset("digits"), "v"}).status.ok());
  Begin("w");
  Apply(change::EndUpload{"w"});
  EXPECT_THAT(Garbage(), IsEmpty()) << "a data set has it";
}

TEST_P(ObjectChanges, ARefusedDatasetEndsItsUpload) {
  Put(SmallDataset("digits"));
  Dataset other = SmallDataset("digits", "shard-1");
  other.digest = DigestOf(9);
  EXPECT_TRUE(absl::IsAlreadyExists(Put(other).status));
  EXPECT_THAT(Garbage(), ElementsAre("shard-1"));
}

TEST_P(ObjectChanges, ADeletedDatasetLeavesWhatAnUploadHolds) {
  Put(SmallDataset("digits"));
  Begin("u");
  Apply(change::DeleteDataset{"digits"});
  EXPECT_THAT(Garbage(), IsEmpty());
  Apply(change::EndUpload{"u"});
  EXPECT_THAT(Garbage(), ElementsAre("shard-0"));
}

TEST_P(ObjectChanges, UploadsOfADeadProcessEndTogether) {
  Put(SmallDataset("digits"));
  Begin("u");
  Begin("v", "shard-1");
  Begin("w", "shard-2");
  store_ = harness_->Open();
  Apply(change::EndUpload{std::nullopt});
  EXPECT_THAT(Garbage(), ElementsAre("shard-1", "shard-2"));
}

TEST_P(ObjectChanges, AModelIsKeptOnceByItsContent) {
  const StoredModel mine = {"mine", {"module-0", 12, DigestOf(3)}, {}};
  const ApplyResult put = Put(mine);
  ASSERT_TRUE(put.status.ok()) << put.status;
  EXPECT_EQ(put.model->created_at, wall_);
  EXPECT_TRUE(Put(mine).status.ok()) << "the same again";
  EXPECT_TRUE(absl::IsAlreadyExists(Put({"mine", {"module-1", 12, DigestOf(4)}, {}}).status));
  EXPECT_THAT(Garbage(), ElementsAre("module-1"));
  store_ = harness_->Open();
  ASSERT_EQ(store_->Load()->models.size(), 1u);
  EXPECT_EQ(store_->Load()->models[0].object, mine.object);
  EXPECT_EQ(ReasonOf(Apply(change::PutModel{{"other", {"module-2", 1, DigestOf(5)}, {}}, "none"}).status), "NOT_HELD");
}

TEST_P(ObjectChanges, AModelGoesWhenNoJobUsesIt) {
  const StoredModel mine = {"mine", {"module-0", 12, DigestOf(3)}, {}};
  auto plan = std::make_shared<JobPlan>(*PlanOf("job-aaaaaa", 1));
  plan->module = mine;
  EXPECT_EQ(ReasonOf(Apply(change::CreateJob{plan, ""}).status), "MODEL_NOT_FOUND");
  Put(mine);
  ASSERT_TRUE(Apply(change::CreateJob{plan, ""}).status.ok());
  const absl::Status used = Apply(change::DeleteModel{"mine"}).status;
  EXPECT_EQ(ReasonOf(used), "IN_USE");
  EXPECT_THAT(std::string(used.message()), testing::HasSubstr("job-aaaaaa"));
  Apply(change::SetIntent{"job-aaaaaa", JobIntent::kDelete});
  EXPECT_TRUE(Apply(change::DeleteModel{"mine"}).status.ok());
  EXPECT_THAT(Garbage(), ElementsAre("module-0"));
  EXPECT_TRUE(absl::IsNotFound(Apply(change::DeleteModel{"mine"}).status));
  Put({"mine", {"module-1", 12, DigestOf(3)}, {}});
  auto later = std::make_shared<JobPlan>(*plan);
  later->job = "job-bbbbbb";
  EXPECT_EQ(ReasonOf(Apply(change::CreateJob{later, ""}).status), "MODEL_NOT_FOUND") << "module-0 may be gone";
}

TEST_P(ObjectChanges, FilesOfWeightsStayWhileAJobStartsThere) {
  const auto weights = [](const std::string& name, uint64_t digest) {
    return StoredModel{.name = name, .object = {"of-" + name, 12, DigestOf(digest)}};
  };
  auto plan = std::make_shared<JobPlan>(*PlanOf("job-aaaaaa", 1));
  plan->module = weights("net", 3);
  plan->weights = {weights("map-1", 4), weights("map-2", 5)};
  Put(*plan->module);
  Put(plan->weights[0]);
  EXPECT_EQ(ReasonOf(Apply(change::CreateJob{plan, ""}).status), "MODEL_NOT_FOUND") << "map-2 is not there";
  Put(plan->weights[1]);
  Put(weights("map", 6));
  ASSERT_TRUE(Apply(change::CreateJob{plan, ""}).status.ok());
  EXPECT_TRUE(Apply(change::DeleteModel{"map"}).status.ok()) << "a part of a name is another name";
  for (const char* name : {"net", "map-1", "map-2"}) {
    EXPECT_EQ(ReasonOf(Apply(change::DeleteModel{name}).status), "IN_USE") << name;
  }
  Apply(change::SetIntent{"job-aaaaaa", JobIntent::kDelete});
  EXPECT_TRUE(Apply(change::DeleteModel{"map-2"}).status.ok());
}

TEST_P(ObjectChanges, GarbageComesByPages) {
  for (const char* object : {"a", "b", "c"}) {
    Begin(object, object);
    Apply(change::EndUpload{object});
  }
  EXPECT_THAT(*store_->ListGarbage("", 2), ElementsAre("a", "b"));
  EXPECT_THAT(*store_->ListGarbage("b", 2), ElementsAre("c"));
}

TEST_P(ObjectChanges, AChainIsQueuedWhenItsEpochRisesAndWhenItEnds) {
  Create("job-aaaaaa", 2);
  Grant(chain_, 1);
  EXPECT_THAT(Queued(), IsEmpty()) << "no epoch before it could have left anything";
  Apply(change::EndLease{chain_, 1, false, true, "lost"});
  Grant(chain_, 2);
  EXPECT_THAT(Queued(), ElementsAre(chain_));
  EndSweeps();
  EXPECT_TRUE(Grant(chain_, 2).status.ok());
  EXPECT_THAT(Queued(), IsEmpty()) << "the same grant again";
  change::CommitProgress last = CommitAt(RowOf(chain_), 10);
  last.ends_as = ChainState::kSucceeded;
  Apply(last);
  EXPECT_THAT(Queued(), ElementsAre(chain_));
}

TEST_P(ObjectChanges, ChainsThatEndWithTheirJobAreQueuedAndAgainWhenItIsPurged) {
  Create("job-aaaaaa", 2);
  Grant(chain_, 1);
  Apply(change::SetIntent{"job-aaaaaa", JobIntent::kDelete});
  EXPECT_THAT(Queued(), ElementsAre(chain_)) << "the other was never granted";
  EndSweeps();
  Apply(change::PurgeJob{"job-aaaaaa"});
  EXPECT_THAT(Queued(), ElementsAre(chain_));
}

TEST_P(ObjectChanges, APurgeGoesByPagesAlsoAfterACrashAndQueuesItsChainsWithTheLast) {
  Create("job-aaaaaa", 2);
  for (int32_t chain = 0; chain < 2; ++chain) {
    ChainRow row = Grant({"job-aaaaaa", chain}, 1).chains.at(0);
    for (const int64_t step : {10, 20, 30, 40}) row = Apply(CommitAt(row, step)).chains.at(0);
  }
  Apply(change::SetIntent{"job-aaaaaa", JobIntent::kDelete});
  EndSweeps();
  const change::PurgeJob first{.job = "job-aaaaaa", .page = 3};
  for (int attempt = 0; attempt < 2; ++attempt) {
    const ApplyResult result = Apply(first);
    ASSERT_TRUE(result.status.ok()) << result.status;
    ASSERT_TRUE(result.purge.has_value());
    EXPECT_EQ(store_->ListSegments({.job = "job-aaaaaa"})->size(), 5u - 3 * attempt);
    EXPECT_EQ(store_->Load()->jobs.size(), 1u) << "the next process finds it and begins again";
    EXPECT_THAT(Queued(), IsEmpty());
    store_ = harness_->Open();
  }
  std::optional<change::PurgeJob> next = first;
  for (int pages = 0; next && pages < 5; ++pages) next = Apply(*next).purge;
  EXPECT_FALSE(next.has_value());
  EXPECT_THAT(*store_->ListSegments({.job = "job-aaaaaa"}), IsEmpty());
  EXPECT_THAT(store_->Load()->jobs, IsEmpty());
  EXPECT_THAT(Queued(), ElementsAre(chain_, ChainId{"job-aaaaaa", 1}));
  const ApplyResult again = Apply(first);
  EXPECT_TRUE(again.status.ok()) << again.status;
  EXPECT_FALSE(again.purge.has_value());
}

TEST_P(ObjectChanges, OnlyUnreferencedFoundObjectsBecomeGarbage) {
  Put(SmallDataset("digits"));
  StoredModel model;
  model.name = "net";
  model.object.name = "model-0";
  Put(model);
  Begin("u", "shard-1");
  ASSERT_TRUE(Apply(change::NameGarbage{{"shard-0", "model-0", "shard-1", "shard-2", "model-1"}}).status.ok());
  EXPECT_THAT(Garbage(), ElementsAre("model-1", "shard-2"));
}

TEST_P(ObjectChanges, AChainQueuedAgainDuringASweepStaysQueued) {
  Create("job-aaaaaa", 2);
  Apply(change::QueueSweep{chain_});
  const int64_t ticket = store_->ListSweeps(0, 10)->at(0).ticket;
  Apply(change::QueueSweep{{"job-aaaaaa", 1}});
  Apply(change::QueueSweep{chain_});
  Apply(change::EndSweep{ticket});
  EXPECT_THAT(Queued(), ElementsAre(ChainId{"job-aaaaaa", 1}, chain_)) << "once, in the order of queueing";
  EXPECT_EQ(store_->ListSweeps(0, 1)->size(), 1u);
  EXPECT_EQ(store_->ListSweeps(store_->ListSweeps(0, 1)->at(0).ticket, 10)->at(0).chain, chain_);
}

TEST_P(ObjectChanges, OnlyTheNewestEpochOfAnUnfinishedChainMayCommit) {
  Create("job-aaaaaa", 1);
  Grant(chain_, 1);
  EXPECT_TRUE(*store_->MayCommit(chain_, 1));
  EXPECT_FALSE(*store_->MayCommit({"nowhere-bbbbbb", 0}, 1));
  Apply(change::EndLease{chain_, 1, false, true, "lost"});
  EXPECT_TRUE(*store_->MayCommit(chain_, 1)) << "nobody else was granted";
  Grant(chain_, 2);
  EXPECT_FALSE(*store_->MayCommit(chain_, 1));
  EXPECT_TRUE(*store_->MayCommit(chain_, 2));
  Apply(change::SetIntent{"job-aaaaaa", JobIntent::kCancel});
  EXPECT_FALSE(*store_->MayCommit(chain_, 2));
}

TEST_P(ObjectChanges, CorruptSegmentsAreListedUntilTheyAreClearedOrDeleted) {
  for (const char* job : {"job-aaaaaa", "job-bbbbbb"}) {
    Create(job, 1);
    ChainRow row = Grant({job, 0}, 1).chains.at(0);
    for (const int64_t step : {10, 20, 30}) {
      const change::CommitProgress commit = CommitAt(row, step);
      row = Apply(commit).chains.at(0);
      if (step != 20) Apply(change::MarkCorrupt{job, commit.segment->object.name});
    }
  }
  EXPECT_EQ(*store_->CountCorrupt(), 4);
  const std::vector<SegmentRecord> first = store_->ListCorrupt({}, 3).value();
  ASSERT_EQ(first.size(), 3u);
  EXPECT_EQ(first[1].segment.first_index, 2);
  EXPECT_EQ(first[2].chain.job, "job-bbbbbb");
  const std::vector<SegmentRecord> rest = store_->ListCorrupt({first[2].chain, 0}, 3).value();
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].segment.first_index, 2);
  const std::string cleared = first[0].segment.object.name;
  EXPECT_TRUE(Apply(change::MarkCorrupt{"job-aaaaaa", cleared, false}).status.ok());
  EXPECT_FALSE(store_->FindSegment("job-aaaaaa", cleared)->corrupt);
  EXPECT_EQ(*store_->CountCorrupt(), 3);
  Apply(change::SetIntent{"job-bbbbbb", JobIntent::kDelete});
  Apply(change::PurgeJob{"job-bbbbbb"});
  EXPECT_EQ(*store_->CountCorrupt(), 1);
  EXPECT_EQ(store_->ListCorrupt({}, 10)->size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(AllStores, ObjectChanges, testing::ValuesIn(StoreKinds()), StoreKindName);

}  // namespace
}  // namespace chainfleet

// The contract of every StateStore, except the commit.
#include "core/base/limits.h"
#include "tests/core/state_store/state_store_fixture.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class AnyStateStore : public StateStoreTest {};

TEST_P(AnyStateStore, KeepsItsIncarnationAndRaisesItsGeneration) {
  const int64_t before = store_->generation();
  store_ = harness_->Open();
  EXPECT_EQ(store_->incarnation(), "incarnation-1");
  EXPECT_GT(store_->generation(), before);
}

TEST_P(AnyStateStore, ARestoredStoreReusesNoEpochOrGenerationIssuedAfterItsBackup) {
  Create("job-aaaaaa", 2);
  const ChainRow row = Grant(chain_, 1).chains.at(0);
  ASSERT_TRUE(Apply(CommitAt(row, 10)).status.ok());
  const int64_t before = store_->generation();
  EXPECT_THAT(store_->FormerIncarnations().value(), IsEmpty());
  const auto old = std::move(store_);
  store_ = harness_->OpenRestored("incarnation-2");
  EXPECT_EQ(store_->incarnation(), "incarnation-2");
  EXPECT_THAT(store_->FormerIncarnations().value(), ElementsAre("incarnation-1"));
  EXPECT_GT(store_->generation(), before + kRestoredLeap);
  EXPECT_EQ(ReasonOf(old->Apply({}, wall_).status()), "NOT_LEADER");
  const ChainRow restored = RowOf(chain_);
  EXPECT_EQ(restored.lease_epoch, 1 + kRestoredLeap);
  EXPECT_EQ(restored.num_draws, 1);
  EXPECT_EQ(RowOf({"job-aaaaaa", 1}).lease_epoch, kRestoredLeap);
  EXPECT_EQ(ReasonOf(Apply(CommitAt(row, 20)).status), "LEASE_FENCED");

  ASSERT_TRUE(Apply(change::EndLease{chain_, restored.lease_epoch, true, true, "restored"}).status.ok());
  ChainRow next = Grant(chain_, restored.lease_epoch + 1).chains.at(0);
  ASSERT_TRUE(Apply(CommitAt(next, 20)).status.ok());
  store_ = harness_->Open();
  EXPECT_EQ(store_->incarnation(), "incarnation-2");
  store_ = harness_->OpenRestored("incarnation-3");
  EXPECT_THAT(store_->FormerIncarnations().value(), UnorderedElementsAre("incarnation-1", "incarnation-2"));
}

TEST_P(AnyStateStore, AWaitingChainEndsWhereItIs) {
  Create("job-aaaaaa", 2);
  EXPECT_EQ(Apply(change::RetireChain{chain_, "enough"}).chains.at(0).state, ChainState::kSucceeded);
  const ChainId other{"job-aaaaaa", 1};
  Grant(other, 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(Apply(change::RetireChain{other, "lost", true}).status));
  Apply(change::EndLease{other, 1, true, true, "handed back"});
  const ApplyResult ended = Apply(change::RetireChain{other, "lost", true});
  EXPECT_EQ(ended.chains.at(0).state, ChainState::kFailed);
  EXPECT_EQ(ended.chains.at(0).reason, "lost");
  EXPECT_EQ(ended.job->finished_at, wall_);
}

TEST_P(AnyStateStore, LoadsWhatWasStored) {
  Put(SmallDataset("digits"));
  const ApplyResult created = Apply(change::CreateJob{PlanOf("job-aaaaaa", 2, true), "r1"});
  ASSERT_TRUE(created.status.ok()) << created.status;
  EXPECT_EQ(created.chains.size(), 2u);
  const ChainRow row = Grant(chain_, 1).chains.at(0);
  ASSERT_TRUE(Apply(CommitAt(row, 10)).status.ok());
  store_ = harness_->Open();
  const StoredState state = store_->Load().value();
  ASSERT_EQ(state.jobs.size(), 1u);
  const StoredJob& job = state.jobs[0];
  EXPECT_EQ(job.row.request_id, "r1");
  EXPECT_EQ(job.row.created_at, wall_);
  EXPECT_EQ(job.row.plan->spec, PlanOf("job-aaaaaa", 2)->spec);
  EXPECT_EQ(job.row.plan->dataset->digest, DigestOf(7));
  EXPECT_EQ(job.row.sequence, created.job->sequence);
  ASSERT_EQ(job.chains.size(), 2u);
  EXPECT_EQ(job.chains[0].state, ChainState::kLeased);
  EXPECT_EQ(job.chains[0].worker, "w1");
  EXPECT_EQ(job.chains[0].lease_epoch, 1);
  EXPECT_TRUE(job.chains[0].lease_committed);
  EXPECT_EQ(job.chains[0].num_draws, 1);
  EXPECT_EQ(job.chains[1].state, ChainState::kPending);
  EXPECT_EQ(job.chains[1].last_digest, FirstParentDigest());
  ASSERT_EQ(state.datasets.size(), 1u);
  EXPECT_EQ(state.datasets[0].shards, SmallDataset("digits").shards);
}

TEST_P(AnyStateStore, LoadsMoreJobsThanAPageInTheirOrder) {
  constexpr int kJobs = 33;  // two pages, and one that is purged
  std::vector<std::string> ids;
  std::vector<StateChange> changes;
  for (int n = 0; n < kJobs; ++n) {
    ids.push_back("job-" + std::to_string(900'000 - n));  // the order of ids is another
    changes.push_back(change::CreateJob{PlanOf(ids.back(), 1), ""});
  }
  changes.push_back(change::SetIntent{ids[7], JobIntent::kDelete});
  changes.push_back(change::PurgeJob{ids[7]});
  ASSERT_TRUE(store_->Apply(changes, wall_).ok());
  ids.erase(ids.begin() + 7);
  const auto loaded = [&] {
    std::vector<std::string> found;
    const StoredState state = store_->Load().value();
    for (const StoredJob& job : state.jobs) found.push_back(job.row.id);
    return found;
  };
  EXPECT_EQ(loaded(), ids) << "whole pages";
  ids.emplace_back("job-aaaaaa");
  ASSERT_TRUE(Create(ids.back(), 1).status.ok());
  EXPECT_EQ(loaded(), ids) << "and a page of one";
}

TEST_P(AnyStateStore, RefusedChangeFailsAlone) {
  const std::vector<StateChange> changes{change::CreateJob{PlanOf("job-aaaaaa", 1), ""},
                                         change::GrantLease{{"nowhere-bbbbbb", 0}, 1, "w1", "w1-life"},
                                         change::GrantLease{chain_, 1, "w1", "w1-life"}};
  const auto results = store_->Apply(changes, wall_).value();
  EXPECT_TRUE(results[0].status.ok());
  EXPECT_TRUE(absl::IsNotFound(results[1].status));
  EXPECT_TRUE(results[2].status.ok());
  EXPECT_EQ(RowOf(chain_).state, ChainState::kLeased);
}

TEST_P(AnyStateStore, EachChangeOfAGroupSeesThoseBeforeIt) {
  Create("job-aaaaaa", 2);
  const ChainRow row = Grant(chain_, 1).chains.at(0);
  ChainRow later = row;
  later.step = 10;
  later.num_draws = 1;
  const change::CommitProgress first = CommitAt(row, 10);
  later.last_digest = first.segment->digest;
  const change::CommitProgress second = CommitAt(later, 20);
  const ChainId other{chain_.job, 1};
  const std::vector<StateChange> changes{first,
                                         first,
                                         second,
                                         change::GrantLease{other, 1, "w1", "w1-life"},
                                         change::GrantLease{chain_, 1, "w1", "w1-life"},
                                         change::SetIntent{chain_.job, JobIntent::kPause},
                                         change::EndLease{other, 1, true, true, "paused"},
                                         change::GrantLease{other, 2, "w1", "w1-life"}};
  const auto results = store_->Apply(changes, wall_).value();
  EXPECT_TRUE(results[0].status.ok()) << results[0].status;
  EXPECT_TRUE(results[1].replayed);
  EXPECT_TRUE(results[2].status.ok()) << results[2].status;
  EXPECT_EQ(results[2].chains.at(0).num_draws, 2);
  EXPECT_TRUE(results[3].status.ok());
  ASSERT_TRUE(results[4].status.ok());
  EXPECT_EQ(results[4].resume_point, second.resume_point) << "with its bytes";
  EXPECT_TRUE(results[6].status.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(results[7].status)) << "its job pauses";
  EXPECT_EQ(RowOf(chain_).step, 20);
  EXPECT_EQ(store_->ListSegments({.job = chain_.job})->size(), 2u);
}

TEST_P(AnyStateStore, RequestIdCreatesOnce) {
  Create("job-aaaaaa", 1, "r1");
  const ApplyResult again = Create("job-bbbbbb", 1, "r1");
  EXPECT_TRUE(absl::IsAlreadyExists(again.status));
  EXPECT_EQ(ReasonOf(again.status), "REQUEST_ID_USED");
  EXPECT_EQ(again.job->id, "job-aaaaaa");
  EXPECT_TRUE(Create("job-cccccc", 1).status.ok());
  EXPECT_TRUE(Create("job-dddddd", 1).status.ok());
}

TEST_P(AnyStateStore, RequestIdsAndJobsAreATenantsOwn) {
  Create("job-aaaaaa", 1, "r1");
  const auto of_a = [&](const std::string& id) { return Apply(change::CreateJob{PlanOf(id, 1), "r1", "a"}); };
  ASSERT_TRUE(of_a("job-bbbbbb").status.ok());
  EXPECT_EQ(of_a("job-cccccc").job->id, "job-bbbbbb");
  Apply(change::SetIntent{"job-bbbbbb", JobIntent::kPause});
  store_ = harness_->Open();
  const StoredState state = store_->Load().value();
  ASSERT_EQ(state.jobs.size(), 2u);
  EXPECT_EQ(state.jobs[0].row.tenant, kDefaultTenant);
  EXPECT_EQ(state.jobs[1].row.tenant, "a");
}

TEST_P(AnyStateStore, JobIdsAreNeverReused) {
  Create("job-aaaaaa", 1);
  Apply(change::SetIntent{"job-aaaaaa", JobIntent::kDelete});
  Apply(change::PurgeJob{"job-aaaaaa"});
  EXPECT_TRUE(absl::IsAborted(Create("job-aaaaaa", 1).status));
}

TEST_P(AnyStateStore, JobNeedsItsDataset) {
  const ApplyResult result = Apply(change::CreateJob{PlanOf("job-aaaaaa", 1, true), ""});
  EXPECT_TRUE(absl::IsNotFound(result.status));
  EXPECT_THAT(std::string(result.status.message()), HasSubstr("digits"));
}

TEST_P(AnyStateStore, GrantNeedsTheNextEpochOfAPendingChain) {
  Create("job-aaaaaa", 1);
  EXPECT_FALSE(Grant(chain_, 2).status.ok());
  EXPECT_TRUE(Grant(chain_, 1).status.ok());
  EXPECT_FALSE(Grant(chain_, 2, "w2").status.ok());
  EXPECT_TRUE(Grant(chain_, 1).status.ok()) << "the same grant again";
  EXPECT_FALSE(Grant(chain_, 1, "w2").status.ok());
}

TEST_P(AnyStateStore, PausedJobGrantsNothing) {
  Create("job-aaaaaa", 1);
  Apply(change::SetIntent{"job-aaaaaa", JobIntent::kPause});
  EXPECT_TRUE(absl::IsFailedPrecondition(Grant(chain_, 1).status));
  Apply(change::SetIntent{"job-aaaaaa", JobIntent::kRun});
  EXPECT_TRUE(Grant(chain_, 1).status.ok());
}

TEST_P(AnyStateStore, SixLeasesWithoutACommitFailTheChain) {
  Create("job-aaaaaa", 1);
  for (int64_t epoch = 1; epoch <= limits::kMaxAttemptsWithoutProgress; ++epoch) {
    ASSERT_TRUE(Grant(chain_, epoch).status.ok());
    ASSERT_TRUE(Apply(change::EndLease{chain_, epoch, false, true, "crash " + std::to_string(epoch)}).status.ok());
  }
  const ChainRow row = RowOf(chain_);
  EXPECT_EQ(row.state, ChainState::kFailed);
  EXPECT_EQ(row.reason, "crash 6");
  EXPECT_EQ(store_->Load()->jobs[0].row.finished_at, wall_);
}

TEST_P(AnyStateStore, OrderedEndsAndLeasesWithACommitCostNoAttempt) {
  Create("job-aaaaaa", 1);
  Grant(chain_, 1);
  Apply(change::EndLease{chain_, 1, true, true, "drained"});
  EXPECT_EQ(RowOf(chain_).attempts, 0);
  const ChainRow row = Grant(chain_, 2).chains.at(0);
  Apply(CommitAt(row, 10));
  Apply(change::EndLease{chain_, 2, false, false, "expired"});
  EXPECT_EQ(RowOf(chain_).attempts, 0);
}

TEST_P(AnyStateStore, CancelEndsEveryChain) {
  Create("job-aaaaaa", 2);
  Grant(chain_, 1);
  const ApplyResult result = Apply(change::SetIntent{"job-aaaaaa", JobIntent::kCancel});
  EXPECT_EQ(result.chains.size(), 2u);
  EXPECT_EQ(RowOf(chain_).state, ChainState::kCancelled);
  EXPECT_TRUE(result.job->finished_at.has_value());
  EXPECT_FALSE(Apply(change::SetIntent{"job-aaaaaa", JobIntent::kRun}).status.ok());
}

TEST_P(AnyStateStore, FinishEndsPendingChainsAtOnceAndLeasedOnesWhenHandedBack) {
  Create("job-aaaaaa", 2);
  const ChainRow row = Grant(chain_, 1).chains.at(0);
  EXPECT_FALSE(Apply(change::SetIntent{"job-aaaaaa", JobIntent::kFinish}).job->finished_at.has_value());
  EXPECT_EQ(RowOf({"job-aaaaaa", 1}).state, ChainState::kCancelled);
  EXPECT_EQ(RowOf(chain_).state, ChainState::kLeased);
  change::CommitProgress back = CommitAt(row, 10);
  back.ends_as = ChainState::kPending;
  const ApplyResult end = Apply(back);
  EXPECT_EQ(RowOf(chain_).state, ChainState::kCancelled);
  EXPECT_TRUE(end.job->finished_at.has_value());
  EXPECT_EQ(end.version->number, 1);
  EXPECT_THAT(end.version->draws_of_chain, ElementsAre(1, 0));
  EXPECT_TRUE(Apply(back).replayed);
}

TEST_P(AnyStateStore, FinishedJobCanOnlyBeDeleted) {
  Create("job-aaaaaa", 1);
  Apply(change::SetIntent{"job-aaaaaa", JobIntent::kFinish});
  EXPECT_EQ(ReasonOf(Apply(change::SetIntent{"job-aaaaaa", JobIntent::kCancel}).status), "JOB_ENDED");
  EXPECT_TRUE(Apply(change::SetIntent{"job-aaaaaa", JobIntent::kDelete}).status.ok());
}

TEST_P(AnyStateStore, VersionsAreImmutableAndOnlyMadeWhenDrawsCame) {
  Create("job-aaaaaa", 2);
  EXPECT_EQ(ReasonOf(Apply(change::CreateVersion{"job-aaaaaa"}).status), "NO_DRAWS");
  ChainRow row = Grant(chain_, 1).chains.at(0);
  row = Apply(CommitAt(row, 10)).chains.at(0);
  EXPECT_EQ(Apply(change::CreateVersion{"job-aaaaaa"}).version->number, 1);
  EXPECT_EQ(Apply(change::CreateVersion{"job-aaaaaa"}).version->number, 1) << "nothing new";
  Apply(CommitAt(row, 20));
  EXPECT_EQ(Apply(change::CreateVersion{"job-aaaaaa"}).version->number, 2);
  EXPECT_THAT(store_->FindVersion("job-aaaaaa", 1)->draws_of_chain, ElementsAre(1, 0));
  EXPECT_TRUE(absl::IsNotFound(store_->FindVersion("job-aaaaaa", 3).status()));
  EXPECT_EQ(store_->Load()->jobs[0].newest_version->number, 2);
}

TEST_P(AnyStateStore, ListsSegmentsByPageInOrder) {
  Create("job-aaaaaa", 2);
  for (int32_t chain = 0; chain < 2; ++chain) {
    ChainRow row = Grant({"job-aaaaaa", chain}, 1).chains.at(0);
    for (int64_t step = 1; step <= 3; ++step) row = Apply(CommitAt(row, step)).chains.at(0);
  }
  std::vector<std::pair<int32_t, int64_t>> seen;
  const StateStore::SegmentQuery query{.job = "job-aaaaaa", .limit = 2};
  const auto see = [&](const SegmentRecord& r) {
    seen.emplace_back(r.chain.index, r.segment.first_index);
    return true;
  };
  EXPECT_EQ(VisitSegments(store_.get(), query, see, /*most_per_read=*/2), absl::OkStatus());
  using P = std::pair<int32_t, int64_t>;
  EXPECT_THAT(seen, ElementsAre(P{0, 0}, P{0, 1}, P{0, 2}, P{1, 0}, P{1, 1}, P{1, 2}));
  const absl::Status enough = absl::AbortedError("enough");
  EXPECT_EQ(VisitSegments(store_.get(), query, [&](const SegmentRecord&) { return enough; }), enough);
  for (const int32_t chain : {0, 1}) EXPECT_EQ(store_->ListSegments({.job = "job-aaaaaa", .chain = chain})->size(), 3u);
  EXPECT_EQ(store_->ListSegments({.job = "job-aaaaaa", .chain = 0, .after_chain = 0, .after_first_index = 1})->size(),
            1u);
  EXPECT_TRUE(store_->ListSegments({.job = "job-aaaaaa", .chain = 0, .after_chain = 1})->empty());
}

TEST_P(AnyStateStore, OnlyAPendingChainIsRetired) {
  Create("job-aaaaaa", 2);
  Apply(CommitAt(Grant(chain_, 1).chains.at(0), 10));
  EXPECT_TRUE(absl::IsFailedPrecondition(Apply(change::RetireChain{chain_, "enough"}).status)) << "it is leased";
  Apply(change::EndLease{chain_, 1, /*ordered=*/true, /*given_back=*/false, "stopped"});
  const ApplyResult result = Apply(change::RetireChain{chain_, "enough"});
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.chains.at(0).state, ChainState::kSucceeded);
  EXPECT_EQ(result.chains.at(0).reason, "enough");
  EXPECT_EQ(result.chains.at(0).num_draws, 1);
  EXPECT_EQ(result.chains.at(0).worker, "");
  EXPECT_FALSE(result.job.has_value() && result.job->finished_at.has_value()) << "chain 1 is not final";
  EXPECT_TRUE(absl::IsFailedPrecondition(Apply(change::RetireChain{chain_, "enough"}).status)) << "it is final";
}

TEST_P(AnyStateStore, CorruptSegmentIsMarked) {
  Create("job-aaaaaa", 1);
  const change::CommitProgress c = CommitAt(Grant(chain_, 1).chains.at(0), 10);
  Apply(c);
  const std::string object = c.segment->object.name;
  EXPECT_TRUE(Apply(change::MarkCorrupt{"job-aaaaaa", object}).status.ok());
  EXPECT_TRUE(store_->FindSegment("job-aaaaaa", object)->corrupt);
  EXPECT_TRUE(absl::IsNotFound(Apply(change::MarkCorrupt{"job-aaaaaa", "other"}).status));
  EXPECT_TRUE(absl::IsNotFound(store_->FindSegment("job-aaaaaa", "other").status()));
}

TEST_P(AnyStateStore, PurgedJobLeavesNothingButItsId) {
  Create("job-aaaaaa", 1, "r1");
  Apply(CommitAt(Grant(chain_, 1).chains.at(0), 10));
  EXPECT_FALSE(Apply(change::PurgeJob{"job-aaaaaa"}).status.ok()) << "not to be deleted";
  Apply(change::SetIntent{"job-aaaaaa", JobIntent::kDelete});
  EXPECT_EQ(store_->ReferencesOfChain(chain_)->objects.size(), 1u);
  EXPECT_TRUE(Apply(change::PurgeJob{"job-aaaaaa"}).status.ok());
  EXPECT_TRUE(store_->Load()->jobs.empty());
  EXPECT_TRUE(store_->ListSegments({.job = "job-aaaaaa"})->empty());
  const ChainReferences references = store_->ReferencesOfChain(chain_).value();
  EXPECT_TRUE(references.objects.empty());
  EXPECT_TRUE(references.is_final);
  EXPECT_TRUE(absl::IsAlreadyExists(Create("job-bbbbbb", 1, "r1").status));
}

TEST_P(AnyStateStore, ReferencesComeWithEpochAndFinality) {
  Create("job-aaaaaa", 1);
  const ChainRow row = Grant(chain_, 1).chains.at(0);
  EXPECT_EQ(store_->ReferencesOfChain(chain_)->lease_epoch, 1);
  EXPECT_FALSE(store_->ReferencesOfChain(chain_)->is_final);
  change::CommitProgress c = CommitAt(row, 10);
  c.resume_point.object = BlobRef{"resume", 1, DigestOf(1)};
  c.ends_as = ChainState::kSucceeded;
  Apply(c);
  const ChainReferences references = store_->ReferencesOfChain(chain_).value();
  EXPECT_TRUE(references.is_final);
  EXPECT_THAT(references.objects, UnorderedElementsAre("resume", c.segment->object.name));
}

TEST_P(AnyStateStore, DatasetIsPutOnceAndDeletedWhenUnused) {
  EXPECT_TRUE(Put(SmallDataset("digits")).status.ok());
  EXPECT_TRUE(Put(SmallDataset("digits")).status.ok());
  Dataset other = SmallDataset("digits");
  other.digest = DigestOf(9);
  EXPECT_TRUE(absl::IsAlreadyExists(Put(other).status));
  Apply(change::CreateJob{PlanOf("job-aaaaaa", 1, true), ""});
  const ApplyResult used = Apply(change::DeleteDataset{"digits"});
  EXPECT_EQ(ReasonOf(used.status), "IN_USE");
  EXPECT_THAT(std::string(used.status.message()), HasSubstr("job-aaaaaa"));
  Apply(change::SetIntent{"job-aaaaaa", JobIntent::kDelete});
  EXPECT_TRUE(Apply(change::DeleteDataset{"digits"}).status.ok());
  EXPECT_TRUE(absl::IsNotFound(Apply(change::DeleteDataset{"digits"}).status));
  EXPECT_THAT(Garbage(), ElementsAre("shard-0"));
  Put(SmallDataset("digits", "shard-1"));
  EXPECT_THAT(Garbage(), ElementsAre("shard-0")) << "put again: it has other objects";
}

TEST_P(AnyStateStore, ObjectSharedByTwoDatasetsStays) {
  Put(SmallDataset("digits"));
  Put(SmallDataset("numbers"));
  Apply(change::DeleteDataset{"digits"});
  EXPECT_TRUE(Garbage().empty());
}

INSTANTIATE_TEST_SUITE_P(AllStores, AnyStateStore, testing::ValuesIn(StoreKinds()), StoreKindName);

}  // namespace
}  // namespace chainfleet

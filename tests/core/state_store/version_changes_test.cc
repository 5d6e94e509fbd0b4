// The contract of every StateStore for versions, aliases and retention.
#include "core/base/limits.h"
#include "tests/core/state_store/state_store_fixture.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class VersionChanges : public StateStoreTest {
 protected:
  // Creates a job of one leased chain with `segments` segments of one draw each.
  ChainRow Sample(const std::string& job, int64_t draws) {
    Create(job, 1);
    ChainRow row = Grant({job, 0}, 1).chains.at(0);
    return SampleOn(row, draws);
  }
  ChainRow SampleOn(ChainRow row, int64_t draws) {
    for (int64_t i = 0; i < draws; ++i) row = Apply(CommitAt(row, row.step + 10)).chains.at(0);
    return row;
  }
  int64_t MakeVersion(const std::string& job) { return Apply(change::CreateVersion{job}).version->number; }
  absl::Status SetAlias(const std::string& name, const std::string& job, int64_t number,
                        const std::string& tenant = kDefaultTenant) {
    return Apply(change::SetAlias{{tenant, name, job, number}}).status;
  }
  std::vector<std::string> Expire(const std::vector<int64_t>& first_indices) {
    return Apply(change::ExpireSegments{chain_, first_indices}).objects;
  }
  std::vector<bool> Tombstones() {
    std::vector<bool> deleted;
    const auto records = store_->ListSegments({.job = chain_.job}).value();
    for (const SegmentRecord& record : records) deleted.push_back(record.deleted);
    return deleted;
  }
  std::vector<std::string> Expired() {
    std::vector<std::string> objects;
    const auto expired = store_->ListExpired(store_->LastExpired().value(), 10).value();
    for (const ExpiredObject& one : expired) objects.push_back(one.object);
    return objects;
  }
  absl::Status Release(int64_t last) {
    change::ReleaseExpired release;
    const auto expired = store_->ListExpired(last, 10).value();
    for (const ExpiredObject& one : expired) release.tickets.push_back(one.ticket);
    return Apply(release).status;
  }
  static std::string ObjectAt(int64_t step) { return "segment-job-aaaaaa/0-" + std::to_string(step); }
};

TEST_P(VersionChanges, NumbersOfDeletedVersionsAreNotUsedAgain) {
  ChainRow row = Sample("job-aaaaaa", 1);
  ASSERT_EQ(MakeVersion("job-aaaaaa"), 1);
  row = SampleOn(row, 1);
  ASSERT_EQ(MakeVersion("job-aaaaaa"), 2);
  const ApplyResult deleted = Apply(change::DeleteVersion{"job-aaaaaa", 2});
  ASSERT_TRUE(deleted.status.ok()) << deleted.status;
  EXPECT_EQ(deleted.version->number, 1) << "the newest one left";
  store_ = harness_->Open();
  EXPECT_EQ(store_->Load()->jobs.at(0).newest_version->number, 1);
  for (const absl::Status& unknown :
       {store_->FindVersion("job-aaaaaa", 2).status(), Apply(change::DeleteVersion{"job-aaaaaa", 2}).status}) {
    EXPECT_TRUE(absl::IsNotFound(unknown));
    EXPECT_EQ(ReasonOf(unknown), "VERSION_NOT_FOUND");
    EXPECT_NE(unknown.message().find("`chainfleet get versions job-aaaaaa`"), std::string::npos) << unknown;
  }
  EXPECT_EQ(MakeVersion("job-aaaaaa"), 3) << "of the same draws";
  Apply(change::DeleteVersion{"job-aaaaaa", 1});
  EXPECT_FALSE(Apply(change::DeleteVersion{"job-aaaaaa", 3}).version.has_value());
  EXPECT_EQ(MakeVersion("job-aaaaaa"), 4);
}

TEST_P(VersionChanges, OldVersionsAreDeletedUnlessAnAliasNamesThem) {
  ChainRow row = Sample("job-aaaaaa", 0);
  for (int64_t number = 1; number <= 3; ++number) {
    row = SampleOn(row, 1);
    ASSERT_EQ(MakeVersion("job-aaaaaa"), number);
  }
  ASSERT_TRUE(SetAlias("best", "job-aaaaaa", 1).ok());
  std::vector<StateChange> changes;  // a new number for the same draws, again and again
  for (int64_t number = 3; number < limits::kKeptVersions + 2; ++number) {
    changes.push_back(change::DeleteVersion{"job-aaaaaa", number});
    changes.push_back(change::CreateVersion{"job-aaaaaa"});
  }
  ASSERT_EQ(store_->Apply(changes, wall_)->back().version->number, limits::kKeptVersions + 2);
  EXPECT_TRUE(store_->FindVersion("job-aaaaaa", 1).ok()) << "named";
  EXPECT_TRUE(absl::IsNotFound(store_->FindVersion("job-aaaaaa", 2).status()));
  ASSERT_TRUE(SetAlias("best", "job-aaaaaa", limits::kKeptVersions + 2).ok());
  row = SampleOn(row, 1);
  MakeVersion("job-aaaaaa");
  EXPECT_TRUE(absl::IsNotFound(store_->FindVersion("job-aaaaaa", 1).status())) << "the alias has moved";
  EXPECT_TRUE(store_->FindVersion("job-aaaaaa", limits::kKeptVersions + 2).ok());
}

// Clients may have read versions that were made after the backup. Their numbers must not name other draws.
TEST_P(VersionChanges, ARestoredStoreReusesNoNumberIssuedAfterItsBackup) {
  ChainRow row = Sample("job-aaaaaa", 1);
  ASSERT_EQ(MakeVersion("job-aaaaaa"), 1);
  store_ = harness_->OpenRestored("incarnation-2");
  EXPECT_EQ(MakeVersion("job-aaaaaa"), 1) << "the draws of the backup keep their version";
  Apply(change::EndLease{{"job-aaaaaa", 0}, row.lease_epoch + kRestoredLeap, true, true, "restored"});
  row = Grant({"job-aaaaaa", 0}, row.lease_epoch + kRestoredLeap + 1).chains.at(0);
  row = SampleOn(row, 1);
  EXPECT_EQ(MakeVersion("job-aaaaaa"), 2 + kRestoredLeap);
  EXPECT_TRUE(store_->FindVersion("job-aaaaaa", 1).ok()) << "the leap makes no version old";
}

TEST_P(VersionChanges, AreListedByNumberInPages) {
  ChainRow row = Sample("job-aaaaaa", 1);
  for (int i = 0; i < 4; ++i) {
    MakeVersion("job-aaaaaa");
    row = SampleOn(row, 1);
  }
  Apply(change::DeleteVersion{"job-aaaaaa", 2});
  const auto numbers = [&](int64_t after, int32_t limit) {
    std::vector<int64_t> seen;
    const auto page = store_->ListVersions("job-aaaaaa", after, limit).value();
    for (const Version& version : page) seen.push_back(version.number);
    return seen;
  };
  EXPECT_THAT(numbers(0, 2), ElementsAre(1, 3));
  EXPECT_THAT(numbers(3, 2), ElementsAre(4));
  EXPECT_EQ(store_->ListVersions("job-aaaaaa", 3, 1)->at(0).draws_of_chain, std::vector<int64_t>{4});
  EXPECT_THAT(store_->ListVersions("nothing-bbbbbb", 0, 2).value(), IsEmpty());
}

TEST_P(VersionChanges, AliasMovesAndKeepsWhatItNames) {
  const ChainRow row = Sample("job-aaaaaa", 1);
  MakeVersion("job-aaaaaa");
  SampleOn(row, 1);
  MakeVersion("job-aaaaaa");
  EXPECT_TRUE(absl::IsNotFound(SetAlias("champion", "job-aaaaaa", 3)));
  EXPECT_TRUE(absl::IsNotFound(SetAlias("champion", "other-bbbbbb", 1)));
  ASSERT_TRUE(SetAlias("champion", "job-aaaaaa", 1).ok());
  const absl::Status used = Apply(change::DeleteVersion{"job-aaaaaa", 1}).status;
  EXPECT_EQ(ReasonOf(used), "IN_USE");
  EXPECT_THAT(std::string(used.message()), HasSubstr("champion"));
  EXPECT_EQ(ReasonOf(Apply(change::SetIntent{"job-aaaaaa", JobIntent::kDelete}).status), "IN_USE");
  EXPECT_TRUE(Apply(change::DeleteVersion{"job-aaaaaa", 2}).status.ok()) << "another version";
  MakeVersion("job-aaaaaa");
  ASSERT_TRUE(SetAlias("champion", "job-aaaaaa", 3).ok());
  EXPECT_TRUE(Apply(change::DeleteVersion{"job-aaaaaa", 1}).status.ok());
  store_ = harness_->Open();
  const auto aliases = store_->Load()->aliases;
  ASSERT_EQ(aliases.size(), 1u);
  EXPECT_EQ(aliases[0].alias, (Alias{kDefaultTenant, "champion", "job-aaaaaa", 3}));
  EXPECT_THAT(aliases[0].version.draws_of_chain, ElementsAre(2));
  const absl::Status others = Apply(change::DeleteAlias{"other", "champion"}).status;
  EXPECT_EQ(ReasonOf(others), "ALIAS_NOT_FOUND") << "of another tenant";
  EXPECT_TRUE(Apply(change::DeleteAlias{kDefaultTenant, "champion"}).status.ok());
  EXPECT_EQ(Apply(change::DeleteAlias{kDefaultTenant, "champion"}).status, others) << "as if there never was one";
  EXPECT_TRUE(Apply(change::SetIntent{"job-aaaaaa", JobIntent::kDelete}).status.ok());
  EXPECT_TRUE(absl::IsNotFound(SetAlias("champion", "job-aaaaaa", 3))) << "it is going";
}

TEST_P(VersionChanges, AliasAndJobOfATenantNeverShareAName) {
  Sample("job-aaaaaa", 1);
  MakeVersion("job-aaaaaa");
  for (const char* name : {"job", "job-aaaaaa"}) {
    const absl::Status taken = SetAlias(name, "job-aaaaaa", 1);
    EXPECT_TRUE(absl::IsAlreadyExists(taken)) << name;
    EXPECT_EQ(ReasonOf(taken), "NAME_TAKEN");
  }
  ASSERT_TRUE(SetAlias("best", "job-aaaaaa", 1).ok());
  ASSERT_TRUE(SetAlias("best-eeeeee", "job-aaaaaa", 1).ok()) << "no job has this id yet";
  EXPECT_EQ(ReasonOf(Create("best-dddddd", 1).status), "NAME_TAKEN");
  EXPECT_TRUE(Apply(change::CreateJob{PlanOf("best-dddddd", 1), "", "other"}).status.ok()) << "another tenant's";
  EXPECT_TRUE(SetAlias("job", "job-aaaaaa", 1, "other").ok()) << "who has no job of this name";
  Apply(change::DeleteAlias{kDefaultTenant, "best"});
  EXPECT_EQ(ReasonOf(Create("best-eeeeee", 1).status), "NAME_TAKEN") << "its id";
  EXPECT_TRUE(Create("best-ffffff", 1).status.ok());
}

TEST_P(VersionChanges, AliasesOfATenantAreBounded) {
  Sample("job-aaaaaa", 1);
  MakeVersion("job-aaaaaa");
  std::vector<StateChange> changes;
  for (int i = 0; i < limits::kMaxAliases; ++i) {
    changes.push_back(change::SetAlias{{kDefaultTenant, "a" + std::to_string(i), "job-aaaaaa", 1}});
  }
  ASSERT_TRUE(store_->Apply(changes, wall_)->back().status.ok());
  const absl::Status refused = SetAlias("one-more", "job-aaaaaa", 1);
  EXPECT_EQ(ReasonOf(refused), "TOO_MANY_ALIASES");
  EXPECT_EQ(BoundOf(refused), "tenant_aliases");
  EXPECT_TRUE(SetAlias("a7", "job-aaaaaa", 1).ok()) << "it is there already";
  EXPECT_TRUE(SetAlias("one-more", "job-aaaaaa", 1, "other").ok());
}

TEST_P(VersionChanges, ExpiredSegmentsAreTombstonesWhoseObjectsStayUntilTheyAreReleased) {
  Sample("job-aaaaaa", 3);
  EXPECT_THAT(Expire({0, 1, 7}), ElementsAre(ObjectAt(10), ObjectAt(20)));
  EXPECT_THAT(Tombstones(), ElementsAre(true, true, false));
  const auto live = store_->ListSegments({.job = "job-aaaaaa", .chain = 0, .limit = 1, .live_only = true}).value();
  ASSERT_EQ(live.size(), 1u);
  EXPECT_EQ(live[0].segment.first_index, 2);
  const SegmentRecord record = store_->ListSegments({.job = "job-aaaaaa"})->at(1);
  EXPECT_EQ(record.segment.digest, DigestOf(3020));
  EXPECT_EQ(record.segment.parent_digest, DigestOf(3010));
  EXPECT_THAT(record.segment.steps, ElementsAre(20));
  EXPECT_THAT(store_->ReferencesOfChain(chain_)->objects,
              UnorderedElementsAre(ObjectAt(10), ObjectAt(20), ObjectAt(30)));
  EXPECT_THAT(Garbage(), IsEmpty());
  EXPECT_THAT(Expire({0, 1}), IsEmpty()) << "once";

  const int64_t first = store_->LastExpired().value();
  EXPECT_THAT(Expire({2}), ElementsAre(ObjectAt(30)));
  EXPECT_GT(store_->LastExpired().value(), first);
  store_ = harness_->Open();
  EXPECT_THAT(Expired(), ElementsAre(ObjectAt(10), ObjectAt(20), ObjectAt(30)));
  ASSERT_TRUE(Release(first).ok());
  EXPECT_THAT(Expired(), ElementsAre(ObjectAt(30)));
  EXPECT_THAT(Garbage(), ElementsAre(ObjectAt(10), ObjectAt(20)));
  EXPECT_THAT(store_->ReferencesOfChain(chain_)->objects, ElementsAre(ObjectAt(30)));
  const std::vector<std::string> garbage = Garbage();
  Apply(change::ForgetGarbage{garbage});
  EXPECT_TRUE(Apply(change::ReleaseExpired{{first}}).status.ok());
  EXPECT_THAT(Garbage(), IsEmpty()) << "it is gone";
}

TEST_P(VersionChanges, ChainContinuesBehindItsTombstones) {
  ChainRow row = Sample("job-aaaaaa", 2);
  Expire({0, 1});
  row = SampleOn(row, 1);
  EXPECT_EQ(row.num_draws, 3);
  EXPECT_EQ(store_->ListSegments({.job = "job-aaaaaa"})->at(2).segment.parent_digest, DigestOf(3020));
}

TEST_P(VersionChanges, DrawsThatAnAliasNamesDoNotExpire) {
  const ChainRow row = Sample("job-aaaaaa", 2);
  MakeVersion("job-aaaaaa");
  SampleOn(row, 2);
  MakeVersion("job-aaaaaa");
  ASSERT_TRUE(SetAlias("champion", "job-aaaaaa", 1).ok());
  EXPECT_THAT(Expire({0, 1, 2}), ElementsAre(ObjectAt(30)));
  EXPECT_THAT(Tombstones(), ElementsAre(false, false, true, false));
  ASSERT_TRUE(SetAlias("champion", "job-aaaaaa", 2).ok()) << "as whole as it is now";
  EXPECT_THAT(Expire({0, 1, 2, 3}), IsEmpty());
  Apply(change::DeleteAlias{kDefaultTenant, "champion"});
  EXPECT_THAT(Expire({0, 1, 2, 3}), ElementsAre(ObjectAt(10), ObjectAt(20), ObjectAt(40)));
}

TEST_P(VersionChanges, TheVersionOfAnEvaluationStaysUntilItsEnd) {
  const auto begin = [&](const std::string& id, int64_t version) {
    EvaluationRow row;
    row.id = id;
    row.job = "job-aaaaaa";
    row.version = version;
    return Apply(change::CreateEvaluation{row}).status;
  };
  const ChainRow row = Sample("job-aaaaaa", 2);
  MakeVersion("job-aaaaaa");
  SampleOn(row, 2);
  ASSERT_TRUE(begin("eval-1", 1).ok());
  EXPECT_TRUE(absl::IsNotFound(begin("eval-2", 7))) << "it went meanwhile";
  store_ = harness_->Open();
  EXPECT_EQ(store_->FindEvaluation("eval-1", "")->version, 1);
  EXPECT_THAT(Expire({0, 1, 2}), ElementsAre(ObjectAt(30)));
  const absl::Status refused = Apply(change::DeleteVersion{"job-aaaaaa", 1}).status;
  EXPECT_EQ(ReasonOf(refused), "IN_USE");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("eval-1"));
  std::vector<StateChange> changes = {change::CreateVersion{"job-aaaaaa"}};
  for (int64_t number = 2; number < limits::kKeptVersions + 2; ++number) {
    changes.push_back(change::DeleteVersion{"job-aaaaaa", number});
    changes.push_back(change::CreateVersion{"job-aaaaaa"});
  }
  ASSERT_EQ(store_->Apply(changes, wall_)->back().version->number, limits::kKeptVersions + 2);
  EXPECT_TRUE(store_->FindVersion("job-aaaaaa", 1).ok()) << "others went";
  Apply(change::EndEvaluation{"eval-1", EvaluationState::kCancelled, "", {}});
  EXPECT_THAT(Expire({0, 1}), ElementsAre(ObjectAt(10), ObjectAt(20)));
  changes = {change::DeleteVersion{"job-aaaaaa", limits::kKeptVersions + 2}, change::CreateVersion{"job-aaaaaa"}};
  ASSERT_TRUE(store_->Apply(changes, wall_).ok());
  EXPECT_TRUE(absl::IsNotFound(store_->FindVersion("job-aaaaaa", 1).status())) << "the evaluation has ended";
}

TEST_P(VersionChanges, PurgedJobLeavesNothingThatWaits) {
  Sample("job-aaaaaa", 2);
  Expire({0});
  Apply(change::SetIntent{"job-aaaaaa", JobIntent::kDelete});
  Apply(change::PurgeJob{"job-aaaaaa"});
  EXPECT_THAT(Expired(), IsEmpty());
  EXPECT_THAT(store_->ReferencesOfChain(chain_)->objects, IsEmpty()) << "the sweep of its chain takes them all";
  EXPECT_THAT(Expire({1}), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(Apply(change::CreateVersion{"job-aaaaaa"}).status));
}

INSTANTIATE_TEST_SUITE_P(AllStores, VersionChanges, testing::ValuesIn(StoreKinds()), StoreKindName);

}  // namespace
}  // namespace chainfleet

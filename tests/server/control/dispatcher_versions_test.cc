// Tests versions that jobs make by themselves, and their aliases.
#include "tests/server/control/dispatcher_fixture.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class DispatcherVersions : public DispatcherTest {
 protected:
  ChainId Lease(const SnapshotsSpec& snapshots, const std::string& name = "job") {
    JobSpec spec = SmallSpec(name, 1);
    spec.snapshots = snapshots;
    const ChainId chain{TryCreate(spec).value().id, 0};
    Sync(&worker_);
    Sync(&worker_);
    EXPECT_TRUE(worker_.chains.contains(chain));
    return chain;
  }
  int64_t Newest(const ChainId& chain) { return dispatcher_->GetBrief(chain.job)->newest_version; }
  absl::StatusOr<Alias> SetAlias(const std::string& name, const std::string& job, int64_t number) {
    return Wait<Alias>([&](auto done) { versions_->SetAlias({kDefaultTenant, name, job, number}, done); });
  }
  absl::Status DeleteVersion(const std::string& job, int64_t number) {
    return Wait<bool>([&](auto done) { versions_->Delete(job, number, done); }).status();
  }
  absl::StatusOr<Version> CreateVersion(const std::string& job) {
    return Wait<Version>([&](auto done) { versions_->Create(job, done); });
  }

  FakeWorker worker_{"w1"};
};

TEST_F(DispatcherVersions, AreMadeEveryNDraws) {
  const ChainId chain = Lease({.every_draws = 2});
  Advance(&worker_, chain);
  EXPECT_EQ(Newest(chain), 0);
  Advance(&worker_, chain);
  EXPECT_EQ(Newest(chain), 1);
  Advance(&worker_, chain);
  EXPECT_EQ(Newest(chain), 1);
  EXPECT_EQ(Pin("job", 0, true)->number, 1) << "a prediction of the newest makes none";
  Start();
  EXPECT_EQ(Newest(chain), 1);
  Advance(&worker_, chain);
  EXPECT_EQ(Newest(chain), 2) << "the new coordinator counts from the last version";
  EXPECT_THAT(Pin("job", 0, true)->draws_of_chain, ElementsAre(4));
  Advance(&worker_, chain, ChainState::kSucceeded);
  EXPECT_EQ(Newest(chain), 3) << "the last one, with the job's end";
}

TEST_F(DispatcherVersions, AreMadeEveryNSecondsIfThereAreNewDraws) {
  const ChainId chain = Lease({.every_seconds = 60});
  Advance(&worker_, chain);
  EXPECT_EQ(Newest(chain), 0);
  executor_.RunFor(absl::Seconds(60));
  EXPECT_EQ(Newest(chain), 1);
  executor_.RunFor(absl::Seconds(300));
  EXPECT_EQ(Newest(chain), 1) << "of the same draws";
  Sync(&worker_);
  Sync(&worker_);
  Advance(&worker_, chain);
  EXPECT_EQ(Newest(chain), 2) << "it was due already";
  Advance(&worker_, chain);
  EXPECT_EQ(Newest(chain), 2);
}

TEST_F(DispatcherVersions, FirstPredictionDoesNotWaitForThePolicy) {
  const ChainId chain = Lease({.every_draws = 100});
  EXPECT_EQ(ReasonOf(Pin("job", 0, true).status()), "NO_DRAWS");
  Advance(&worker_, chain);
  EXPECT_EQ(Pin("job", 0, true)->number, 1);
  Advance(&worker_, chain);
  EXPECT_EQ(Pin("job", 0, true)->number, 1);
  EXPECT_EQ(CreateVersion(chain.job)->number, 2) << "whoever asks for one gets it";
}

TEST_F(DispatcherVersions, DeletedNewestOneIsNotServedAnyMore) {
  const ChainId chain = Lease({.every_draws = 1});
  Advance(&worker_, chain);
  Advance(&worker_, chain);
  ASSERT_EQ(Newest(chain), 2);
  ASSERT_TRUE(DeleteVersion(chain.job, 2).ok());
  EXPECT_EQ(Newest(chain), 1);
  EXPECT_EQ(Pin("job", 0, true)->number, 1);
  EXPECT_TRUE(absl::IsNotFound(Pin("job", 2, false).status()));
  EXPECT_TRUE(absl::IsNotFound(DeleteVersion(chain.job, 2)));
  Advance(&worker_, chain);
  EXPECT_EQ(Newest(chain), 3);
}

TEST_F(DispatcherVersions, AliasResolvesToItsVersionAtOnceAndAfterARestart) {
  const ChainId chain = Lease({});
  Advance(&worker_, chain);
  ASSERT_EQ(SetAlias("champion", chain.job, 0)->number, 1);
  Advance(&worker_, chain);
  EXPECT_EQ(dispatcher_->ResolveDraws(kDefaultTenant, "job")->version, nullptr);
  const NamedDraws first = dispatcher_->ResolveDraws(kDefaultTenant, "champion").value();
  EXPECT_EQ(first.job.id, chain.job);
  EXPECT_THAT(first.version->draws_of_chain, ElementsAre(1));
  EXPECT_THAT(dispatcher_->GetJob(chain.job)->aliases, ElementsAre("champion"));
  EXPECT_TRUE(absl::IsNotFound(dispatcher_->ResolveDraws("other", "champion").status()));

  ASSERT_EQ(SetAlias("champion", chain.job, 0)->number, 2);
  EXPECT_EQ(first.version->number, 1) << "whoever asked before has what it meant then";
  EXPECT_EQ(dispatcher_->ResolveDraws(kDefaultTenant, "champion")->version->number, 2);
  ASSERT_TRUE(DeleteVersion(chain.job, 1).ok());
  EXPECT_EQ(ReasonOf(DeleteVersion(chain.job, 2)), "IN_USE");
  EXPECT_EQ(ReasonOf(SetIntent("job", JobIntent::kDelete).status()), "IN_USE");

  Start();
  EXPECT_THAT(dispatcher_->ResolveDraws(kDefaultTenant, "champion")->version->draws_of_chain, ElementsAre(2));
  EXPECT_THAT(dispatcher_->GetJob(chain.job)->aliases, ElementsAre("champion"));
  ASSERT_TRUE(Wait<bool>([&](auto done) { versions_->DeleteAlias(kDefaultTenant, "champion", done); }).ok());
  EXPECT_TRUE(absl::IsNotFound(dispatcher_->ResolveDraws(kDefaultTenant, "champion").status()));
  EXPECT_THAT(dispatcher_->GetJob(chain.job)->aliases, IsEmpty());
  EXPECT_TRUE(SetIntent("job", JobIntent::kDelete).ok());
}

TEST_F(DispatcherVersions, AliasMovesBetweenJobs) {
  const ChainId a = Lease({}, "a");
  const ChainId b = Lease({}, "b");
  Advance(&worker_, a);
  Advance(&worker_, b);
  ASSERT_TRUE(SetAlias("best", a.job, 0).ok());
  ASSERT_TRUE(SetAlias("best", b.job, 0).ok());
  EXPECT_THAT(dispatcher_->GetJob(a.job)->aliases, IsEmpty());
  EXPECT_EQ(dispatcher_->ResolveDraws(kDefaultTenant, "best")->job.id, b.job);
}

TEST_F(DispatcherVersions, BadAliasesAreRefused) {
  const ChainId chain = Lease({});
  EXPECT_EQ(ReasonOf(SetAlias("champion", chain.job, 0).status()), "NO_DRAWS");
  Advance(&worker_, chain);
  for (const char* name : {"", "Champion", "latest", "@latest", "a b", "1st"}) {
    EXPECT_EQ(ReasonOf(SetAlias(name, chain.job, 0).status()), "INVALID_FIELD") << name;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(SetAlias("champion", chain.job, -1).status()));
  EXPECT_TRUE(absl::IsNotFound(SetAlias("champion", chain.job, 7).status()));
  EXPECT_EQ(ReasonOf(SetAlias("job", chain.job, 0).status()), "NAME_TAKEN");
  ASSERT_TRUE(SetAlias("champion", chain.job, 0).ok());
  const absl::Status taken = TryCreate(SmallSpec("champion", 1)).status();
  EXPECT_TRUE(absl::IsAlreadyExists(taken));
  EXPECT_THAT(std::string(taken.message()), HasSubstr("champion"));
}

TEST_F(DispatcherVersions, AliasesAreListedByNameInPages) {
  const ChainId chain = Lease({});
  Advance(&worker_, chain);
  for (const char* name : {"c", "a", "b"}) ASSERT_TRUE(SetAlias(name, chain.job, 0).ok());
  const auto first = versions_->ListAliases(kDefaultTenant, 2, "").value();
  ASSERT_EQ(first.items.size(), 2u);
  EXPECT_EQ(first.items[1], (Alias{kDefaultTenant, "b", chain.job, 1}));
  const auto second = versions_->ListAliases(kDefaultTenant, 2, first.next_page_token).value();
  ASSERT_EQ(second.items.size(), 1u);
  EXPECT_EQ(second.items[0].name, "c");
  EXPECT_EQ(second.next_page_token, "");
  EXPECT_THAT(versions_->ListAliases("other", 2, "")->items, IsEmpty());
  EXPECT_TRUE(absl::IsInvalidArgument(versions_->ListAliases("other", 2, first.next_page_token).status()));
}

TEST_F(DispatcherVersions, BriefCountsDraws) {
  const ChainId chain = Lease({});
  EXPECT_EQ(dispatcher_->GetBrief(chain.job)->num_draws, 0);
  Advance(&worker_, chain);
  Advance(&worker_, chain);
  EXPECT_EQ(dispatcher_->GetBrief(chain.job)->num_draws, 2);
  EXPECT_THAT(dispatcher_->GetChainStates(chain.job).value(), ElementsAre(ChainState::kLeased));
  Start();
  EXPECT_EQ(dispatcher_->GetBrief(chain.job)->num_draws, 2);
  EXPECT_TRUE(absl::IsNotFound(dispatcher_->GetBrief("nothing").status()));
}

}  // namespace
}  // namespace chainfleet

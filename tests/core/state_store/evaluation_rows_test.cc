// The contract of every StateStore for evaluations.
#include "core/base/limits.h"
#include "tests/core/state_store/state_store_fixture.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class EvaluationRows : public StateStoreTest {
 protected:
  void SetUp() override {
    Create("job-aaaaaa", 1);
    Create("job-bbbbbb", 1);
  }
  ApplyResult Begin(const std::string& id, const std::string& job = "job-aaaaaa", const std::string& request_id = "",
                    const std::string& tenant = "default") {
    EvaluationRow row;
    row.id = id;
    row.job = job;
    row.tenant = tenant;
    row.request_id = request_id;
    row.request = std::string("what\0was asked", 14);
    return Apply(change::CreateEvaluation{row});
  }
  std::vector<std::string> Ids(const EvaluationQuery& query) {
    std::vector<std::string> ids;
    const std::vector<EvaluationRow> rows = store_->ListEvaluations(query).value();
    for (const EvaluationRow& row : rows) ids.push_back(row.id);
    return ids;
  }
};

TEST_P(EvaluationRows, AreKeptWithTheirBytesAndTimes) {
  const ApplyResult begun = Begin("eval-1", "job-aaaaaa", "r1", "blue");
  ASSERT_TRUE(begun.status.ok()) << begun.status;
  EXPECT_EQ(begun.evaluation->created_at, wall_);
  EXPECT_FALSE(begun.replayed);
  const std::string result("\0\xff result", 9);
  const ApplyResult ended = Apply(change::EndEvaluation{"eval-1", EvaluationState::kSucceeded, result, {}});
  ASSERT_TRUE(ended.status.ok()) << ended.status;
  EXPECT_EQ(ended.evaluation->result, result);
  store_ = harness_->Open();
  const EvaluationRow row = store_->FindEvaluation("eval-1", "blue").value();
  EXPECT_EQ(row.sequence, begun.evaluation->sequence);
  EXPECT_EQ(row.job, "job-aaaaaa");
  EXPECT_EQ(row.tenant, "blue");
  EXPECT_EQ(row.request_id, "r1");
  EXPECT_EQ(row.request, std::string("what\0was asked", 14));
  EXPECT_EQ(row.state, EvaluationState::kSucceeded);
  EXPECT_EQ(row.result, result);
  EXPECT_TRUE(row.error.ok());
  EXPECT_EQ(row.created_at, wall_);
  EXPECT_EQ(row.finished_at, wall_);
  EXPECT_TRUE(absl::IsNotFound(store_->FindEvaluation("eval-2", "blue").status()));
  EXPECT_TRUE(absl::IsNotFound(store_->FindEvaluation("eval-1", "red").status())) << "another tenant asks";
}

TEST_P(EvaluationRows, FailWithCodeReasonAndMessage) {
  Begin("eval-1");
  const absl::Status error = WithReason(absl::FailedPreconditionError("2 readable draws"), "TOO_FEW_DRAWS");
  ASSERT_TRUE(Apply(change::EndEvaluation{"eval-1", EvaluationState::kFailed, "", error}).status.ok());
  store_ = harness_->Open();
  const EvaluationRow row = store_->FindEvaluation("eval-1", "default").value();
  EXPECT_EQ(row.state, EvaluationState::kFailed);
  EXPECT_TRUE(absl::IsFailedPrecondition(row.error));
  EXPECT_EQ(row.error.message(), "2 readable draws");
  EXPECT_EQ(ReasonOf(row.error), "TOO_FEW_DRAWS");
  EXPECT_EQ(row.result, "");
}

TEST_P(EvaluationRows, EndOnce) {
  Begin("eval-1");
  ASSERT_TRUE(Apply(change::EndEvaluation{"eval-1", EvaluationState::kCancelled, "", {}}).status.ok());
  const ApplyResult late = Apply(change::EndEvaluation{"eval-1", EvaluationState::kSucceeded, "result", {}});
  EXPECT_TRUE(late.status.ok());
  EXPECT_TRUE(late.replayed);
  EXPECT_EQ(late.evaluation->state, EvaluationState::kCancelled);
  EXPECT_EQ(store_->FindEvaluation("eval-1", "default")->state, EvaluationState::kCancelled);
  EXPECT_TRUE(absl::IsNotFound(Apply(change::EndEvaluation{"none", EvaluationState::kCancelled, "", {}}).status));
}

TEST_P(EvaluationRows, AreMadeOnceForEachRequestOfATenant) {
  Begin("eval-1", "job-aaaaaa", "r1");
  const ApplyResult again = Begin("eval-2", "job-aaaaaa", "r1");
  EXPECT_TRUE(again.status.ok()) << again.status;
  EXPECT_TRUE(again.replayed);
  EXPECT_EQ(again.evaluation->id, "eval-1");
  EXPECT_FALSE(Begin("eval-3", "job-aaaaaa", "r1", "blue").replayed) << "another tenant's";
  EXPECT_FALSE(Begin("eval-4").replayed);
  EXPECT_FALSE(Begin("eval-5").replayed) << "no request_id is no request_id";
  EXPECT_TRUE(absl::IsAborted(Begin("eval-5").status)) << "the id is taken";
  EXPECT_TRUE(absl::IsNotFound(Begin("eval-6", "job-cccccc").status));
}

TEST_P(EvaluationRows, AreListedNewestFirstByWhatIsAsked) {
  Begin("eval-1", "job-aaaaaa", "", "blue");
  Begin("eval-2", "job-bbbbbb", "r2");
  Begin("eval-3", "job-aaaaaa");
  const int64_t third = Begin("eval-4", "job-bbbbbb").evaluation->sequence;
  Apply(change::EndEvaluation{"eval-3", EvaluationState::kSucceeded, "result", {}});
  EXPECT_THAT(Ids({}), ElementsAre("eval-4", "eval-3", "eval-2", "eval-1"));
  EXPECT_THAT(Ids({.limit = 2}), ElementsAre("eval-4", "eval-3"));
  EXPECT_THAT(Ids({.before = third, .limit = 2}), ElementsAre("eval-3", "eval-2"));
  EXPECT_THAT(Ids({.tenant = "blue"}), ElementsAre("eval-1"));
  EXPECT_THAT(Ids({.tenant = "default", .job = "job-aaaaaa"}), ElementsAre("eval-3"));
  EXPECT_THAT(Ids({.tenant = "default", .request_id = "r2"}), ElementsAre("eval-2"));
  EXPECT_THAT(Ids({.state = EvaluationState::kRunning}), ElementsAre("eval-4", "eval-2", "eval-1"));
  EXPECT_EQ(store_->ListEvaluations({.state = EvaluationState::kSucceeded})->at(0).result, "") << "lists are small";
}

TEST_P(EvaluationRows, OldOnesOfAJobGoThatHaveEnded) {
  Begin("first", "job-bbbbbb");
  Begin("running");
  for (int i = 0; i < limits::kKeptEvaluations; ++i) {
    const std::string id = "eval-" + std::to_string(i);
    Begin(id);
    Apply(change::EndEvaluation{id, EvaluationState::kSucceeded, "", {}});
  }
  Begin("newest");
  EXPECT_THAT(Ids({.job = "job-aaaaaa", .limit = 1000}), SizeIs(limits::kKeptEvaluations + 1)) << "and the running one";
  EXPECT_TRUE(absl::IsNotFound(store_->FindEvaluation("eval-0", "default").status()));
  EXPECT_TRUE(store_->FindEvaluation("eval-1", "default").ok());
  EXPECT_TRUE(store_->FindEvaluation("running", "default").ok());
  EXPECT_TRUE(store_->FindEvaluation("first", "default").ok()) << "of another job";
}

TEST_P(EvaluationRows, GoWithTheirJob) {
  Begin("eval-1");
  Begin("eval-2", "job-bbbbbb");
  Apply(change::SetIntent{"job-aaaaaa", JobIntent::kDelete});
  EXPECT_TRUE(absl::IsNotFound(Begin("eval-3").status)) << "it is going";
  ASSERT_TRUE(Apply(change::PurgeJob{"job-aaaaaa"}).status.ok());
  EXPECT_THAT(Ids({}), ElementsAre("eval-2"));
  EXPECT_TRUE(absl::IsNotFound(Apply(change::EndEvaluation{"eval-1", EvaluationState::kSucceeded, "", {}}).status));
  EXPECT_THAT(Ids({.job = "job-aaaaaa"}), IsEmpty());
}

TEST_P(EvaluationRows, FindingsAreKeptWithTheirBytesUntilTheirJobGoes) {
  const std::string bytes("\0\xff seen", 7);
  ASSERT_TRUE(Apply(change::KeepFindings{"job-aaaaaa", {{"summary", bytes}, {"traces of energy", "old"}}}).status.ok());
  ASSERT_TRUE(Apply(change::KeepFindings{"job-aaaaaa", {{"traces of energy", "new"}}}).status.ok());
  ASSERT_TRUE(Apply(change::KeepFindings{"job-bbbbbb", {{"summary", "of another"}}}).status.ok());
  store_ = harness_->Open();
  EXPECT_EQ(store_->FindFinding("job-aaaaaa", "summary").value(), bytes);
  EXPECT_EQ(store_->FindFinding("job-aaaaaa", "traces of energy").value(), "new");
  EXPECT_TRUE(absl::IsNotFound(store_->FindFinding("job-aaaaaa", "traces of height").status()));
  const FindingName summary{"job-aaaaaa", "summary"}, traces{"job-aaaaaa", "traces of energy"};
  EXPECT_THAT(store_->ListFindings({}, 2).value(), ElementsAre(summary, traces));
  EXPECT_THAT(store_->ListFindings(traces, 2).value(), ElementsAre(FindingName{"job-bbbbbb", "summary"}));
  Apply(change::SetIntent{"job-aaaaaa", JobIntent::kDelete});
  EXPECT_TRUE(absl::IsNotFound(Apply(change::KeepFindings{"job-aaaaaa", {{"late", ""}}}).status)) << "it is going";
  ASSERT_TRUE(Apply(change::PurgeJob{"job-aaaaaa"}).status.ok());
  EXPECT_TRUE(absl::IsNotFound(store_->FindFinding("job-aaaaaa", "summary").status()));
  EXPECT_EQ(store_->FindFinding("job-bbbbbb", "summary").value(), "of another");
}

INSTANTIATE_TEST_SUITE_P(AllStores, EvaluationRows, testing::ValuesIn(StoreKinds()), StoreKindName);

}  // namespace
}  // namespace chainfleet

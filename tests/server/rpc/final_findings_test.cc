// Findings of a server that encrypts draws at rest.
#include "server/rpc/final_findings.h"

#include <spdlog/spdlog.h>

#include "core/base/log.h"
#include "server/rpc/job_render.h"
#include "tests/server/rpc/one_worker.h"

namespace chainfleet {
namespace {

using testing::AllOf;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

const std::string kFirst = "first " + std::string(64, '1') + "\n", kSecond = "second " + std::string(64, '2') + "\n",
                  kVision = "eyes " + std::string(64, '3') + " vision\n";
const std::string kRunning = "traces while running", kTraces = "traces of theta[0]";

class EncryptedFindings : public OneWorker {
 protected:
  EncryptedFindings() : chain_(Lease().chain), job_(chain_.job) {
    traces_.Add(chain_, {.point = 0, .quantities = {"theta[0]"}, .steps = {6, 7, 8, 9, 10}, .values = values_},
                std::nullopt, absl::Seconds(1));
    WaitForDiagnostics();
  }

  // The findings of a server that has these keys, over the job's traces or another table.
  FinalFindings Open(const std::string& keys) { return Open(keys, &traces_); }
  FinalFindings Open(const std::string& keys, TraceTable* table) {
    return {threads_.get(), state_.get(), table,
            JobCipher(*ObjectKeys::Parse(keys), [](const std::string&) { return "lab"; })};
  }
  void Store(const std::string& part, const std::string& body) {
    Waited<bool> written;
    coordinator_.writer().Write(change::KeepFindings{job_, {{part, body}}},
                                [take = written.Take()](const ApplyResult& result) { take(result.status.ok()); });
    EXPECT_EQ(written.Get(), true);
  }
  void KeepRunning(const std::string& keys) {
    Open(keys).KeepTraces(job_, absl::Seconds(1), &coordinator_.writer());
    Store("later", "");  // returns after the traces are written
  }
  void KeepEnded(const std::string& keys) {
    FinalFindings findings = Open(keys);
    findings.OnJobEnd(Ended(), [this](std::map<std::string, std::string> parts, const std::function<void()>& done) {
      coordinator_.writer().Write(change::KeepFindings{job_, std::move(parts)}, [done](const ApplyResult&) { done(); });
    });
    Waited<bool> kept;
    findings.WhenKept(job_, [take = kept.Take()] { take(true); });
    kept.Get();
  }
  JobView Ended() {
    JobView view = dispatcher_.GetJob(job_).value();
    view.state = JobState::kSucceeded;
    return view;
  }
  std::string Stored(const std::string& part) { return state_->FindFinding(job_, part).value(); }
  // The traces that a server with these keys has after its start.
  std::vector<TracedChain> Restored(const std::string& keys) {
    TraceTable table(&computing_);
    EXPECT_TRUE(Open(keys, &table).RestoreTraces(job_, {ChainState::kLeased}, absl::Seconds(7)).ok());
    WaitForDiagnostics();
    return table.EveryTrace(job_);
  }
  // The traces that a server with these keys answers with after its job has ended.
  absl::StatusOr<v1::Traces> Answered(const std::string& keys) {
    TraceTable nothing(&computing_);
    return Open(keys, &nothing).TracesOf(Ended(), "theta[0]");
  }
  std::string Bytes() const {
    return {reinterpret_cast<const char*>(values_.data()), values_.size() * sizeof values_[0]};
  }

  const std::vector<double> values_ = {4.25, 1.5, 3.125, 2.75, 5.5};
  const ChainId chain_;
  const std::string job_;
};

TEST_F(EncryptedFindings, NoTracedValueIsStoredInClear) {
  KeepRunning(kFirst);
  EXPECT_THAT(Stored(kRunning), AllOf(StartsWith("CFCRYPT1first"), Not(HasSubstr(Bytes().substr(0, 16)))));
  ASSERT_THAT(Restored(kFirst), SizeIs(1));
  EXPECT_EQ(Restored(kSecond + kFirst)[0].values, values_);
  KeepEnded(kFirst);
  EXPECT_EQ(Stored(kRunning), "");
  for (const std::string& part : {std::string("summary"), kTraces}) {
    EXPECT_THAT(Stored(part), AllOf(StartsWith("CFCRYPT1first"), Not(HasSubstr(Bytes().substr(0, 16)))));
  }
  EXPECT_THAT(Answered(kSecond + kFirst)->chains(0).values(), ElementsAreArray(values_));
  TraceTable nothing(&computing_);
  const auto job = Open(kFirst, &nothing).Render(Ended());
  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_EQ(job->diagnostics_size(), 1);
  EXPECT_DOUBLE_EQ(job->diagnostics(0).mean(), 3.425);
}

TEST_F(EncryptedFindings, WithoutKeysTheStoredBytesAreTheMessage) {
  KeepRunning("");
  EXPECT_EQ(Stored(kRunning), RenderTraces("", traces_.EveryTrace(job_), {"theta[0]"}).SerializeAsString());
  EXPECT_THAT(Stored(kRunning), HasSubstr(Bytes()));
}

TEST_F(EncryptedFindings, TracesInClearAreReadAndRenewalEncryptsThem) {
  KeepEnded("");
  KeepRunning("");
  EXPECT_EQ(Restored(kFirst)[0].values, values_);
  EXPECT_THAT(Answered(kFirst)->chains(0).values(), ElementsAreArray(values_));
  const std::vector<std::string> parts = {"summary", kTraces, kRunning};
  for (const std::string& keys : {kFirst, kSecond + kFirst}) {
    ASSERT_TRUE(Open(keys).Renew(&coordinator_.writer()).ok());
    for (const std::string& part : parts) EXPECT_THAT(Stored(part), StartsWith("CFCRYPT1" + keys.substr(0, 5)));
    const std::string before = Stored(kTraces);
    ASSERT_TRUE(Open(keys).Renew(&coordinator_.writer()).ok());
    EXPECT_EQ(Stored(kTraces), before) << "it was under the present key";
  }
  EXPECT_EQ(Stored("later"), "") << "an empty part has nothing to encrypt";
  EXPECT_EQ(Restored(kSecond)[0].values, values_);
  EXPECT_THAT(Answered(kSecond)->chains(0).values(), ElementsAreArray(values_));
}

TEST_F(EncryptedFindings, WithoutTheirKeyTheJobIsShownWithoutThem) {
  KeepEnded(kFirst);
  KeepRunning(kFirst);
  for (const std::string& keys : {std::string(), kSecond}) {
    EXPECT_THAT(Restored(keys), IsEmpty());
    EXPECT_EQ(ReasonOf(Answered(keys).status()), "NO_DRAW_KEY");
    TraceTable nothing(&computing_);
    const FinalFindings findings = Open(keys, &nothing);
    const auto before = spdlog::default_logger();
    testing::internal::CaptureStderr();
    InitLog("final_findings_test", "info");
    const auto job = findings.Render(Ended());
    EXPECT_TRUE(findings.Render(Ended()).ok());
    spdlog::set_default_logger(before);
    const std::string log = testing::internal::GetCapturedStderr();
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_EQ(job->diagnostics_size(), 0);
    const size_t said = log.find("under the key first, which the keys of draws do not have: add its line");
    ASSERT_NE(said, log.npos) << log;
    EXPECT_EQ(log.find("the key first", said + 20), log.npos) << "once for each job";
  }
  const std::string stored = Stored(kTraces);
  EXPECT_TRUE(Open(kSecond).Renew(&coordinator_.writer()).ok());
  EXPECT_EQ(Stored(kTraces), stored) << "its key may come back";
  EXPECT_EQ(Restored(kFirst)[0].values, values_);
}

TEST_F(EncryptedFindings, WithoutAKeyOfTheTenantNothingIsStored) {
  KeepRunning(kVision);
  EXPECT_TRUE(absl::IsNotFound(state_->FindFinding(job_, kRunning).status()));
  KeepEnded(kVision);
  EXPECT_EQ(Stored(kRunning), "");
  EXPECT_TRUE(absl::IsNotFound(state_->FindFinding(job_, "summary").status()));
  EXPECT_TRUE(absl::IsNotFound(state_->FindFinding(job_, kTraces).status()));
  KeepRunning("");
  EXPECT_EQ(ReasonOf(Open(kVision).Renew(&coordinator_.writer())), "NO_DRAW_KEY");
}

TEST_F(EncryptedFindings, ChangedAndMovedPartsAreDataLoss) {
  KeepRunning(kFirst);
  KeepEnded(kFirst);
  const std::string stored = Stored(kTraces);
  std::string changed = stored;
  changed.back() ^= 1;
  for (const std::string& body : {changed, stored.substr(0, 100), stored.substr(0, 3), Stored("summary")}) {
    Store(kTraces, body);
    EXPECT_TRUE(absl::IsDataLoss(Answered(kFirst).status()));
    Store(kRunning, body);
    EXPECT_THAT(Restored(kFirst), IsEmpty()) << "traces start anew";
    EXPECT_TRUE(Open(kFirst).Renew(&coordinator_.writer()).ok());
    EXPECT_EQ(Stored(kTraces), body);
  }
  Store(kRunning, stored);
  EXPECT_THAT(Restored(kFirst), IsEmpty()) << "of another part";
}

}  // namespace
}  // namespace chainfleet

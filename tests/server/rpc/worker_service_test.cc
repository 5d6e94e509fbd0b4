#include <optional>
#include <string>
#include <utility>

#include "core/domain/signed_upload.h"
#include "core/store/draw_codec/object_names.h"
#include "core/store/draw_codec/sha256.h"
#include "core/wire/types_wire.h"
#include "core/wire/worker_wire.h"
#include "server/rpc/blob_upload_call.h"
#include "tests/server/rpc/one_worker.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"
#include "tests/support/scrape.h"

namespace chainfleet {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class WorkerServiceTest : public OneWorker {
 protected:
  absl::StatusOr<std::string> ReadSegment(const std::string& job, const std::string& object) {
    v1::ReadSegmentRequest request;
    request.set_job(job);
    request.set_object(object);
    grpc::ClientContext context;
    SetDeadline(&context);
    return ReadAll(jobs_->ReadSegment(&context, request));
  }
};

TEST_F(WorkerServiceTest, GrantsAChainWithItsPlan) {
  const Grant grant = Lease();
  EXPECT_EQ(grant.lease_epoch, 1);
  EXPECT_EQ(grant.plan->spec.name, "walk");
  EXPECT_EQ(grant.plan->spec.num_steps, 100);
}

TEST_F(WorkerServiceTest, RefusesAnotherProtocolWithBothNumbers) {
  const auto reply = Synchronize(kProtocolVersion + 5);
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(reply.status()), "VERSION_MISMATCH");
  EXPECT_THAT(std::string(reply.status().message()), HasSubstr(std::to_string(kProtocolVersion + 5)));
  EXPECT_THAT(std::string(reply.status().message()), HasSubstr(std::to_string(kProtocolVersion)));
}

// Only accepted commits are diagnosed, each once.
TEST_F(WorkerServiceTest, TracesOfCommitsAreDiagnosed) {
  const Grant grant = Lease();
  ProgressCommit commit = CommitOf(grant, {});
  commit.segment.reset();
  commit.trace = {.point = 0, .quantities = {"energy"}, .steps = {6, 7, 8, 9, 10}, .values = {4, 1, 3, 2, 5}};
  ASSERT_TRUE(Commit(commit).ok());
  WaitForDiagnostics();
  const auto job = GetJob("walk");
  ASSERT_EQ(job->diagnostics_size(), 1);
  const v1::Job::Diagnostic& found = job->diagnostics(0);
  EXPECT_EQ(found.quantity(), "energy");
  EXPECT_EQ(found.values(), 5);
  EXPECT_EQ(found.mean(), 3);
  EXPECT_FALSE(found.has_rhat()) << "of a single chain";
  commit.trace.steps = {16, 17, 18, 19, 20};
  const auto again = Commit(commit);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->replayed());
  commit.resume_point.step = 20;
  commit.lease_epoch = 7;
  EXPECT_FALSE(Commit(commit).ok()) << "fenced";
  commit.lease_epoch = grant.lease_epoch;
  commit.store_incarnation = "another";
  EXPECT_EQ(ReasonOf(Commit(commit).status()), "LEASE_FENCED");
  WaitForDiagnostics();
  EXPECT_EQ(GetJob("walk")->diagnostics(0).values(), 5);
}

TEST_F(WorkerServiceTest, TracesOfCommitsAreReadByQuantity) {
  const Grant grant = Lease();
  ProgressCommit commit = CommitOf(grant, {});
  commit.segment.reset();
  commit.trace = {.point = 0, .quantities = {"energy", "theta.norm"}, .steps = {8, 10}, .values = {4, 0.5, 3, 0.75}};
  ASSERT_TRUE(Commit(commit).ok());
  WaitForDiagnostics();
  v1::GetTracesRequest request;
  request.set_job("walk");
  const auto energy = Call(*jobs_, &v1::JobService::Stub::GetTraces, request);
  ASSERT_TRUE(energy.ok()) << energy.status();
  EXPECT_EQ(energy->quantity(), "energy");
  ASSERT_EQ(energy->chains_size(), 1);
  EXPECT_THAT(energy->chains(0).steps(), testing::ElementsAre(8, 10));
  EXPECT_THAT(energy->chains(0).values(), testing::ElementsAre(4, 3));
  request.set_quantity("theta.norm");
  EXPECT_THAT(Call(*jobs_, &v1::JobService::Stub::GetTraces, request)->chains(0).values(),
              testing::ElementsAre(0.5, 0.75));
  request.set_quantity("height");
  const absl::Status other = Call(*jobs_, &v1::JobService::Stub::GetTraces, request).status();
  EXPECT_EQ(ReasonOf(other), "NOT_TRACED");
  request.set_job("run");
  EXPECT_TRUE(absl::IsNotFound(Call(*jobs_, &v1::JobService::Stub::GetTraces, request).status()));
}

// "Final diagnostics and traces belong in the store."
TEST_F(WorkerServiceTest, FindingsOfAnEndedJobSurviveTheServersMemory) {
  const Grant grant = Lease();
  ProgressCommit commit = CommitOf(grant, {});
  commit.segment.reset();
  commit.trace = {.point = 0, .quantities = {"energy"}, .steps = {6, 7, 8, 9, 10}, .values = {4, 1, 3, 2, 5}};
  commit.stats.report = RunReport{.step = 10, .step_size = 0.25, .effective_temperature = 1.5};
  commit.ends_as = ChainState::kSucceeded;
  ASSERT_TRUE(Commit(commit).ok());
  Waited<bool> kept;
  findings_.WhenKept(grant.chain.job, [take = kept.Take()] { take(true); });
  kept.Get();
  const v1::Job before = GetJob("walk").value();
  ASSERT_EQ(before.diagnostics_size(), 1);
  EXPECT_EQ(before.diagnostics(0).mean(), 3);

  TraceTable nothing(&computing_);
  const FinalFindings afterwards(threads_.get(), state_.get(), &nothing);
  JobView view = dispatcher_.GetJob(grant.chain.job).value();
  view.chains.front().stats = {};
  EXPECT_EQ(afterwards.Render(view)->SerializeAsString(), before.SerializeAsString());
  EXPECT_EQ(before.chains(0).stats().report().effective_temperature(), 1.5);
  const auto energy = afterwards.TracesOf(view, "energy");
  ASSERT_TRUE(energy.ok()) << energy.status();
  EXPECT_THAT(energy->chains(0).values(), testing::ElementsAre(4, 1, 3, 2, 5));
  EXPECT_EQ(ReasonOf(afterwards.TracesOf(view, "height").status()), "NOT_TRACED");
}

// Another leader judges a job that runs by the same values, and by those that come.
TEST_F(WorkerServiceTest, TracesOfARunningJobSurviveTheServersMemory) {
  const Grant grant = Lease();
  ProgressCommit commit = CommitOf(grant, {});
  commit.segment.reset();
  commit.trace = {.point = 0,
                  .quantities = {"energy", "theta.norm"},
                  .steps = {6, 7, 8, 9, 10},
                  .values = {4, 1, 1, 3, 3, 2, 2, 8, 5, 9}};
  ASSERT_TRUE(Commit(commit).ok());
  WaitForDiagnostics();
  const std::string& job = grant.chain.job;
  const auto restore = [&](ChainState state, TraceTable* table) {
    FinalFindings findings(threads_.get(), state_.get(), table);
    const absl::StatusOr<int64_t> restored = findings.RestoreTraces(job, {state}, absl::Seconds(7));
    WaitForDiagnostics();
    return restored;
  };
  const auto keep = [&](absl::Duration at) {
    findings_.KeepTraces(job, at, &coordinator_.writer());
    Waited<bool> written;
    coordinator_.writer().Write(change::KeepFindings{job, {}},
                                [take = written.Take()](const ApplyResult&) { take(true); });  // after the traces
    written.Get();
  };
  TraceTable nothing(&computing_), leader(&computing_), without(&computing_), later(&computing_);
  EXPECT_TRUE(restore(ChainState::kLeased, &nothing).ok());
  EXPECT_TRUE(nothing.Of(job).empty()) << "nothing was kept";
  keep(absl::Seconds(100));
  ASSERT_TRUE(restore(ChainState::kLeased, &leader).ok());
  ASSERT_EQ(leader.Of(job).size(), 2u);
  EXPECT_DOUBLE_EQ(leader.Of(job)[1].mean, 4.6);
  EXPECT_EQ(leader.TracesOf(job, "theta.norm")->at(0).values, (std::vector<double>{1, 3, 2, 8, 9}));
  EXPECT_EQ(leader.TracesOf(job, "energy")->at(0).steps, commit.trace.steps);
  EXPECT_TRUE(restore(ChainState::kDiverged, &without).ok());
  EXPECT_TRUE(without.EveryTrace(job).empty()) << "draws of such a chain are not averaged";
  leader.Add(grant.chain,
             {.point = 0, .quantities = {"energy", "theta.norm"}, .steps = {10, 11}, .values = {0, 0, 7, 7}},
             std::nullopt, absl::Seconds(9));
  EXPECT_EQ(leader.TracesOf(job, "energy")->at(0).values, (std::vector<double>{4, 1, 3, 2, 5, 7}));

  traces_.Add(grant.chain, {.point = 0, .quantities = {"energy", "theta.norm"}, .steps = {11}, .values = {7, 7}},
              std::nullopt, absl::Seconds(101));
  const auto stored = static_cast<double>(state_->FindFinding(job, "traces while running")->size());
  keep(absl::Seconds(100 + 0.99 * stored / limits::kTraceBytesPerSecond));
  ASSERT_TRUE(restore(ChainState::kLeased, &later).ok());
  EXPECT_EQ(later.Of(job).at(0).values, 5) << "too early";
  keep(absl::Seconds(100 + 1.01 * stored / limits::kTraceBytesPerSecond));
  TraceTable newest(&computing_);
  ASSERT_TRUE(restore(ChainState::kLeased, &newest).ok());
  EXPECT_EQ(newest.Of(job).at(0).values, 6);

  ASSERT_TRUE(coordinator_.writer().Commit({change::KeepFindings{job, {{"traces while running", "no message"}}}}).ok());
  EXPECT_EQ(*restore(ChainState::kLeased, &nothing), 0);
  EXPECT_TRUE(nothing.EveryTrace(job).empty()) << "damaged traces start anew";
}

TEST_F(WorkerServiceTest, DrawsAreStoredCommittedListedAndReadBack) {
  const Grant grant = Lease();
  std::string bytes(1'200'000, 'x');  // three chunks
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31 >> 3);
  const BlobRef ref = RefOf(grant, bytes);
  ASSERT_TRUE(Put(grant.chain, grant.lease_epoch, ref, bytes).ok());
  EXPECT_TRUE(Put(grant.chain, grant.lease_epoch, ref, bytes).ok()) << "the same object again is OK";
  const auto first = Commit(CommitOf(grant, ref)), again = Commit(CommitOf(grant, ref));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_FALSE(first->replayed());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->replayed());

  v1::ListSegmentsRequest request;
  request.set_job("walk");
  const auto list = Call(*jobs_, &v1::JobService::Stub::ListSegments, request);
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->segments_size(), 1);
  EXPECT_EQ(list->segments(0).worker(), "w1");
  EXPECT_EQ(list->segments(0).host(), "host");
  EXPECT_EQ(list->segments(0).numerics_version(), 1);
  EXPECT_EQ(GetJob("walk")->num_draws(), 1);
  const auto read = ReadSegment("walk", ref.name);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(*read == bytes);
}

TEST_F(WorkerServiceTest, ReadingAChangedSegmentIsDataLossAndLeavesItsDrawsOut) {
  const Grant grant = Lease();
  const BlobRef ref = RefOf(grant, "draws");
  ASSERT_TRUE(Put(grant.chain, grant.lease_epoch, ref, "draws").ok());
  ASSERT_TRUE(Commit(CommitOf(grant, ref)).ok());
  ASSERT_TRUE(blobs_.Delete(ref.name).ok());
  ASSERT_TRUE(blobs_.Put(ref.name, "drawn").ok());  // a bit flipped on the disk
  const auto read = ReadSegment("walk", ref.name);
  EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ReasonOf(read.status()), "DIGEST_MISMATCH");
  ASSERT_TRUE(SetIntent("walk", v1::Job::PAUSE).ok());  // a later change: the mark has been applied
  const auto record = state_->FindSegment(grant.chain.job, ref.name);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_TRUE(record->corrupt);
}

// A missing object is a lost draw: it is marked and counted, so that later readers leave it out.
TEST_F(WorkerServiceTest, MarksADrawWhoseObjectIsGone) {
  const Grant grant = Lease();
  const BlobRef ref = RefOf(grant, "draws");
  ASSERT_TRUE(Put(grant.chain, grant.lease_epoch, ref, "draws").ok());
  ASSERT_TRUE(Commit(CommitOf(grant, ref)).ok());
  ASSERT_TRUE(blobs_.Delete(ref.name).ok());
  const absl::Status read = ReadSegment("walk", ref.name).status();
  EXPECT_TRUE(absl::IsDataLoss(read)) << read;
  EXPECT_EQ(ReasonOf(read), "OBJECT_MISSING");
  ASSERT_TRUE(SetIntent("walk", v1::Job::PAUSE).ok());  // a later change: the mark has been applied
  EXPECT_EQ(state_->CountCorrupt().value(), 1);
}

TEST_F(WorkerServiceTest, CountsDrawsFoundCorruptByReadersAndByPredictions) {
  const auto metrics = registry_.Serve("127.0.0.1:0");
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  const Grant grant = Lease();
  const BlobRef ref = RefOf(grant, "draws");
  ASSERT_TRUE(Put(grant.chain, grant.lease_epoch, ref, "draws").ok());
  ASSERT_TRUE(Commit(CommitOf(grant, ref)).ok());
  ASSERT_TRUE(ReadSegment("walk", ref.name).ok());
  EXPECT_THAT(Scrape(*metrics), HasSubstr("chainfleet_corrupt_draws_total 0\n"));
  ASSERT_TRUE(blobs_.Delete(ref.name).ok());
  ASSERT_TRUE(blobs_.Put(ref.name, "drawn").ok());
  EXPECT_FALSE(ReadSegment("walk", ref.name).ok());
  EXPECT_THAT(Scrape(*metrics), HasSubstr("chainfleet_corrupt_draws_total 1\n"));
  catalog_.MarkCorrupt(grant.chain.job, ref.name);
  EXPECT_THAT(Scrape(*metrics), HasSubstr("chainfleet_corrupt_draws_total 2\n"));
}

// These objects come before a commit that never follows.
TEST_F(WorkerServiceTest, CountsRefusedObjectsByReason) {
  const auto metrics = registry_.Serve("127.0.0.1:0");
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  const auto refused = [](const std::string& outcome, int times) {
    return "chainfleet_uploads_refused_total{outcome=\"" + outcome + "\"} " + std::to_string(times) + "\n";
  };
  const Grant grant = Lease();
  const BlobRef ref = RefOf(grant, "draws");
  ASSERT_TRUE(Put(grant.chain, grant.lease_epoch, ref, "draws").ok());
  EXPECT_THAT(Scrape(*metrics), AllOf(HasSubstr(refused("LEASE_FENCED", 0)), HasSubstr(refused("DISK_FULL", 0))));
  Grant other = grant;
  ++other.lease_epoch;
  EXPECT_EQ(ReasonOf(Put(other.chain, other.lease_epoch, RefOf(other, "draws"), "draws")), "LEASE_FENCED");
  EXPECT_EQ(ReasonOf(Put(grant.chain, grant.lease_epoch, ref, "drawn")), "DIGEST_MISMATCH");
  EXPECT_THAT(Scrape(*metrics), AllOf(HasSubstr(refused("LEASE_FENCED", 1)), HasSubstr(refused("DIGEST_MISMATCH", 1))));
}

TEST_F(WorkerServiceTest, AnUploadThatOutlivesItsLeaseIsSweptAgain) {
  const Grant grant = Lease();
  const BlobRef ref = RefOf(grant, "draws");
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::PutBlobReply reply;
  const auto writer = workers_->PutBlob(&context, &reply);
  v1::PutBlobRequest message;
  *message.mutable_header()->mutable_chain() = ToProto(grant.chain);
  message.mutable_header()->set_lease_epoch(grant.lease_epoch);
  *message.mutable_header()->mutable_blob() = ToProto(ref);
  ASSERT_TRUE(Put(grant.chain, grant.lease_epoch, RefOf(grant, "in time"), "in time").ok());
  ASSERT_TRUE(writer->Write(message));
  message.set_data("dr");
  ASSERT_TRUE(writer->Write(message));
  while (object_budget_.held_bytes() != 5) continue;  // the header is taken
  EXPECT_TRUE(state_->ListSweeps(0, 10)->empty());
  ASSERT_TRUE(SetIntent("walk", v1::Job::CANCEL).ok());
  const std::vector<ChainSweep> sweeps = state_->ListSweeps(0, 10).value();
  ASSERT_EQ(sweeps.size(), 1u);
  const std::vector<StateChange> swept{change::EndSweep{sweeps[0].ticket}};
  ASSERT_TRUE(state_->Apply(swept, absl::UnixEpoch()).ok());
  message.set_data("aws");
  ASSERT_TRUE(writer->Write(message));
  writer->WritesDone();
  ASSERT_TRUE(writer->Finish().ok()) << "its header came in time";
  ASSERT_TRUE(SetIntent("walk", v1::Job::DELETE).ok());  // a later change: the queueing has been applied
  ASSERT_EQ(state_->ListSweeps(0, 10)->size(), 1u);
  EXPECT_EQ(state_->ListSweeps(0, 10)->at(0).chain, grant.chain);
}

// The others still commit.
TEST_F(WorkerServiceTest, UploadsOfAWorkerTakeNoMoreThanTheyLeaveFree) {
  const auto metrics = registry_.Serve("127.0.0.1:0");
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  const Grant grant = Lease();
  const BlobRef ref = RefOf(grant, "draws");
  v1::WorkerSession session;
  session.set_worker("w1");
  session.set_incarnation("life");
  {
    BudgetShare own(object_budget_, "w1");
    ASSERT_TRUE(own.Add(limits::kMaxObjectUploadsBytes / 2));
    const absl::Status refused = Put(grant.chain, grant.lease_epoch, ref, "draws", session);
    EXPECT_EQ(ReasonOf(refused), "UPLOADS_FULL");
    EXPECT_EQ(BoundOf(refused), "object_uploads");
    EXPECT_THAT(Scrape(*metrics), HasSubstr("chainfleet_uploads_refused_total{outcome=\"UPLOADS_FULL\"} 1\n"));
  }
  BudgetShare other(object_budget_, "w2"), users(upload_budget_, "vision");
  ASSERT_TRUE(other.Add(limits::kMaxObjectUploadsBytes / 2));
  ASSERT_TRUE(users.Add(limits::kMaxUploadsBytes / 2));
  EXPECT_TRUE(Put(grant.chain, grant.lease_epoch, ref, "draws", session).ok());
}

// gRPC's side of a PutBlob.
class DrivenPut final : public grpc::ServerCallbackReader<StreamedRequest> {
 public:
  explicit DrivenPut(BlobUploadCall* call) : call_(call) { BindReactor(call); }
  ~DrivenPut() override {
    call_->OnReadDone(false);
    call_->OnDone();
  }
  void Say(const v1::PutBlobRequest& message) {
    const grpc::Slice slice(message.SerializeAsString());
    grpc::ByteBuffer wire(&slice, 1);
    request_->Read(&wire);
    call_->OnReadDone(true);
  }
  // Unset while the call goes on.
  const std::optional<absl::Status>& ended() const { return ended_; }

 private:
  void Finish(grpc::Status status) override { ended_ = FromGrpc(status); }
  void SendInitialMetadata() override {}
  void Read(StreamedRequest* request) override { request_ = request; }
  grpc::internal::ServerReactor* reactor() override { return call_; }
  void CallOnDone() override {}

  BlobUploadCall* const call_;
  StreamedRequest* request_ = nullptr;
  std::optional<absl::Status> ended_;
};

TEST_F(WorkerServiceTest, AnUploadEndsAfterTheTimeThatItsSizeTakes) {
  const Grant grant = Lease();
  v1::PutBlobRequest message;
  *message.mutable_header()->mutable_chain() = ToProto(grant.chain);
  message.mutable_header()->set_lease_epoch(grant.lease_epoch);
  *message.mutable_header()->mutable_blob() = ToProto(RefOf(grant, "draws"));
  FakeClock clock;
  ManualExecutor executor(&clock);
  ServiceParts parts = parts_;
  parts.executor = &executor;
  {
    DrivenPut slow(new BlobUploadCall(parts, Principal()));
    slow.Say(message);
    EXPECT_EQ(object_budget_.held_bytes(), 5);
    executor.RunFor(limits::UploadTimeout(5) - absl::Milliseconds(1));
    EXPECT_FALSE(slow.ended().has_value());
    executor.RunFor(absl::Milliseconds(1));
    ASSERT_TRUE(slow.ended().has_value());
    EXPECT_TRUE(absl::IsDeadlineExceeded(*slow.ended())) << *slow.ended();
  }
  EXPECT_EQ(object_budget_.held_bytes(), 0);
  EXPECT_EQ(executor.num_tasks(), 0u) << "the object is not stored";
  DrivenPut twice(new BlobUploadCall(parts, Principal()));
  twice.Say(message);
  twice.Say(message);
  ASSERT_TRUE(twice.ended().has_value());
  EXPECT_TRUE(absl::IsInvalidArgument(*twice.ended())) << "a smaller header would hold less than has arrived";
}

TEST_F(WorkerServiceTest, ObjectsThatAreNoCommittedSegmentsAreNotRead) {
  const Grant grant = Lease();
  const BlobRef ref = RefOf(grant, "draws");
  ASSERT_TRUE(Put(grant.chain, grant.lease_epoch, ref, "draws").ok());
  EXPECT_EQ(ReadSegment("walk", ref.name).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(WorkerServiceTest, SegmentsComePageByPage) {
  const Grant grant = Lease();
  DigestHex parent = grant.progress.last_digest;
  for (int64_t i = 0; i < 3; ++i) {
    const std::string draw = "draw " + std::to_string(i);
    const BlobRef ref = RefOf(grant, draw);
    ASSERT_TRUE(Put(grant.chain, grant.lease_epoch, ref, draw).ok());
    ProgressCommit commit = CommitOf(grant, ref);
    commit.segment->first_index = i;
    commit.resume_point.step = 10 + i;
    commit.segment->steps = {10 + i};
    commit.segment->parent_digest = std::exchange(parent, commit.segment->digest);
    ASSERT_TRUE(Commit(commit).ok());
  }
  v1::ListSegmentsRequest request;
  request.set_job("walk");
  request.set_page_size(2);
  const auto first = Call(*jobs_, &v1::JobService::Stub::ListSegments, request);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_EQ(first->segments_size(), 2);
  request.set_page_token(first->next_page_token());
  const auto second = Call(*jobs_, &v1::JobService::Stub::ListSegments, request);
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_EQ(second->segments_size(), 1);
  EXPECT_EQ(second->segments(0).segment().first_index(), 2);
  EXPECT_EQ(second->next_page_token(), "");
  request.set_chain(0);  // other arguments
  EXPECT_EQ(ReasonOf(Call(*jobs_, &v1::JobService::Stub::ListSegments, request).status()), "BAD_PAGE_TOKEN");
}

TEST_F(WorkerServiceTest, SegmentsOfOnePointOfASweep) {
  v1::JobSpec spec = GaussianJob("swept");
  for (const double temperature : {1.0, 2.0, 3.0}) spec.mutable_sweep()->add_temperature(temperature);
  ASSERT_TRUE(CreateJob(spec).ok());
  std::vector<Grant> grants;
  Granted([&]() -> absl::StatusOr<SynchronizeReply> {
    CHAINFLEET_ASSIGN_OR_RETURN(SynchronizeReply reply, Synchronize());
    grants = reply.grants;
    return reply;
  });
  ASSERT_EQ(grants.size(), 3u);
  for (const Grant& grant : grants) {
    EXPECT_EQ(grant.plan->spec.sweep.temperature.size(), 3u);
    const BlobRef ref = RefOf(grant, "draw of " + std::to_string(grant.chain.index));
    ASSERT_TRUE(Put(grant.chain, grant.lease_epoch, ref, "draw of " + std::to_string(grant.chain.index)).ok());
    ASSERT_TRUE(Commit(CommitOf(grant, ref)).ok());
  }
  v1::ListSegmentsRequest request;
  request.set_job("swept");
  const auto list = [&] { return Call(*jobs_, &v1::JobService::Stub::ListSegments, request); };
  EXPECT_EQ(list()->segments_size(), 3);
  for (const int page_size : {1, 50}) {
    request.set_page_size(page_size);
    for (const int point : {0, 1, 2}) {
      request.set_point("temperature=" + std::to_string(point + 1));
      const auto segments = list();
      ASSERT_EQ(segments->segments_size(), 1);
      EXPECT_EQ(segments->segments(0).chain().index(), point);
    }
  }
  request.set_point("");
  EXPECT_EQ(ReasonOf(list().status()), "POINT_REQUIRED");
  request.set_point("3");
  EXPECT_EQ(ReasonOf(list().status()), "NO_SUCH_POINT");
}

TEST_F(WorkerServiceTest, RefusesBytesThatDoNotMatchTheirDigestOrSize) {
  const Grant grant = Lease();
  const BlobRef ref = RefOf(grant, "draws");
  for (const std::string& sent : {std::string("drawn"), std::string("draw"), std::string("draws and more")}) {
    EXPECT_EQ(Put(grant.chain, grant.lease_epoch, ref, sent).code(), absl::StatusCode::kDataLoss) << sent;
  }
  EXPECT_EQ(blobs_.List("")->size(), 0u);
}

TEST_F(WorkerServiceTest, RefusesObjectsOfOtherChainsEpochsAndPlaces) {
  const Grant grant = Lease();
  BlobRef ref = RefOf(grant, "draws");
  EXPECT_EQ(ReasonOf(Put(grant.chain, grant.lease_epoch, {"datasets/x", 5, ref.sha256}, "draws")), "INVALID_FIELD");
  EXPECT_EQ(ReasonOf(Put(grant.chain, grant.lease_epoch + 1, ref, "draws")), "INVALID_FIELD");
  ref.name = SegmentObjectName("store", grant.chain, grant.lease_epoch + 1, ref.sha256);
  const absl::Status fenced = Put(grant.chain, grant.lease_epoch + 1, ref, "draws");
  EXPECT_EQ(fenced.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(fenced), "LEASE_FENCED");
}

TEST_F(WorkerServiceTest, ObjectsInAFolderComeThroughTheServer) {
  const Grant grant = Lease();
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::SignUploadRequest request;
  *request.mutable_chain() = ToProto(grant.chain);
  request.set_lease_epoch(grant.lease_epoch);
  *request.mutable_blob() = ToProto(RefOf(grant, "draws"));
  v1::SignUploadReply reply;
  ASSERT_TRUE(workers_->SignUpload(&context, request, &reply).ok());
  EXPECT_TRUE(reply.url().empty());
}

TEST_F(WorkerServiceTest, RefusesAnUploadWithoutHeader) {
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::PutBlobReply reply;
  const auto writer = workers_->PutBlob(&context, &reply);
  v1::PutBlobRequest message;
  message.set_data("x");
  writer->Write(message);
  writer->WritesDone();
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(WorkerServiceTest, RefusesACommitWhoseObjectIsMissingOrShort) {
  const Grant grant = Lease();
  BlobRef ref = RefOf(grant, "draws");
  const auto missing = Commit(CommitOf(grant, ref));
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(missing.status()), "BLOB_MISSING");
  ASSERT_TRUE(Put(grant.chain, grant.lease_epoch, ref, "draws").ok());
  ++ref.size_bytes;
  EXPECT_EQ(ReasonOf(Commit(CommitOf(grant, ref)).status()), "BLOB_MISSING");
  EXPECT_EQ(GetJob("walk")->num_draws(), 0);
}

TEST_F(WorkerServiceTest, RefusesACommitThatNamesAnothersObject) {
  const Grant grant = Lease();
  const BlobRef ref = RefOf(grant, "draws");
  ASSERT_TRUE(Put(grant.chain, grant.lease_epoch, ref, "draws").ok());
  ProgressCommit commit = CommitOf(grant, ref);
  const BlobRef shard{DatasetObjectName("store", Sha256Hex("rows"), 7), 4, Sha256Hex("rows")};
  ASSERT_TRUE(blobs_.Put(shard.name, "rows").ok());
  commit.resume_point = {10, "", shard, shard.sha256};
  const absl::Status refused = Commit(commit).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
  ASSERT_EQ(FieldViolationsOf(refused).size(), 1u);
  EXPECT_EQ(FieldViolationsOf(refused)[0].path, "resume_point.object.name");
  EXPECT_THAT(FieldViolationsOf(refused)[0].message, AllOf(HasSubstr(shard.name), HasSubstr(ToString(grant.chain))));
  commit.lease_epoch = 7;
  EXPECT_EQ(ReasonOf(Commit(commit).status()), "LEASE_FENCED");
}

TEST_F(WorkerServiceTest, RefusesACommitOfAForgedEpoch) {
  const Grant grant = Lease();
  const BlobRef ref = RefOf(grant, "draws");
  ASSERT_TRUE(Put(grant.chain, grant.lease_epoch, ref, "draws").ok());
  ProgressCommit commit = CommitOf(grant, ref);
  commit.lease_epoch = 7;
  EXPECT_EQ(ReasonOf(Commit(commit).status()), "LEASE_FENCED");
}

TEST_F(WorkerServiceTest, RefusesASegmentThatContradictsItself) {
  const Grant grant = Lease();
  const BlobRef ref = RefOf(grant, "draws");
  ASSERT_TRUE(Put(grant.chain, grant.lease_epoch, ref, "draws").ok());
  ProgressCommit commit = CommitOf(grant, ref);
  commit.segment->weights = {1, 2};
  EXPECT_EQ(Commit(commit).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(WorkerServiceTest, KnowsNoObjectsOutsideTheStore) {
  for (const char* name : {"../../etc/passwd", "state.db", ""}) {
    v1::GetBlobRequest request;
    request.mutable_blob()->set_name(name);
    grpc::ClientContext context;
    SetDeadline(&context);
    EXPECT_EQ(ReadAll(workers_->GetBlob(&context, request)).status().code(), absl::StatusCode::kNotFound) << name;
  }
  const Grant grant = Lease();
  EXPECT_EQ(ReadSegment("walk", RefOf(grant, "never put").name).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadSegment("walk", "store/other-aaaaaa/0/segments/e1-x").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace chainfleet

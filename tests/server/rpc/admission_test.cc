// Tests over the wire who a worker is: joins, certificates, proofs, signatures. Tests of their times have a clock of
// their own.
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_replace.h"
#include "core/domain/tenant.h"
#include "tests/server/rpc/contract_methods.h"
#include "tests/server/rpc/one_worker.h"
#include "tests/support/fake_clock.h"

namespace chainfleet {
namespace {

class AdmissionTest : public OneWorker {
 protected:
  AdmissionTest()
      : OneWorker({{"vision", "vision"},
                   {"speech", "speech"},
                   {"operator", "default", Role::kOperator},
                   {"vision-operator", "vision", Role::kOperator},
                   {"speech-operator", "speech", Role::kOperator},
                   {"join", kEveryTenant, Role::kWorker},
                   {"other join", "vision", Role::kWorker}}) {
    incarnation_ = own_.incarnation;
  }

  void Add(const AccessToken& token) {
    Waited<absl::StatusOr<AccessToken>> added;
    coordinator_.tokens().Add(token, added.Take());
    ASSERT_TRUE(added.Get()->ok()) << added.Get()->status();
  }
  void Revoke(const AccessToken& token) {
    Waited<absl::StatusOr<bool>> revoked;
    coordinator_.tokens().Revoke(TokenId(token.sha256), std::nullopt, revoked.Take());
    ASSERT_TRUE(revoked.Get()->ok()) << revoked.Get()->status();
  }

  // A process that asks to join.
  struct Process {
    explicit Process(std::string name, const std::string& proof_of_another = "")
        : worker(std::move(name)), proof(proof_of_another) {}
    std::string worker;
    SigningKey key;
    std::string incarnation = IncarnationOf(key.public_key());
    std::string proof;
  };
  absl::Status Join(Process* process, const std::string& token) {
    v1::JoinRequest request;
    request.set_worker(process->worker);
    request.set_incarnation(process->incarnation);
    request.set_public_key(process->key.public_key());
    request.set_signature(process->key.Sign(JoinText(process->worker, process->incarnation)));
    token_ = token;
    proof_ = process->proof;
    const auto reply = Call(*workers_, &v1::WorkerService::Stub::Join, request);
    if (!reply.ok()) return reply.status();
    v1::WorkerProof proof;
    proof.set_certificate(reply->certificate());
    process->proof = ProofUntil(*process, std::move(proof), absl::Minutes(5)).SerializeAsString();
    Speak(*process);
    return absl::OkStatus();
  }
  v1::WorkerProof ProofUntil(const Process& process, v1::WorkerProof proof, absl::Duration from_now) const {
    proof.set_expires(absl::ToUnixSeconds(clock_.Wall() + from_now));
    proof.set_signature(process.key.Sign(ProofText(proof.expires())));
    return proof;
  }
  // Later calls are those of `process`.
  void Speak(const Process& process) {
    token_.clear();
    proof_ = process.proof;
  }
  void SpeakAs(const std::string& tenant) {
    token_ = tenant;
    proof_.clear();
  }
  void SpeakAsVision() { SpeakAs("vision"); }
  absl::Status SynchronizeAs(const Process& process) {
    Speak(process);
    SynchronizeRequest request;
    request.worker = process.worker;
    request.incarnation = process.incarnation;
    request.seq = 1;
    request.devices = {{"cpu", int64_t{1} << 30, 4}};
    return Call(*workers_, &v1::WorkerService::Stub::Synchronize, ToProto(request)).status();
  }
  absl::Status CommitSigned(const ProgressCommit& commit, const SigningKey& key) {
    v1::CommitProgressRequest request = ToProto(commit);
    request.set_signature(absl::Base64Escape(key.Sign(SignedText(*commit.segment))));
    return Call(*workers_, &v1::WorkerService::Stub::CommitProgress, request).status();
  }

  Process own_{"w1"};  // the process of OneWorker
};

TEST_F(AdmissionTest, AProcessSpeaksForItselfOnly) {
  Process other{"w1"}, third{"w2"};
  ASSERT_TRUE(Join(&own_, "join").ok());
  ASSERT_TRUE(Synchronize().ok());
  for (Process* process : {&other, &third}) {
    ASSERT_TRUE(Join(process, "join").ok());
    EXPECT_EQ(ReasonOf(Synchronize().status()), "NOT_YOUR_SESSION") << "it says that it is w1 in its life";
  }
  SpeakAsVision();
  ASSERT_TRUE(CreateJob(GaussianJob("walk")).ok());
  Speak(own_);
  const Grant grant = Granted([&] { return Synchronize(); });
  const BlobRef ref = RefOf(grant, "draws");
  const ProgressCommit commit = CommitOf(grant, ref);
  v1::WorkerSession session;
  session.set_worker("w1");
  session.set_incarnation(own_.incarnation);
  Speak(third);
  EXPECT_EQ(ReasonOf(Put(grant.chain, grant.lease_epoch, ref, "draws", session)), "LEASE_FENCED");
  EXPECT_EQ(ReasonOf(CommitSigned(commit, third.key)), "NOT_YOUR_SESSION");
  Speak(own_);
  ASSERT_TRUE(Put(grant.chain, grant.lease_epoch, ref, "draws").ok()) << "its certificate says which session it is";
  EXPECT_TRUE(CommitSigned(commit, own_.key).ok());
}

TEST_F(AdmissionTest, ACommitIsSignedAndItsRecordHasTheSignature) {
  SpeakAsVision();
  const std::string job = CreateJob(GaussianJob("walk"))->id();
  ASSERT_TRUE(Join(&own_, "join").ok());
  const Grant grant = Granted([&] { return Synchronize(); });
  const BlobRef ref = RefOf(grant, "draws");
  ASSERT_TRUE(Put(grant.chain, grant.lease_epoch, ref, "draws").ok());
  const ProgressCommit commit = CommitOf(grant, ref);
  EXPECT_EQ(ReasonOf(Commit(commit).status()), "BAD_SIGNATURE") << "none";
  EXPECT_EQ(ReasonOf(CommitSigned(commit, SigningKey())), "BAD_SIGNATURE");
  ASSERT_TRUE(CommitSigned(commit, own_.key).ok());
  SpeakAsVision();
  v1::ListSegmentsRequest list;
  list.set_job(job);
  list.set_resume_points(true);
  const auto segments = Call(*jobs_, &v1::JobService::Stub::ListSegments, list);
  ASSERT_TRUE(segments.ok() && segments->segments_size() == 1) << segments.status();
  std::string signature;
  ASSERT_TRUE(absl::Base64Unescape(segments->segments(0).signature(), &signature));
  EXPECT_TRUE(IsSignedBy(own_.key.public_key(), SignedText(*commit.segment), signature));
  v1::WorkerProof proof;
  proof.ParseFromString(own_.proof);
  EXPECT_EQ(segments->segments(0).certificate(), absl::Base64Escape(proof.certificate()));
  ASSERT_EQ(segments->resume_points_size(), 1);
  EXPECT_EQ(segments->resume_points(0).chain(), commit.chain.index);
  EXPECT_EQ(segments->resume_points(0).last_digest(), commit.segment->digest);
  const v1::ResumePoint& point = segments->resume_points(0).resume_point();
  EXPECT_EQ(point.step(), 10);
  EXPECT_EQ(point.proof().last_digest(), commit.segment->digest);
  EXPECT_NE(point.proof().signature(), "");
  EXPECT_EQ(point.proof().certificate(), "") << "the process signs no resume points: the server did";
  list.set_resume_points(false);
  EXPECT_EQ(Call(*jobs_, &v1::JobService::Stub::ListSegments, list)->resume_points_size(), 0);
}

// Everybody who reads a draw sees the certificate of its worker, and so the name of the process.
TEST_F(AdmissionTest, TheNameOfAProcessIsNoUseWithoutItsKey) {
  ASSERT_TRUE(Join(&own_, "join").ok());
  ASSERT_TRUE(Synchronize().ok());
  Process thief{"w1"};
  thief.incarnation = own_.incarnation;
  EXPECT_EQ(ReasonOf(Join(&thief, "other join")), "BAD_SIGNATURE");
  Process spare{"w1"};
  spare.incarnation = own_.incarnation;
  EXPECT_EQ(ReasonOf(Join(&spare, "join")), "BAD_SIGNATURE") << "also with the token of the process";
  Speak(own_);
  EXPECT_TRUE(Synchronize().ok());
}

// The takeover of a review: another tenant's worker under the id of one that runs.
TEST_F(AdmissionTest, AnIdBelongsToTheTokenThatLetItInWhileItsWorkerIsThere) {
  Process thief{"w1"}, next{"w1"};
  ASSERT_TRUE(Join(&own_, "join").ok());
  ASSERT_TRUE(Synchronize().ok());
  ASSERT_TRUE(Join(&thief, "other join").ok());
  EXPECT_EQ(ReasonOf(SynchronizeAs(thief)), "WORKER_PRESENT");
  Speak(own_);
  EXPECT_TRUE(Synchronize().ok()) << "nothing has changed for it";
  ASSERT_TRUE(Join(&next, "join").ok());
  EXPECT_TRUE(SynchronizeAs(next).ok()) << "restarted by its owner";
}

TEST_F(AdmissionTest, AProofRenewsACertificateWithItsClaims) {
  ASSERT_TRUE(Join(&own_, "other join").ok());
  ASSERT_TRUE(Join(&own_, "").ok());
  ASSERT_TRUE(Join(&own_, "join").ok()) << "the proof counts, and not the token";
  EXPECT_EQ(admission_.Verify(own_.proof)->claims(),
            (WorkerClaims{"w1", own_.incarnation, "vision", TokenId(Sha256Hex("other join"))}));
  Process other{"w2", own_.proof};
  EXPECT_EQ(ReasonOf(Join(&other, "")), "NOT_YOUR_SESSION");
}

TEST_F(AdmissionTest, OnlyTheKeyAndAFreshProofMakeAProcess) {
  ASSERT_TRUE(Join(&own_, "join").ok());
  v1::WorkerProof proof;
  ASSERT_TRUE(proof.ParseFromString(own_.proof));
  const auto refused = [&](const v1::WorkerProof& changed) {
    proof_ = changed.SerializeAsString();
    return absl::IsUnauthenticated(Synchronize().status());
  };
  EXPECT_TRUE(refused(ProofUntil(Process("w1"), proof, absl::Minutes(5)))) << "a certificate without its key";
  EXPECT_TRUE(refused(ProofUntil(own_, proof, absl::Minutes(-1))));
  EXPECT_TRUE(refused(ProofUntil(own_, proof, absl::Hours(1)))) << "it would last for long";
  v1::WorkerProof later = proof;
  later.set_expires(proof.expires() + 60);
  EXPECT_TRUE(refused(later)) << "its time is signed";
  proof_ = own_.proof;
  EXPECT_TRUE(Synchronize().ok());
}

TEST_F(AdmissionTest, OnlyTheHolderOfAKeyGetsACertificateForIt) {
  v1::JoinRequest request;
  request.set_worker("w1");
  request.set_incarnation(own_.incarnation);
  request.set_public_key(own_.key.public_key());
  request.set_signature(SigningKey().Sign(JoinText("w1", own_.incarnation)));
  token_ = "join";
  EXPECT_EQ(ReasonOf(Call(*workers_, &v1::WorkerService::Stub::Join, request).status()), "BAD_SIGNATURE");
  request.set_worker("w1/life/vision");
  EXPECT_EQ(ReasonOf(Call(*workers_, &v1::WorkerService::Stub::Join, request).status()), "INVALID_FIELD");
}

TEST_F(AdmissionTest, ATokenLetsInAsManyWorkersAsItSaysAndItsRevocationEndsThem) {
  const AccessToken token{.sha256 = Sha256Hex("two uses"),
                          .tenant = kEveryTenant,
                          .role = Role::kWorker,
                          .expires_at = clock_.Wall() + absl::Hours(1),
                          .max_uses = 2};
  Add(token);
  Process second{"w2"}, third{"w3"};
  ASSERT_TRUE(Join(&own_, "two uses").ok());
  own_.proof.clear();
  ASSERT_TRUE(Join(&own_, "two uses").ok()) << "a repeated call counts once";
  ASSERT_TRUE(Join(&second, "two uses").ok());
  EXPECT_EQ(ReasonOf(Join(&third, "two uses")), "TOKEN_USED_UP");
  EXPECT_TRUE(SynchronizeAs(own_).ok());
  Revoke(token);
  EXPECT_TRUE(absl::IsUnauthenticated(SynchronizeAs(own_)));
}

// An admin of a tenant chooses the SHA-256 of a new token, and so its id.
TEST_F(AdmissionTest, ATokenThatGetsTheIdOfARevokedOneLetsItsWorkersInOnlyForTheSameTenant) {
  const absl::Time expires = clock_.Wall() + absl::Hours(1);
  const AccessToken all{
      .sha256 = Sha256Hex("all"), .tenant = kEveryTenant, .role = Role::kWorker, .expires_at = expires};
  AccessToken same_id{.sha256 = TokenId(all.sha256) + std::string(52, '0'), .tenant = "vision", .expires_at = expires};
  Add(all);
  ASSERT_TRUE(Join(&own_, "all").ok());
  ASSERT_TRUE(SynchronizeAs(own_).ok());
  Revoke(all);
  for (const auto& [role, tenant] :
       {std::pair(Role::kWorker, "vision"), {Role::kAdmin, "vision"}, {Role::kAdmin, "default"}}) {
    same_id.role = role;
    same_id.tenant = tenant;
    Add(same_id);
    EXPECT_TRUE(absl::IsUnauthenticated(SynchronizeAs(own_))) << EnumName(role) << tenant;
    EXPECT_TRUE(absl::IsUnauthenticated(Join(&own_, "none"))) << "nor is its certificate renewed";
    Revoke(same_id);
  }
  Add(all);
  EXPECT_TRUE(SynchronizeAs(own_).ok());
}

TEST_F(AdmissionTest, ATokenAloneDoesNotWork) {
  token_ = "join";
  EXPECT_EQ(ReasonOf(Synchronize().status()), "NOT_ALLOWED");
}

// The row of a worker that has joined in the matrix of auth_test.cc.
TEST_F(AdmissionTest, AProcessThatHasJoinedMakesTheCallsOfWorkersAndNoOther) {
  for (const char* token : {"join", "other join"}) {
    Process process{"w1"};
    ASSERT_TRUE(Join(&process, token).ok());
    for (const auto* method : ContractMethods()) {
      const bool may = method->service()->full_name() == "chainfleet.v1.WorkerService";
      const absl::StatusOr<Principal> caller =
          auth_.Authorize(GrpcPath(*method), {{kWorkerProofHeader, process.proof}});
      EXPECT_EQ(caller.ok(), may) << token << " " << method->full_name();
      EXPECT_EQ(ReasonOf(caller.status()), may ? "" : "NOT_ALLOWED") << token << " " << method->full_name();
    }
  }
}

TEST_F(AdmissionTest, AWorkerThatJoinedForOneTenantIsListedToNoOther) {
  Process shared{"w2"};
  ASSERT_TRUE(Join(&own_, "other join").ok());
  ASSERT_TRUE(SynchronizeAs(own_).ok());
  ASSERT_TRUE(Join(&shared, "join").ok());
  ASSERT_TRUE(SynchronizeAs(shared).ok());
  const auto listed = [&](const std::string& tenant) {
    SpeakAs(tenant);
    std::vector<std::string> ids;
    const auto list = Call(*jobs_, &v1::JobService::Stub::ListWorkers, v1::ListWorkersRequest());
    EXPECT_TRUE(list.ok()) << list.status();
    if (!list.ok()) return ids;
    for (const v1::Worker& worker : list->workers()) ids.push_back(worker.id());
    return ids;
  };
  EXPECT_THAT(listed("vision"), testing::UnorderedElementsAre("w1", "w2"));
  EXPECT_THAT(listed("speech"), testing::ElementsAre("w2"));
}

TEST_F(AdmissionTest, AnOperatorOfATenantDrainsTheWorkersThatJoinedForThatTenantAlone) {
  Process shared{"w2"};
  ASSERT_TRUE(Join(&own_, "other join").ok());
  ASSERT_TRUE(SynchronizeAs(own_).ok());
  ASSERT_TRUE(Join(&shared, "join").ok());
  ASSERT_TRUE(SynchronizeAs(shared).ok());
  const auto drain = [&](const std::string& token, const std::string& worker) {
    SpeakAs(token);
    v1::DrainWorkerRequest request;
    request.set_worker(worker);
    return Call(*jobs_, &v1::JobService::Stub::DrainWorker, request).status();
  };
  for (const auto& [token, worker] :
       {std::pair("speech-operator", "w1"), {"speech-operator", "w2"}, {"vision-operator", "w2"}}) {
    const absl::Status others = drain(token, worker), none = drain(token, "w9");
    EXPECT_EQ(ReasonOf(others), "WORKER_NOT_FOUND") << token << worker;
    EXPECT_EQ(absl::StrReplaceAll(others.message(), {{worker, "w9"}}), none.message());
  }
  SpeakAs("operator");
  const auto list = Call(*jobs_, &v1::JobService::Stub::ListWorkers, v1::ListWorkersRequest());
  ASSERT_TRUE(list.ok()) << list.status();
  for (const v1::Worker& worker : list->workers()) EXPECT_FALSE(worker.draining()) << worker.id();
  EXPECT_TRUE(drain("vision-operator", "w1").ok());
  EXPECT_TRUE(drain("operator", "w2").ok());
}

// One worker process, and an authority whose clock the test moves.
class AdmissionTimes : public testing::Test {
 protected:
  ~AdmissionTimes() override { std::filesystem::remove_all(folder_); }

  static std::string NewFolder() {
    std::string folder = testing::TempDir() + "/admission-XXXXXX";
    return mkdtemp(folder.data());
  }
  v1::JoinReply Join() const {
    v1::JoinRequest request;
    request.set_worker("w1");
    request.set_incarnation(IncarnationOf(key_.public_key()));
    request.set_public_key(key_.public_key());
    request.set_signature(key_.Sign(JoinText("w1", request.incarnation())));
    return admission_.Admit(request, "vision", "token").value();
  }
  std::string ProofUntil(const v1::JoinReply& joined, absl::Duration from_now) const {
    v1::WorkerProof proof;
    proof.set_certificate(joined.certificate());
    proof.set_expires(absl::ToUnixSeconds(clock_.Wall() + from_now));
    proof.set_signature(key_.Sign(ProofText(proof.expires())));
    return proof.SerializeAsString();
  }
  bool Knows(const std::string& proof) const { return admission_.Verify(proof) != nullptr; }

  FakeClock clock_;
  const std::string folder_ = NewFolder();
  const WorkerAdmission admission_{OpenWorkerAuthority(folder_, clock_.Wall()).value(), &clock_};
  const SigningKey key_;
};

TEST_F(AdmissionTimes, ACertificateIsRefusedAfterADay) {
  const v1::JoinReply joined = Join();
  EXPECT_EQ(FromProto(joined.now()), clock_.Wall());
  EXPECT_EQ(FromProto(joined.expires()), clock_.Wall() + absl::Hours(24));
  clock_.Advance(absl::Hours(24) - absl::Seconds(1));
  const std::string proof = ProofUntil(joined, absl::Minutes(5));
  EXPECT_TRUE(Knows(proof));
  clock_.Advance(absl::Seconds(1));
  EXPECT_FALSE(Knows(proof)) << "the server has verified this proof before";
  EXPECT_FALSE(Knows(ProofUntil(joined, absl::Minutes(6)))) << "a proof that the server has not seen";
  EXPECT_TRUE(Knows(ProofUntil(Join(), absl::Minutes(5)))) << "the same process, with another certificate";
}

// Else commits would have times at which the certificate of their worker was not valid.
TEST_F(AdmissionTimes, ACertificateIsRefusedWhileTheClockIsPutBackBeforeItsStart) {
  const v1::JoinReply joined = Join();
  const std::string proof = ProofUntil(joined, absl::Minutes(5));
  EXPECT_TRUE(Knows(proof));
  clock_.JumpWall(-absl::Minutes(5));
  EXPECT_TRUE(Knows(proof)) << "a certificate starts 5 minutes before it is issued";
  clock_.JumpWall(-absl::Seconds(1));
  EXPECT_FALSE(Knows(proof)) << "the server has verified this proof before";
  EXPECT_FALSE(Knows(ProofUntil(joined, absl::Minutes(6)))) << "a proof that the server has not seen";
  EXPECT_TRUE(Knows(ProofUntil(Join(), absl::Minutes(5)))) << "the same process after it has joined again";
  clock_.JumpWall(absl::Minutes(5) + absl::Seconds(1));
  EXPECT_TRUE(Knows(proof));
}

TEST_F(AdmissionTimes, AServerWithoutTokensTellsAWorkerWhoseProofItRefusesToJoinAgain) {
  const AccessTokens none(nullptr, nullptr, StoredState());
  const Authenticator open({}, &none, &admission_, &clock_);
  const std::string service = "/chainfleet.v1.WorkerService/", synchronize = service + "Synchronize";
  const std::string proof = ProofUntil(Join(), absl::Minutes(5));
  const auto with_proof = open.Authorize(synchronize, {{kWorkerProofHeader, proof}});
  ASSERT_TRUE(with_proof.ok()) << with_proof.status();
  EXPECT_NE(with_proof->worker, nullptr);
  clock_.JumpWall(-absl::Minutes(6));
  EXPECT_TRUE(absl::IsUnauthenticated(open.Authorize(synchronize, {{kWorkerProofHeader, proof}}).status()));
  EXPECT_TRUE(open.Authorize(service + "Join", {{kWorkerProofHeader, proof}}).ok());
  EXPECT_TRUE(open.Authorize(service + "CommitProgress", {{kWorkerProofHeader, proof}}).ok());
  EXPECT_TRUE(open.Authorize(synchronize, {}).ok()) << "a caller that has not joined";
}

TEST_F(AdmissionTimes, AProofIsRefusedFromTheTimeThatItNames) {
  const v1::JoinReply joined = Join();
  const std::string seen = ProofUntil(joined, absl::Minutes(5)), unseen = ProofUntil(joined, absl::Seconds(299));
  clock_.Advance(absl::Seconds(299));
  EXPECT_TRUE(Knows(seen));
  EXPECT_FALSE(Knows(unseen));
  clock_.Advance(absl::Seconds(1));
  EXPECT_FALSE(Knows(seen));
}

TEST_F(AdmissionTimes, AProofLastsForAQuarterOfAnHourAtMost) {
  const v1::JoinReply joined = Join();
  EXPECT_TRUE(Knows(ProofUntil(joined, absl::Minutes(15))));
  EXPECT_FALSE(Knows(ProofUntil(joined, absl::Minutes(15) + absl::Seconds(1))));
}

}  // namespace
}  // namespace chainfleet

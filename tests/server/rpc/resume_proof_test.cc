// Tests who may have committed a resume point: what a server takes, and what it grants afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "core/domain/tenant.h"
#include "core/domain/worker_protocol.h"
#include "core/store/commit_proof/commit_proof.h"
#include "core/store/draw_codec/object_names.h"
#include "core/store/draw_codec/sha256.h"
#include "server/rpc/worker_admission.h"
#include "tests/support/fake_clock.h"

namespace chainfleet {
namespace {

using testing::HasSubstr;

class ResumeProofTest : public testing::Test {
 protected:
  ~ResumeProofTest() override { std::filesystem::remove_all(folder_); }

  static std::string NewFolder() {
    std::string folder = testing::TempDir() + "/resume-XXXXXX";
    return mkdtemp(folder.data());
  }
  // Restarts the server with the authority that it finds in its folder, or a new one.
  void Restart() {
    admission_ = std::make_unique<WorkerAdmission>(OpenWorkerAuthority(folder_, clock_.Wall()).value(), &clock_);
  }
  WorkerCertificate Join(bool signs, const std::string& tenant = kEveryTenant) const {
    v1::JoinRequest request;
    request.set_worker("w1");
    request.set_incarnation(IncarnationOf(key_.public_key()));
    request.set_public_key(key_.public_key());
    request.set_signature(key_.Sign(JoinText("w1", request.incarnation())));
    request.set_signs_resume_points(signs);
    const auto reply = admission_->Admit(request, tenant, "token").value();
    std::ifstream file(folder_ + "/ca.crt");
    const std::string pem(std::istreambuf_iterator<char>(file), {});
    return WorkerCertificate::Read(reply.certificate(), **ParseCertificate(pem, "ca.crt")).value();
  }
  static DigestHex DigestOf(char digit) { return DigestHex(64, digit); }
  // A commit of one draw, without signatures.
  ProgressCommit Unsigned() const {
    ProgressCommit commit;
    commit.author.worker = "w1";
    commit.chain = chain_;
    commit.lease_epoch = 2;
    commit.resume_point = {10, "state", std::nullopt, Sha256Hex("state")};
    Segment& segment = commit.segment.emplace();
    segment.digest = DigestOf('b');
    segment.object.name = SegmentObjectName("store", chain_, 2, segment.digest);
    return commit;
  }
  // The same, as a worker sends it.
  ProgressCommit Signed(const SigningKey& key) const {
    ProgressCommit commit = Unsigned();
    commit.author.signature = absl::Base64Escape(key.Sign(SignedText(*commit.segment)));
    ResumePoint& point = commit.resume_point;
    point.proof.emplace();
    point.proof->name = ResumeObjectName("store", chain_, 2, point.sha256);
    point.proof->last_digest = commit.segment->digest;
    point.proof->with_draws = true;
    point.proof->signature = absl::Base64Escape(key.Sign(SignedText(point)));
    return commit;
  }
  absl::Status Take(const WorkerCertificate* worker, ProgressCommit* commit) const {
    return admission_->TakeSignatures(worker, "store", commit);
  }
  // The grant of the chain after the commit.
  ApplyResult GrantAfter(const ProgressCommit& commit) const {
    ApplyResult granted;
    ChainRow& row = granted.chains.emplace_back();
    row.id = commit.chain;
    row.step = commit.resume_point.step;
    row.last_digest = commit.segment->digest;
    granted.resume_point = commit.resume_point;
    granted.newest_segment.emplace();
    granted.newest_segment->segment = *commit.segment;
    granted.newest_segment->author = commit.author;
    granted.newest_segment->committed_at = clock_.Wall();
    return granted;
  }
  std::string WhyRefused(const ApplyResult& granted) const {
    const absl::Status checked = admission_->CheckResumePoint("vision", granted);
    EXPECT_TRUE(checked.ok() || absl::IsDataLoss(checked)) << checked;
    return std::string(checked.message());
  }

  const ChainId chain_{"walk-aaaaaa", 1};
  FakeClock clock_;
  const std::string folder_ = NewFolder();
  const SigningKey key_;
  std::unique_ptr<WorkerAdmission> admission_ =
      std::make_unique<WorkerAdmission>(OpenWorkerAuthority(folder_, clock_.Wall()).value(), &clock_);
};

TEST_F(ResumeProofTest, TheSignatureIsKeptWithTheCertificateAndTheTime) {
  const WorkerCertificate worker = Join(/*signs=*/true);
  ProgressCommit commit = Signed(key_);
  const std::string signature = commit.resume_point.proof->signature;
  ASSERT_TRUE(Take(&worker, &commit).ok());
  EXPECT_EQ(commit.resume_point.proof->signature, signature);
  EXPECT_EQ(commit.resume_point.proof->certificate, worker.base64());
  EXPECT_EQ(commit.resume_point.proof->committed_at, clock_.Wall());
  EXPECT_EQ(commit.author.certificate, worker.base64());
  EXPECT_EQ(WhyRefused(GrantAfter(commit)), "");
}

TEST_F(ResumeProofTest, AWorkerThatSignsResumePointsSignsEachOfThem) {
  const WorkerCertificate worker = Join(/*signs=*/true);
  ProgressCommit none = Signed(key_), foreign = none, moved = none, after_nothing = none;
  none.resume_point.proof.reset();
  foreign.resume_point.proof->signature = Signed(SigningKey()).resume_point.proof->signature;
  moved.resume_point.step = 11;
  after_nothing.resume_point.proof->last_digest.clear();
  after_nothing.resume_point.proof->signature = absl::Base64Escape(key_.Sign(SignedText(after_nothing.resume_point)));
  for (ProgressCommit* commit : {&none, &foreign, &moved, &after_nothing}) {
    EXPECT_EQ(ReasonOf(Take(&worker, commit)), "BAD_SIGNATURE");
  }
}

TEST_F(ResumeProofTest, TheSignatureOfTheResumePointCoversTheDrawsOfItsCommit) {
  const WorkerCertificate worker = Join(/*signs=*/true);
  ProgressCommit both = Signed(key_), one = both, after_others = both;
  one.author.signature = after_others.author.signature = "";
  ASSERT_TRUE(Take(&worker, &both).ok());
  ASSERT_TRUE(Take(&worker, &one).ok());
  EXPECT_EQ(one.author.signature, one.resume_point.proof->signature);
  EXPECT_EQ(one.author.certificate, worker.base64());
  for (const ProgressCommit& commit : {both, one}) {
    SegmentRecord record = *GrantAfter(commit).newest_segment;
    const auto is_signed = [&] {
      std::string signature;
      return absl::Base64Unescape(record.author.signature, &signature) &&
             worker.HasSigned(SignedText(record), signature);
    };
    EXPECT_TRUE(is_signed());
    record.segment.object.name = SegmentObjectName("store", chain_, 2, record.segment.digest = DigestOf('c'));
    EXPECT_FALSE(is_signed());
  }
  ProgressCommit before = after_others;  // its worker knew the digest, but did not draw: another had committed it
  before.resume_point.proof->with_draws = false;
  before.resume_point.proof->signature = absl::Base64Escape(key_.Sign(SignedText(before.resume_point)));
  EXPECT_EQ(ReasonOf(Take(&worker, &before)), "BAD_SIGNATURE");
  after_others.segment->digest = DigestOf('c');
  EXPECT_EQ(ReasonOf(Take(&worker, &after_others)), "BAD_SIGNATURE") << "it names other draws";
}

TEST_F(ResumeProofTest, TheServerSignsForAWorkerThatDoesNot) {
  const WorkerCertificate older = Join(/*signs=*/false);
  ProgressCommit signed_draws = Signed(key_), alone = Unsigned();
  signed_draws.resume_point.proof.reset();
  alone.segment.reset();
  for (ProgressCommit* const commit : {&signed_draws, &alone}) {
    ASSERT_TRUE(Take(&older, commit).ok());
    EXPECT_EQ(commit->resume_point.proof->certificate, "");
    if (!commit->segment) commit->segment = Unsigned().segment;  // that of an earlier commit
    EXPECT_EQ(WhyRefused(GrantAfter(*commit)), "");
    ++commit->resume_point.step;
    EXPECT_THAT(WhyRefused(GrantAfter(*commit)), HasSubstr("not that of a server"));
  }
}

TEST_F(ResumeProofTest, ASignatureThatNobodyCanCheckIsNotKept) {
  ProgressCommit commit = Signed(key_);
  ASSERT_TRUE(Take(nullptr, &commit).ok());
  EXPECT_FALSE(commit.resume_point.proof);
  EXPECT_EQ(commit.author.signature, "");
  EXPECT_EQ(WhyRefused(GrantAfter(commit)), "") << "a server without tokens may get them later";
}

TEST_F(ResumeProofTest, AChangedResumePointIsNotGranted) {
  const WorkerCertificate worker = Join(/*signs=*/true);
  ProgressCommit commit = Signed(key_);
  ASSERT_TRUE(Take(&worker, &commit).ok());
  const ApplyResult right = GrantAfter(commit);
  struct Change {
    std::string said;
    std::function<void(ApplyResult*)> make;
  };
  for (const auto& [said, make] : {
           Change{"the signature is not that of its worker", [](auto* g) { ++g->resume_point->step; }},
           Change{"another resume point", [](auto* g) { g->resume_point->sha256 = DigestOf('c'); }},
           Change{"another resume point", [](auto* g) { g->chains[0].id.index = 0; }},
           Change{"after other draws", [](auto* g) { g->chains[0].last_digest = DigestOf('c'); }},
           Change{"after other draws", [](auto* g) { g->resume_point->proof->last_digest.clear(); }},
           Change{"not base64", [](auto* g) { g->resume_point->proof->signature = "?"; }},
           Change{"not that of a server", [](auto* g) { g->resume_point->proof->certificate.clear(); }},
           Change{"when the certificate was not valid",
                  [](auto* g) { g->resume_point->proof->committed_at += absl::Hours(30); }},
           Change{"has no signature", [](auto* g) { g->resume_point->proof.reset(); }},
           Change{"has no signature", [](auto* g) { g->resume_point.reset(); }},
       }) {
    ApplyResult changed = right;
    make(&changed);
    const std::string why = WhyRefused(changed);
    EXPECT_THAT(why, HasSubstr(said));
    EXPECT_THAT(why, HasSubstr("Restore the state store"));
  }
}

TEST_F(ResumeProofTest, ASignatureOfAnotherCommitOfTheSameWorkerIsNoSignatureOfTheResumePoint) {
  const WorkerCertificate worker = Join(/*signs=*/true);
  ProgressCommit commit = Signed(key_);
  ASSERT_TRUE(Take(&worker, &commit).ok());
  ApplyResult later = GrantAfter(commit);  // the chain has committed again, and its former resume point is put back
  later.chains[0].last_digest = DigestOf('c');
  EXPECT_THAT(WhyRefused(later), HasSubstr("after other draws"));
  later.resume_point->proof->last_digest = DigestOf('c');
  EXPECT_THAT(WhyRefused(later), HasSubstr("the signature is not that of its worker"));
  ApplyResult draws = GrantAfter(commit);  // the signature of the draws is put in its place
  draws.resume_point->proof->signature = commit.author.signature;
  EXPECT_THAT(WhyRefused(draws), HasSubstr("the signature is not that of its worker"));
  draws.resume_point->sha256 = commit.segment->digest;
  draws.resume_point->proof->name = commit.segment->object.name;
  EXPECT_THAT(WhyRefused(draws), HasSubstr("another resume point"));
  ApplyResult renamed = GrantAfter(commit);  // another lease, job
  renamed.resume_point->proof->name = ResumeObjectName("store", chain_, 3, commit.resume_point.sha256);
  EXPECT_THAT(WhyRefused(renamed), HasSubstr("the signature is not that of its worker"));
  renamed.chains[0].id.job = "walk-bbbbbb";
  EXPECT_THAT(WhyRefused(renamed), HasSubstr("another resume point"));
}

TEST_F(ResumeProofTest, ThePurposeOfAKeyIsPartOfItsSignedCertificate) {
  std::string changed;
  ASSERT_TRUE(absl::Base64Unescape(Join(/*signs=*/true).base64(), &changed));
  const size_t usage = changed.find(std::string("\x03\x02\x06\xc0", 4));  // a bit string with both usages
  ASSERT_NE(usage, std::string::npos);
  changed.replace(usage, 4, std::string("\x03\x02\x07\x80", 4));
  std::ifstream file(folder_ + "/ca.crt");
  const std::string pem(std::istreambuf_iterator<char>(file), {});
  const CertificateHandle authority = ParseCertificate(pem, "ca.crt").value();
  EXPECT_FALSE(WorkerCertificate::Read(changed, *authority).ok());
}

// Release 0.1 kept no proofs, and its workers sign no resume points.
TEST_F(ResumeProofTest, AResumePointOfAnOlderReleaseIsGrantedAfterDrawsOfAnOlderWorkerOrNone) {
  const WorkerCertificate older = Join(/*signs=*/false);
  ProgressCommit commit = Signed(key_);
  ASSERT_TRUE(Take(&older, &commit).ok());
  ApplyResult granted = GrantAfter(commit);
  granted.resume_point->proof.reset();
  EXPECT_EQ(WhyRefused(granted), "");
  granted.newest_segment->author.signature = granted.newest_segment->author.certificate = "";
  EXPECT_EQ(WhyRefused(granted), "");
  granted.newest_segment.reset();
  EXPECT_EQ(WhyRefused(granted), "") << "before the first draws";
}

TEST_F(ResumeProofTest, AWorkerOfAnotherTenantCannotHaveCommittedIt) {
  const auto why_refused = [&](const std::string& tenant) {
    const WorkerCertificate worker = Join(/*signs=*/true, tenant);
    ProgressCommit commit = Signed(key_);
    EXPECT_TRUE(Take(&worker, &commit).ok());
    return WhyRefused(GrantAfter(commit));
  };
  EXPECT_EQ(why_refused("vision"), "");
  EXPECT_THAT(why_refused("speech"), HasSubstr("let in for tenant speech"));
}

TEST_F(ResumeProofTest, ANewAuthorityTrustsTheOnesThatItsFolderNames) {
  const WorkerCertificate worker = Join(/*signs=*/true);
  ProgressCommit commit = Signed(key_);
  ASSERT_TRUE(Take(&worker, &commit).ok());
  std::filesystem::rename(folder_ + "/ca.crt", folder_ + "/kept.crt");
  std::filesystem::remove(folder_ + "/ca.key");
  Restart();
  EXPECT_THAT(WhyRefused(GrantAfter(commit)), testing::AllOf(HasSubstr("another authority"), HasSubstr("former.crt")));
  std::filesystem::rename(folder_ + "/kept.crt", folder_ + "/former.crt");
  Restart();
  EXPECT_EQ(WhyRefused(GrantAfter(commit)), "");
}

}  // namespace
}  // namespace chainfleet

// Tokens that an admin makes and revokes while the server runs, the calls that they have open, and backups.
#include <deque>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "chainfleet/v1/access.grpc.pb.h"
#include "core/store/draw_codec/sha256.h"
#include "inference/grpc_service.grpc.pb.h"
#include "tests/server/rpc/running_server.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class AccessServiceTest : public RunningServer {
 protected:
  explicit AccessServiceTest(GivenTokens tokens = {{"admin", "default", Role::kAdmin},
                                                   {"theirs", "vision", Role::kAdmin},
                                                   {"user", "vision"}})
      : RunningServer(std::move(tokens)) {
    token_ = "admin";
  }

  static v1::CreateTokenRequest RequestFor(const std::string& token, v1::Role role, const std::string& tenant = "") {
    v1::CreateTokenRequest request;
    request.set_sha256(Sha256Hex(token));
    request.set_role(role);
    request.set_tenant(tenant);
    return request;
  }
  absl::StatusOr<v1::Token> Create(const v1::CreateTokenRequest& request) {
    return Call(*access_, &v1::AccessService::Stub::CreateToken, request);
  }
  absl::StatusOr<v1::ListTokensResponse> List(int32_t size = 0, const std::string& page = "") {
    v1::ListTokensRequest request;
    request.set_page_size(size);
    request.set_page_token(page);
    return Call(*access_, &v1::AccessService::Stub::ListTokens, request);
  }
  absl::Status Revoke(const std::string& id) {
    v1::RevokeTokenRequest request;
    request.set_id(id);
    return Call(*access_, &v1::AccessService::Stub::RevokeToken, request).status();
  }
  absl::StatusOr<v1::ListAuditResponse> ListAudit() {
    return Call(*access_, &v1::AccessService::Stub::ListAudit, v1::ListAuditRequest());
  }
  absl::Status ListJobsWith(const std::string& token) {
    token_ = token;
    const absl::Status status = Call(*jobs_, &v1::JobService::Stub::ListJobs, v1::ListJobsRequest()).status();
    token_ = "admin";
    return status;
  }

  const std::unique_ptr<v1::AccessService::Stub> access_ = v1::AccessService::NewStub(channel_);
};

TEST_F(AccessServiceTest, ATokenWorksFromItsCreationUntilItsRevocation) {
  EXPECT_TRUE(absl::IsUnauthenticated(ListJobsWith("made")));
  v1::CreateTokenRequest request = RequestFor("made", v1::READER, "vision");
  request.set_note("a notebook");
  const auto made = Create(request);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->id(), Sha256Hex("made").substr(0, 12));
  EXPECT_EQ(made->tenant(), "vision");
  EXPECT_EQ(made->note(), "a notebook");
  EXPECT_EQ(made->created_by(), Sha256Hex("admin").substr(0, 12));
  EXPECT_EQ(made->expires_at().seconds() / 86400 - made->created_at().seconds() / 86400, 90);
  EXPECT_TRUE(ListJobsWith("made").ok());
  ASSERT_TRUE(Revoke(made->id()).ok());
  EXPECT_TRUE(absl::IsUnauthenticated(ListJobsWith("made")));
  EXPECT_EQ(ReasonOf(Revoke(made->id())), "TOKEN_NOT_FOUND");
  EXPECT_EQ(ReasonOf(Revoke("")), "TOKEN_NOT_FOUND");
}

TEST_F(AccessServiceTest, ACallerIsToldWhoItIsAndWhenItsTokenExpires) {
  const auto made = Create(RequestFor("made", v1::READER, "vision"));
  ASSERT_TRUE(made.ok()) << made.status();
  const auto caller_with = [this](const std::string& token) {
    token_ = token;
    return Call(*jobs_, &v1::JobService::Stub::GetServerInfo, v1::GetServerInfoRequest()).value().caller();
  };
  const v1::Caller reader = caller_with("made"), admin = caller_with("admin");
  EXPECT_EQ(reader.principal(), made->id());
  EXPECT_EQ(reader.tenant(), "vision");
  EXPECT_EQ(reader.role(), v1::READER);
  EXPECT_EQ(reader.expires_at().seconds(), made->expires_at().seconds());
  EXPECT_EQ(admin.role(), v1::ADMIN);
  EXPECT_FALSE(admin.has_expires_at()) << "a token of a file stays";
}

TEST_F(AccessServiceTest, ARoleGivesItsRightsAndNoMore) {
  ASSERT_TRUE(Create(RequestFor("applies", v1::PREDICTOR)).ok());
  ASSERT_TRUE(Create(RequestFor("works", v1::WORKER)).ok());
  for (const char* token : {"applies", "works"}) EXPECT_EQ(ReasonOf(ListJobsWith(token)), "NOT_ALLOWED") << token;
}

TEST_F(AccessServiceTest, OnlyAdminsMakeListAndRevoke) {
  ASSERT_TRUE(Create(RequestFor("operates", v1::OPERATOR)).ok());
  for (const char* token : {"user", "operates"}) {
    token_ = token;
    EXPECT_EQ(ReasonOf(Create(RequestFor("mine", v1::READER)).status()), "NOT_ALLOWED") << token;
    EXPECT_EQ(ReasonOf(List().status()), "NOT_ALLOWED") << token;
    EXPECT_EQ(ReasonOf(Revoke(Sha256Hex("operates").substr(0, 12))), "NOT_ALLOWED") << token;
  }
}

TEST_F(AccessServiceTest, ARepeatedCallReturnsTheSameTokenAndAnotherIsRefused) {
  const auto first = Create(RequestFor("made", v1::READER));
  const auto again = Create(RequestFor("made", v1::READER));
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(first->SerializeAsString(), again->SerializeAsString());
  EXPECT_EQ(ReasonOf(Create(RequestFor("made", v1::ADMIN)).status()), "TOKEN_EXISTS");
  EXPECT_THAT(List()->tokens(), testing::SizeIs(1));
}

TEST_F(AccessServiceTest, ListsByPages) {
  for (const char* token : {"a", "b", "c"}) ASSERT_TRUE(Create(RequestFor(token, v1::READER)).ok());
  std::vector<std::string> ids;
  for (std::string page;;) {
    const auto list = List(2, page);
    ASSERT_TRUE(list.ok()) << list.status();
    for (const v1::Token& token : list->tokens()) ids.push_back(token.id());
    if ((page = list->next_page_token()).empty()) break;
  }
  EXPECT_THAT(ids, testing::SizeIs(3));
  EXPECT_TRUE(std::ranges::is_sorted(ids));
}

TEST_F(AccessServiceTest, RefusesWrongFieldsByName) {
  const auto field_of = [&](const v1::CreateTokenRequest& request) {
    const absl::Status status = Create(request).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    const std::vector<FieldViolation> wrong = FieldViolationsOf(status);
    return wrong.empty() ? "" : wrong[0].path;
  };
  v1::CreateTokenRequest request = RequestFor("made", v1::READER);
  request.set_sha256("made");
  EXPECT_EQ(field_of(request), "sha256") << "the token itself, which the server must not get";
  EXPECT_EQ(field_of(RequestFor("made", v1::ROLE_UNSPECIFIED)), "role");
  EXPECT_EQ(field_of(RequestFor("made", static_cast<v1::Role>(77))), "role");
  EXPECT_EQ(field_of(RequestFor("made", v1::READER, "Vision!")), "tenant");
  EXPECT_EQ(field_of(RequestFor("made", v1::WORKER, "Vision!")), "tenant");
  EXPECT_EQ(field_of(RequestFor("made", v1::READER, "*")), "tenant");
  request = RequestFor("made", v1::READER);
  request.set_max_uses(1);
  EXPECT_EQ(field_of(request), "max_uses");
  request = RequestFor("made", v1::READER);
  request.set_lifetime_seconds(-1);
  EXPECT_EQ(field_of(request), "lifetime_seconds");
  request.set_lifetime_seconds(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(field_of(request), "lifetime_seconds");
  request = RequestFor("made", v1::READER);
  request.set_note("two\nlines");
  EXPECT_EQ(field_of(request), "note");
  request.set_note(std::string(201, 'x'));
  EXPECT_EQ(field_of(request), "note");
  request = RequestFor("made", v1::READER);
  request.set_puts_models(true);
  EXPECT_EQ(field_of(request), "puts_models");
  EXPECT_THAT(List()->tokens(), IsEmpty());
}

TEST_F(AccessServiceTest, AnAdminOfATenantMakesTokensOfThatTenantWithoutMoreRights) {
  token_ = "theirs";
  for (const v1::Role role : {v1::READER, v1::OPERATOR, v1::ADMIN, v1::WORKER}) {
    for (const std::string tenant : {"", "vision"}) {
      const auto made = Create(RequestFor(absl::StrCat("made", tenant, role), role, tenant));
      ASSERT_TRUE(made.ok()) << made.status();
      EXPECT_EQ(made->tenant(), "vision");
    }
  }
  for (const std::string& token : {std::string("theirs"), absl::StrCat("made", v1::ADMIN)}) {
    token_ = token;
    for (const char* tenant : {"default", "speech", "*"}) {
      for (const v1::Role role : {v1::READER, v1::ADMIN, v1::WORKER}) {
        const absl::Status refused = Create(RequestFor("more", role, tenant)).status();
        EXPECT_EQ(ReasonOf(refused), "NOT_ALLOWED") << tenant << role;
        EXPECT_THAT(std::string(refused.message()), HasSubstr("an admin of the fleet"));
      }
    }
    v1::CreateTokenRequest models = RequestFor("more", v1::WRITER);
    models.set_puts_models(true);
    EXPECT_EQ(ReasonOf(Create(models).status()), "NOT_ALLOWED");
  }
  token_ = "admin";
  v1::CreateTokenRequest models = RequestFor("trusted", v1::OPERATOR, "vision");
  models.set_puts_models(true);
  EXPECT_TRUE(Create(models).ok()) << "the mark is the fleet's to give";
}

TEST_F(AccessServiceTest, AnAdminOfATenantListsAndRevokesTokensOfThatTenant) {
  ASSERT_TRUE(Create(RequestFor("own", v1::READER, "vision")).ok());
  const std::string other = Create(RequestFor("other", v1::READER, "speech"))->id(), none = TokenId(Sha256Hex("none"));
  ASSERT_TRUE(Create(RequestFor("join", v1::WORKER)).ok());
  token_ = "theirs";
  const auto list = List(1);
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->tokens_size(), 1);
  EXPECT_EQ(list->tokens(0).id(), TokenId(Sha256Hex("own")));
  EXPECT_EQ(list->next_page_token(), "") << "tokens of others make no page";
  const absl::Status theirs = Revoke(other), nobodys = Revoke(none);
  EXPECT_EQ(ReasonOf(theirs), "TOKEN_NOT_FOUND");
  EXPECT_EQ(absl::StrReplaceAll(theirs.message(), {{other, none}}), nobodys.message());
  EXPECT_EQ(ReasonOf(Revoke(TokenId(Sha256Hex("join")))), "TOKEN_NOT_FOUND") << "its workers serve all tenants";
  EXPECT_TRUE(Revoke(list->tokens(0).id()).ok());
  EXPECT_TRUE(absl::IsUnauthenticated(ListJobsWith("own")));
  EXPECT_TRUE(ListJobsWith("other").ok());
}

TEST_F(AccessServiceTest, AnAdminOfATenantReadsTheAuditLinesOfThatTenant) {
  ASSERT_TRUE(Create(RequestFor("other", v1::READER, "speech")).ok());
  token_ = "theirs";
  ASSERT_TRUE(Create(RequestFor("own", v1::READER)).ok());
  const auto theirs = ListAudit();
  ASSERT_TRUE(theirs.ok()) << theirs.status();
  EXPECT_THAT(theirs->lines(), ElementsAre(HasSubstr(TokenId(Sha256Hex("own")))));
  token_ = "admin";
  EXPECT_THAT(ListAudit()->lines(), testing::SizeIs(2));
}

// An admin of a tenant chooses the SHA-256, and ids name callers in the audit log.
TEST_F(AccessServiceTest, NoTokenGetsTheIdOfAnother) {
  ASSERT_TRUE(Create(RequestFor("other", v1::READER, "speech")).ok());
  token_ = "theirs";
  for (const char* token : {"admin", "other"}) {
    v1::CreateTokenRequest request = RequestFor(token, v1::READER);
    request.set_sha256(TokenId(Sha256Hex(token)) + std::string(52, '0'));
    EXPECT_EQ(ReasonOf(Create(request).status()), "TOKEN_EXISTS") << token;
    request.set_sha256(TokenId(Sha256Hex(token)));
    EXPECT_TRUE(absl::IsInvalidArgument(Create(request).status())) << "an id is no SHA-256";
  }
}

// A call of Backup and what it holds.
class BackupTest : public AccessServiceTest {
 protected:
  std::unique_ptr<grpc::ClientReader<v1::BackupCopy>> Open(grpc::ClientContext* context, v1::BackupCopy* copy) {
    SetDeadline(context);
    SendToken(context);
    auto reader = access_->Backup(context, v1::BackupRequest());
    EXPECT_TRUE(reader->Read(copy));
    return reader;
  }
  absl::StatusOr<std::string> Read(const std::string& name, bool is_copy) {
    v1::ReadObjectRequest request;
    request.set_name(name);
    request.set_is_copy(is_copy);
    grpc::ClientContext context;
    SetDeadline(&context);
    SendToken(&context);
    return ReadAll(access_->ReadObject(&context, request));
  }
  // An object that a pass of the collector deletes.
  void MakeGarbage(const std::string& name) {
    ASSERT_TRUE(blobs_.Put(name, "bytes").ok());
    ASSERT_TRUE(coordinator_.writer().Commit({change::NameGarbage{{name}}}).ok());
  }
};

TEST_F(BackupTest, KeepsCopiesAndObjectsUntilTheCallEnds) {
  PutDigits();
  ASSERT_TRUE(blobs_.Put("store/datasets/x", kDrawBytes).ok());
  grpc::ClientContext context;
  v1::BackupCopy copy;
  const auto reader = Open(&context, &copy);
  EXPECT_EQ(copy.engine(), "sqlite");
  EXPECT_EQ(copy.incarnation(), "store");
  EXPECT_EQ(copy.objects(), 1);
  const auto state = Read(copy.state().name(), true), list = Read(copy.list().name(), true);
  ASSERT_TRUE(state.ok() && list.ok()) << state.status() << list.status();
  EXPECT_EQ(Sha256Hex(*state), copy.state().sha256());
  EXPECT_EQ(Sha256Hex(*list), copy.list().sha256());
  EXPECT_TRUE(state->starts_with("SQLite format 3"));
  const std::vector<std::string> words = absl::StrSplit(absl::StripSuffix(*list, "\n"), ' ');
  ASSERT_EQ(words.size(), 3u) << *list;
  EXPECT_EQ(words[0], DigestHex(64, 'b'));
  EXPECT_EQ(Read(words[2], false).value(), kDrawBytes);
  EXPECT_TRUE(absl::IsNotFound(Read(words[2], true).status()));
  EXPECT_FALSE(Read("../audit", true).ok());

  MakeGarbage("garbage");
  ASSERT_EQ(garbage_.Collect()->deleted, 0);
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  // The server learns it a little later.
  while (garbage_.Collect()->deleted == 0) continue;
  while (!absl::IsNotFound(Read(copy.state().name(), true).status())) continue;
}

TEST_F(BackupTest, AServerThatShutsDownEndsTheCall) {
  grpc::ClientContext context;
  v1::BackupCopy copy;
  const auto reader = Open(&context, &copy);
  server_->Shutdown(absl::Seconds(20));
  EXPECT_EQ(reader->Finish().error_message(), "the server shuts down");
}

TEST_F(BackupTest, OnlyAdminsOfTheFleetMay) {
  for (const char* token : {"user", "theirs"}) {
    token_ = token;
    EXPECT_EQ(ReasonOf(Read("x", false).status()), "NOT_ALLOWED") << token;
    grpc::ClientContext context;
    SetDeadline(&context);
    SendToken(&context);
    const auto reader = access_->Backup(&context, v1::BackupRequest());
    v1::BackupCopy copy;
    EXPECT_FALSE(reader->Read(&copy)) << token;
    const absl::Status refused = FromGrpc(reader->Finish());
    EXPECT_EQ(ReasonOf(refused), "NOT_ALLOWED") << token;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("an admin of the fleet"));
  }
}

// Calls that the tokens "revoked" and "kept" open before the first of them is revoked.
class RevokedStreamTest : public AccessServiceTest {
 protected:
  void SetUp() override {
    for (const char* token : {"revoked", "kept"}) ASSERT_TRUE(Create(RequestFor(token, v1::ADMIN)).ok());
    ASSERT_TRUE(CreateJob(GaussianJob("walk")).ok());
  }
  void RevokeToken() { ASSERT_TRUE(Revoke(TokenId(Sha256Hex("revoked"))).ok()); }
  // The context of the next call by this token.
  grpc::ClientContext* As(const std::string& token) {
    grpc::ClientContext& context = contexts_.emplace_back();
    SetDeadline(&context);
    context.AddMetadata("authorization", "Bearer " + token);
    return &context;
  }
  std::unique_ptr<grpc::ClientReader<v1::Job>> Watch(const std::string& token) {
    v1::WatchJobRequest request;
    request.set_name("walk");
    return jobs_->WatchJob(As(token), request);
  }
  // Reads a watch to its end. Returns the reason of its error, or "".
  static std::string EndOf(grpc::ClientReader<v1::Job>* watch) {
    v1::Job job;
    while (watch->Read(&job)) continue;
    return ReasonOf(FromGrpc(watch->Finish()));
  }
  // Opens an upload that lacks only its end, and waits until the server has taken its bytes.
  std::unique_ptr<grpc::ClientWriter<v1::PutDatasetRequest>> Upload(v1::Dataset* stored) {
    const std::string rows = "0.5,0.25,1\n0.25,0.5,0\n";
    std::vector<v1::PutDatasetRequest> messages(3);
    messages[0].mutable_header()->set_name("late");
    messages[0].mutable_header()->set_num_files(1);
    messages[1].mutable_file()->set_file_name("rows.csv");
    messages[1].mutable_file()->set_size_bytes(std::ssize(rows));
    messages[2].set_data(rows);
    auto upload = jobs_->PutDataset(As("revoked"), stored);
    for (const auto& message : messages) EXPECT_TRUE(upload->Write(message));
    while (upload_budget_.held_bytes() < std::ssize(rows)) continue;
    return upload;
  }
  // An object that no window of a connection holds.
  std::string PutLarge(const std::string& name) {
    std::string bytes(size_t{64} << 20, 'x');
    EXPECT_TRUE(blobs_.Put(name, bytes).ok());
    return bytes;
  }

 private:
  std::deque<grpc::ClientContext> contexts_;
};

TEST_F(RevokedStreamTest, AnIdleWatchEndsWithALineInTheAuditLogAndThatOfAnotherTokenGoesOn) {
  const auto revoked = Watch("revoked"), kept = Watch("kept");
  v1::Job job;
  ASSERT_TRUE(revoked->Read(&job) && kept->Read(&job));
  RevokeToken();
  EXPECT_EQ(EndOf(revoked.get()), "UNAUTHENTICATED");
  const auto audit = ListAudit();
  ASSERT_TRUE(audit.ok()) << audit.status();
  EXPECT_THAT(audit->lines(),
              testing::Contains(testing::AllOf(HasSubstr("WatchJob"), HasSubstr("\"code\":\"UNAUTHENTICATED\""),
                                               HasSubstr(TokenId(Sha256Hex("revoked"))))));
  ASSERT_TRUE(SetIntent("walk", v1::Job::CANCEL).ok());
  while (kept->Read(&job)) continue;
  EXPECT_EQ(job.state(), v1::Job::CANCELLED);
  EXPECT_TRUE(kept->Finish().ok());
}

TEST_F(RevokedStreamTest, AWatchEndsWhenItsTokenExpires) {
  v1::CreateTokenRequest request = RequestFor("short", v1::READER);
  request.set_lifetime_seconds(3600);
  ASSERT_TRUE(Create(request).ok());
  const auto watch = Watch("short");
  v1::Job job;
  ASSERT_TRUE(watch->Read(&job));
  clock_.PutForward(absl::Hours(1));
  EXPECT_EQ(EndOf(watch.get()), "UNAUTHENTICATED");
}

// The token may be asked for while it is unknown, too.
TEST_F(RevokedStreamTest, AWatchEndsWhenItsTokenLosesItsRole) {
  const auto watch = Watch("revoked");
  v1::Job job;
  ASSERT_TRUE(watch->Read(&job));
  RevokeToken();
  ASSERT_TRUE(Create(RequestFor("revoked", v1::PREDICTOR)).ok());
  EXPECT_THAT(EndOf(watch.get()), testing::AnyOf("NOT_ALLOWED", "UNAUTHENTICATED"));
}

TEST_F(RevokedStreamTest, AWatchEndsWhenItsTokenGetsAnotherTenant) {
  const auto watch = Watch("revoked");
  v1::Job job;
  ASSERT_TRUE(watch->Read(&job));
  RevokeToken();
  ASSERT_TRUE(Create(RequestFor("revoked", v1::READER, "vision")).ok());
  EXPECT_EQ(EndOf(watch.get()), "UNAUTHENTICATED");
}

// The server is shutting down, or cannot read the keys of an issuer.
TEST_F(RevokedStreamTest, AWatchGoesOnWhileNewCallsAreUnavailable) {
  const auto watch = Watch("kept");
  v1::Job job;
  ASSERT_TRUE(watch->Read(&job));
  auth_.RefuseAll();
  ASSERT_TRUE(absl::IsUnavailable(ListJobsWith("kept")));
  Waited<absl::StatusOr<JobView>> cancelled;
  dispatcher_.SetIntent(job.id(), JobIntent::kCancel, cancelled.Take());
  ASSERT_TRUE(cancelled.Get()->ok());
  while (watch->Read(&job)) continue;
  EXPECT_EQ(job.state(), v1::Job::CANCELLED);
  EXPECT_TRUE(watch->Finish().ok());
}

TEST_F(RevokedStreamTest, ADownloadEndsInItsMiddleAndThatOfAnotherTokenGoesOn) {
  const std::string bytes = PutLarge("store/datasets/x");
  v1::ReadObjectRequest request;
  request.set_name("store/datasets/x");
  auto revoked = access_->ReadObject(As("revoked"), request), kept = access_->ReadObject(As("kept"), request);
  v1::Chunk chunk;
  ASSERT_TRUE(revoked->Read(&chunk));
  EXPECT_FALSE(chunk.data().empty());
  ASSERT_TRUE(kept->Read(&chunk));
  RevokeToken();
  EXPECT_EQ(ReasonOf(ReadAll(std::move(revoked)).status()), "UNAUTHENTICATED");
  const auto rest = ReadAll(std::move(kept));
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_EQ(chunk.data().size() + rest->size(), bytes.size());
}

TEST_F(RevokedStreamTest, ADownloadOfDrawsEndsInItsMiddle) {
  CommitADraw();
  v1::ListSegmentsRequest list;
  list.set_job("walk");
  const auto segments = Call(*jobs_, &v1::JobService::Stub::ListSegments, list);
  ASSERT_TRUE(segments.ok() && segments->segments_size() == 1) << segments.status();
  v1::ReadSegmentRequest request;
  request.set_job("walk");
  request.set_object(segments->segments(0).segment().object().name());
  PutLarge(request.object());  // the digest is wrong, which only the last chunk shows
  auto reader = jobs_->ReadSegment(As("revoked"), request);
  v1::Chunk chunk;
  ASSERT_TRUE(reader->Read(&chunk));
  RevokeToken();
  EXPECT_EQ(ReasonOf(ReadAll(std::move(reader)).status()), "UNAUTHENTICATED");
}

TEST_F(RevokedStreamTest, ABackupEnds) {
  const auto backup = access_->Backup(As("revoked"), v1::BackupRequest());
  v1::BackupCopy copy;
  ASSERT_TRUE(backup->Read(&copy));
  RevokeToken();
  EXPECT_FALSE(backup->Read(&copy));
  EXPECT_EQ(ReasonOf(FromGrpc(backup->Finish())), "UNAUTHENTICATED");
}

TEST_F(RevokedStreamTest, AnUploadIsRefusedAtItsEnd) {
  v1::Dataset stored;
  const auto upload = Upload(&stored);
  RevokeToken();
  upload->WritesDone();
  EXPECT_EQ(ReasonOf(FromGrpc(upload->Finish())), "UNAUTHENTICATED");
  EXPECT_TRUE(absl::IsNotFound(content_.datasets().Get({kDefaultTenant}, "late").status()));
}

TEST_F(RevokedStreamTest, AnIdleUploadEnds) {
  v1::Dataset stored;
  const auto upload = Upload(&stored);
  RevokeToken();
  EXPECT_EQ(ReasonOf(FromGrpc(upload->Finish())), "UNAUTHENTICATED");
}

TEST_F(RevokedStreamTest, AnIdleStreamOfInferenceEndsAndThatOfAnotherTokenGoesOn) {
  const auto models = inference::GRPCInferenceService::NewStub(channel_);
  const auto revoked = models->ModelStreamInfer(As("revoked")), kept = models->ModelStreamInfer(As("kept"));
  inference::ModelInferRequest request;
  request.set_model_name("nowhere");
  inference::ModelStreamInferResponse response;
  for (const auto& stream : {revoked.get(), kept.get()}) {
    ASSERT_TRUE(stream->Write(request) && stream->Read(&response));
    EXPECT_THAT(response.error_message(), HasSubstr("unknown model"));
  }
  RevokeToken();
  EXPECT_FALSE(revoked->Read(&response));
  EXPECT_EQ(ReasonOf(FromGrpc(revoked->Finish())), "UNAUTHENTICATED");
  ASSERT_TRUE(kept->Write(request) && kept->Read(&response));
  kept->WritesDone();
  EXPECT_FALSE(kept->Read(&response));
  EXPECT_TRUE(kept->Finish().ok());
}

class OpenAccessTest : public AccessServiceTest {
 protected:
  OpenAccessTest() : AccessServiceTest({}) { token_.clear(); }
};

// A token would not keep anybody out, and would tell its maker otherwise.
TEST_F(OpenAccessTest, AServerWithoutTokensMakesNone) {
  EXPECT_EQ(ReasonOf(Create(RequestFor("made", v1::ADMIN)).status()), "TOKENS_OFF");
}

}  // namespace
}  // namespace chainfleet

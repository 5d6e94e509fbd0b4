#include "worker/rpc/coordinator_client.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/base/limits.h"
#include "core/wire/grpc_status.h"
#include "core/wire/worker_wire.h"
#include "tests/support/fake_clock.h"
#include "tests/support/loopback_server.h"

namespace chainfleet {
namespace {

// A synchronous service, which takes the fewest lines for scripted answers.
class FakeService final : public v1::WorkerService::Service {
 public:
  grpc::Status Join(grpc::ServerContext* context, const v1::JoinRequest* request, v1::JoinReply* reply) override {
    ++joins_;
    token_ = Metadata(*context, "authorization");
    if (!knows_join_) return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "");
    const std::string text = JoinText("w0", IncarnationOf(request->public_key()));
    if (!IsSignedBy(request->public_key(), text, request->signature()) || token_ != "Bearer " + known_token_) {
      return ToGrpc(absl::UnauthenticatedError("unknown token"));
    }
    key_ = request->public_key();
    signs_resume_points_ = request->signs_resume_points();
    reply->set_certificate("certificate");
    reply->mutable_now()->set_seconds(1'000'000);
    reply->mutable_expires()->set_seconds(1'000'000 + 24 * 3600);
    reply->set_one_signature(one_signature_);
    return grpc::Status::OK;
  }
  grpc::Status Synchronize(grpc::ServerContext* context, const v1::SynchronizeRequest* request,
                           v1::SynchronizeReply* reply) override {
    token_ = Metadata(*context, "authorization");
    proof_.ParseFromString(Metadata(*context, kWorkerProofHeader));
    if (refusals_ > 0) {
      --refusals_;
      return ToGrpc(absl::UnauthenticatedError("another authority"));
    }
    if (request->worker() == "slow") {
      MutexLock lock(&mutex_);
      while (!context->IsCancelled()) poll_.WaitWithTimeout(&mutex_, absl::Milliseconds(5));
      return grpc::Status::CANCELLED;
    }
    SynchronizeReply answer;
    answer.generation = static_cast<int64_t>(request->seq());
    answer.store_incarnation = "store";
    answer.lease_ttl = absl::Seconds(15);
    *reply = ToProto(answer);
    return grpc::Status::OK;
  }
  grpc::Status CommitProgress(grpc::ServerContext*, const v1::CommitProgressRequest* request,
                              v1::CommitProgressReply* reply) override {
    const auto commit = FromProto(*request);
    if (!commit.ok()) return ToGrpc(commit.status());
    author_ = commit->author;
    std::string signature;
    absl::Base64Unescape(request->signature(), &signature);
    is_signed_ = commit->segment && IsSignedBy(key_, SignedText(*commit->segment), signature);
    std::string of_point;
    absl::Base64Unescape(request->resume_point().proof().signature(), &of_point);
    point_is_signed_ = commit->resume_point.proof && IsSignedBy(key_, SignedText(commit->resume_point), of_point);
    if (commit->lease_epoch == 0) {
      return ToGrpc(WithReason(absl::FailedPreconditionError("not current"), "LEASE_FENCED"));
    }
    reply->set_replayed(true);
    return grpc::Status::OK;
  }
  grpc::Status PutBlob(grpc::ServerContext*, grpc::ServerReader<v1::PutBlobRequest>* reader,
                       v1::PutBlobReply*) override {
    v1::PutBlobRequest message;
    reader->Read(&message);
    if (message.header().lease_epoch() == 0) {
      return ToGrpc(WithReason(absl::FailedPreconditionError("not current"), "LEASE_FENCED"));
    }
    EXPECT_EQ(message.header().session().incarnation(), "life");
    std::string& blob = blobs_[message.header().blob().name()];
    while (reader->Read(&message)) {
      EXPECT_LE(message.data().size(), static_cast<size_t>(limits::kChunkBytes));
      blob += message.data();
    }
    return grpc::Status::OK;
  }
  grpc::Status GetBlob(grpc::ServerContext*, const v1::GetBlobRequest* request,
                       grpc::ServerWriter<v1::Chunk>* writer) override {
    EXPECT_EQ(request->session().incarnation(), "life");
    const auto it = blobs_.find(request->blob().name());
    if (it == blobs_.end()) return ToGrpc(absl::NotFoundError("no such object"));
    for (size_t at = 0; at < it->second.size(); at += 300'000) {
      v1::Chunk chunk;
      chunk.set_data(it->second.substr(at, 300'000));
      writer->Write(chunk);
    }
    return grpc::Status::OK;
  }

  grpc::Status SignUpload(grpc::ServerContext*, const v1::SignUploadRequest* request,
                          v1::SignUploadReply* reply) override {
    session_ = request->session();
    reply->set_url("http://s3/" + request->blob().name() + "?" + request->chain().job());
    (*reply->mutable_headers())["if-none-match"] = "*";
    return grpc::Status::OK;
  }

  std::map<std::string, std::string> blobs_;
  Author author_;
  bool knows_join_ = true;
  int refusals_ = 0;  // calls of Synchronize to refuse
  int joins_ = 0;
  std::string known_token_ = "secret", token_, key_;
  v1::WorkerProof proof_;
  bool one_signature_ = false;                        // to answer to Join
  bool signs_resume_points_ = false;                  // said in the last Join
  bool is_signed_ = false, point_is_signed_ = false;  // the last commit: segment and resume point
  v1::WorkerSession session_;                         // session of the last call that named one

 private:
  static std::string Metadata(const grpc::ServerContext& context, const std::string& name) {
    const auto found = context.client_metadata().find(name);
    return found == context.client_metadata().end() ? "" : std::string(found->second.data(), found->second.size());
  }

  Mutex mutex_;
  CondVar poll_;
};

class CoordinatorClientTest : public ::testing::Test {
 protected:
  FakeService service_;
  LoopbackServer server_{&service_};
  FakeClock clock_;
  WorkerCredentials credentials_{"secret", "w0", &clock_};
  CoordinatorClient client_{{server_.address(), "w0", "life", {}, &credentials_}};

  absl::StatusOr<SynchronizeReply> Synchronize(CoordinatorClient* client, const std::string& worker,
                                               absl::Duration deadline = absl::Seconds(30)) {
    SynchronizeRequest request;
    request.worker = worker;
    request.seq = 9;
    Mailbox<absl::StatusOr<SynchronizeReply>> answer;
    client->Synchronize(request, deadline, [&answer](auto reply) { answer.Put(std::move(reply)); });
    return answer.Take();
  }
  absl::Status Put(int64_t epoch, const BlobRef& ref, const std::string& bytes) {
    Mailbox<absl::Status> answer;
    client_.PutBlob({"job-a", 0}, epoch, ref, std::make_shared<const std::string>(bytes),
                    [&answer](auto result) { answer.Put(result.status()); });
    return answer.Take();
  }
  absl::StatusOr<std::shared_ptr<const std::string>> Get(const BlobRef& ref) {
    Mailbox<absl::StatusOr<std::shared_ptr<const std::string>>> answer;
    client_.GetBlob(ref, [&answer](auto bytes) { answer.Put(std::move(bytes)); });
    return answer.Take();
  }
};

TEST_F(CoordinatorClientTest, JoinsWithItsTokenThenSpeaksWithItsProof) {
  const auto reply = Synchronize(&client_, "w0");
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->generation, 9);
  EXPECT_EQ(reply->lease_ttl, absl::Seconds(15));
  EXPECT_EQ(service_.token_, "") << "sent to join only";
  EXPECT_EQ(service_.proof_.certificate(), "certificate");
  EXPECT_EQ(service_.proof_.expires(), 1'000'000 + 600) << "by the server's clock";
  EXPECT_TRUE(IsSignedBy(service_.key_, ProofText(1'000'600), service_.proof_.signature()));
  clock_.Advance(absl::Minutes(4));
  EXPECT_TRUE(Synchronize(&client_, "w0").ok());
  EXPECT_EQ(service_.proof_.expires(), 1'000'600);
  clock_.Advance(absl::Minutes(1));
  EXPECT_TRUE(Synchronize(&client_, "w0").ok());
  EXPECT_EQ(service_.proof_.expires(), 1'000'000 + 300 + 600);
  EXPECT_EQ(service_.joins_, 1);
  clock_.Advance(absl::Hours(12));
  EXPECT_TRUE(Synchronize(&client_, "w0").ok());
  EXPECT_EQ(service_.joins_, 2) << "renewed at half of its life";
}

TEST_F(CoordinatorClientTest, JoinsAgainWhereItsCertificateIsNotKnownAndEndsWhereItsTokenIsNot) {
  ASSERT_TRUE(Synchronize(&client_, "w0").ok());
  service_.refusals_ = 1;
  EXPECT_TRUE(absl::IsUnavailable(Synchronize(&client_, "w0").status()));
  EXPECT_TRUE(Synchronize(&client_, "w0").ok());
  EXPECT_EQ(service_.joins_, 2);
  WorkerCredentials unknown("guessed", "w0", &clock_);
  CoordinatorClient client({.address = server_.address(), .credentials = &unknown});
  EXPECT_TRUE(absl::IsUnauthenticated(Synchronize(&client, "w0").status()));
}

TEST_F(CoordinatorClientTest, OnlyARefusedJoinEndsAWorkerWithoutACertificate) {
  WorkerCredentials credentials("secret", "w0", &clock_);
  EXPECT_TRUE(credentials.Forget(/*joins=*/false)) << "an earlier refusal took the certificate";
  EXPECT_FALSE(credentials.Forget(/*joins=*/true));
  credentials.ServerIsOlder();
  EXPECT_FALSE(credentials.Forget(/*joins=*/false)) << "the token was refused";
}

TEST_F(CoordinatorClientTest, ReadsItsTokenAgainWhenItJoins) {
  std::string token = "stale";
  const auto read = [&token]() -> absl::StatusOr<std::string> { return std::exchange(token, "secret"); };
  WorkerCredentials credentials(*Reread<std::string>::Open("token", read), "w0", &clock_);
  CoordinatorClient client({.address = server_.address(), .credentials = &credentials});
  const auto reply = Synchronize(&client, "w0");
  EXPECT_TRUE(reply.ok()) << reply.status();
}

TEST_F(CoordinatorClientTest, RunsItsTokensCommandAgainOnlyAfterARefusedJoin) {
  std::string printed = "secret";
  int runs = 0;
  const auto run = [&]() -> absl::StatusOr<std::string> {
    ++runs;
    return printed;
  };
  WorkerCredentials credentials(*Reread<std::string>::Open("token", run), "w0", &clock_, /*token_printed=*/true);
  CoordinatorClient client({.address = server_.address(), .credentials = &credentials});
  ASSERT_TRUE(Synchronize(&client, "w0").ok());
  clock_.Advance(absl::Hours(12));
  ASSERT_TRUE(Synchronize(&client, "w0").ok());
  EXPECT_EQ(service_.joins_, 2);
  EXPECT_EQ(runs, 1) << "at the start, and not to join or to renew";
  printed = service_.known_token_ = "next";
  service_.refusals_ = 1;
  EXPECT_TRUE(absl::IsUnavailable(Synchronize(&client, "w0").status())) << "the certificate is refused";
  EXPECT_TRUE(absl::IsUnavailable(Synchronize(&client, "w0").status())) << "the first token is refused";
  EXPECT_EQ(runs, 1);
  EXPECT_TRUE(Synchronize(&client, "w0").ok());
  EXPECT_EQ(runs, 2);
  service_.known_token_ = "a token that the command does not print";
  service_.refusals_ = 1;
  EXPECT_TRUE(absl::IsUnavailable(Synchronize(&client, "w0").status()));
  EXPECT_TRUE(absl::IsUnavailable(Synchronize(&client, "w0").status()));
  EXPECT_TRUE(absl::IsUnauthenticated(Synchronize(&client, "w0").status())) << "no new token comes";
  EXPECT_EQ(runs, 3);
}

TEST_F(CoordinatorClientTest, SendsItsTokenToAServerThatKnowsNoJoin) {
  service_.knows_join_ = false;
  EXPECT_TRUE(Synchronize(&client_, "w0").ok());
  EXPECT_TRUE(Synchronize(&client_, "w0").ok());
  EXPECT_EQ(service_.token_, "Bearer secret");
  EXPECT_EQ(service_.joins_, 1);
}

// A file that hangs must not stop the calls that need no token.
TEST_F(CoordinatorClientTest, ReadsItsTokenWhileOtherThreadsUseItsCredentials) {
  WorkerCredentials* shared = nullptr;
  const auto read = [&shared]() -> absl::StatusOr<std::string> {
    if (shared != nullptr) std::thread([&shared] { shared->joined(); }).join();
    return "secret";
  };
  WorkerCredentials credentials(*Reread<std::string>::Open("token", read), "w0", &clock_);
  shared = &credentials;
  CoordinatorClient client({.address = server_.address(), .credentials = &credentials});
  EXPECT_TRUE(Synchronize(&client, "w0").ok());
}

TEST_F(CoordinatorClientTest, SignsTheResumePointThatItCommitsAndTheDrawsForAServerThatWantsIt) {
  ProgressCommit commit;
  commit.lease_epoch = 2;
  commit.segment.emplace().object.name = "store/job-a/3/segments/e2-b";
  commit.resume_point.step = 7;
  commit.resume_point.proof.emplace().name = "store/job-a/3/resume/e2-c";
  for (const bool one : {false, true}) {
    service_.one_signature_ = one;
    clock_.Advance(absl::Hours(12));  // it joins again
    ASSERT_TRUE(Synchronize(&client_, "w0").ok());
    EXPECT_TRUE(service_.signs_resume_points_);
    Mailbox<absl::Status> answer;
    client_.CommitProgress(commit, [&answer](const auto& reply) { answer.Put(reply.status()); });
    ASSERT_TRUE(answer.Take().ok());
    EXPECT_EQ(service_.is_signed_, !one);
    EXPECT_TRUE(service_.point_is_signed_);
  }
}

TEST_F(CoordinatorClientTest, ReportsAServerThatIsNotThereAsUnavailable) {
  CoordinatorClient client({.address = "127.0.0.1:1"});
  EXPECT_TRUE(absl::IsUnavailable(Synchronize(&client, "w0").status()));
}

TEST_F(CoordinatorClientTest, EndsACallAtItsDeadline) {
  EXPECT_TRUE(absl::IsDeadlineExceeded(Synchronize(&client_, "slow", absl::Milliseconds(50)).status()));
}

TEST_F(CoordinatorClientTest, StopCancelsWhatIsInFlight) {
  SynchronizeRequest request;
  request.worker = "slow";
  Mailbox<absl::Status> answer;
  client_.Synchronize(request, absl::Hours(1), [&answer](const auto& reply) { answer.Put(reply.status()); });
  client_.Stop();
  EXPECT_TRUE(absl::IsCancelled(answer.Take()));
}

TEST_F(CoordinatorClientTest, BringsTheServersSignature) {
  Mailbox<absl::StatusOr<SignedUpload>> answer;
  client_.SignUpload({"job-a", 0}, 1, {"a/b", 5, "digest"}, [&answer](auto reply) { answer.Put(std::move(reply)); });
  const auto upload = answer.Take();
  ASSERT_TRUE(upload.ok()) << upload.status();
  EXPECT_EQ(upload->url, "http://s3/a/b?job-a");
  EXPECT_EQ(upload->headers.at("if-none-match"), "*");
  EXPECT_EQ(service_.session_.worker() + "/" + service_.session_.incarnation(), "w0/life");
}

TEST_F(CoordinatorClientTest, CarriesTheReasonOfARefusedCommit) {
  ProgressCommit commit;
  commit.chain = {"job-a", 0};
  commit.author = {"w0", "host", "cpu", 3};
  commit.lease_epoch = 0;
  Mailbox<absl::StatusOr<CommitReply>> answer;
  client_.CommitProgress(commit, [&answer](auto reply) { answer.Put(std::move(reply)); });
  EXPECT_EQ(ReasonOf(answer.Take().status()), "LEASE_FENCED");
  commit.lease_epoch = 1;
  client_.CommitProgress(commit, [&answer](auto reply) { answer.Put(std::move(reply)); });
  const auto reply = answer.Take();
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_TRUE(reply->replayed);
  EXPECT_EQ(service_.author_.host, "host");
  EXPECT_EQ(service_.author_.numerics_version, 3);
}

TEST_F(CoordinatorClientTest, MovesObjectsInChunksBothWays) {
  std::string bytes(3'000'001, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31 >> 3);
  const BlobRef ref{"store/a", static_cast<int64_t>(bytes.size()), std::string(64, 'a')};
  ASSERT_TRUE(Put(1, ref, bytes).ok());
  EXPECT_EQ(service_.blobs_["store/a"], bytes);
  const auto got = Get(ref);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(**got, bytes);
}

TEST_F(CoordinatorClientTest, ReportsAPutThatTheServerRefusesInTheMiddle) {
  const std::string bytes(20'000'000, 'x');
  EXPECT_EQ(ReasonOf(Put(0, {"store/a", 20'000'000, std::string(64, 'a')}, bytes)), "LEASE_FENCED");
}

TEST_F(CoordinatorClientTest, ReportsAnObjectOfAnotherSizeAsDataLoss) {
  service_.blobs_["store/a"] = "1234567890";
  EXPECT_TRUE(absl::IsDataLoss(Get({"store/a", 9, ""}).status()));
  EXPECT_TRUE(absl::IsDataLoss(Get({"store/a", 11, ""}).status()));
  EXPECT_TRUE(absl::IsNotFound(Get({"store/b", 9, ""}).status()));
}

}  // namespace
}  // namespace chainfleet

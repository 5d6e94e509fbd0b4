#include "core/wire/grpc_status.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace chainfleet {
namespace {

google::rpc::Status Details(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  return details;
}

TEST(GrpcStatus, KeepsCodeMessageAndReason) {
  const absl::Status status = WithReason(absl::FailedPreconditionError("chain j/0: epoch 3 is not 4"), "LEASE_FENCED");
  const absl::Status back = FromGrpc(ToGrpc(status));
  EXPECT_EQ(back.code(), status.code());
  EXPECT_EQ(back.message(), status.message());
  EXPECT_EQ(ReasonOf(back), "LEASE_FENCED");
}

TEST(GrpcStatus, KeepsFieldViolationsAndTheirMessage) {
  const std::vector<FieldViolation> violations = {{"chains", "must be at least 1"}, {"prior", "empty"}};
  const absl::Status back = FromGrpc(ToGrpc(Annotate(InvalidFields(violations), "job.yaml")));
  EXPECT_EQ(FieldViolationsOf(back), violations);
  EXPECT_EQ(ReasonOf(back), "INVALID_FIELD");
  EXPECT_EQ(back.message(), "job.yaml: chains: must be at least 1; prior: empty");
}

TEST(GrpcStatus, CodesOfBothSidesAreTheSameNumbers) {
  for (int code = 1; code <= 16; ++code) {
    const grpc::Status status = ToGrpc(absl::Status(static_cast<absl::StatusCode>(code), "x"));
    EXPECT_EQ(static_cast<int>(status.error_code()), code);
    EXPECT_EQ(static_cast<int>(FromGrpc(status).code()), code);
  }
  EXPECT_TRUE(FromGrpc(ToGrpc(absl::OkStatus())).ok());
}

TEST(GrpcStatus, AnErrorWithoutAReasonTravelsWithItsCodeAsReason) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status sent(static_cast<absl::StatusCode>(code), "x");
    EXPECT_EQ(ReasonOf(FromGrpc(ToGrpc(sent))), absl::StatusCodeToString(sent.code()));
  }
  const absl::Status wrong = absl::InvalidArgumentError("inputs: the shape [2, 3] is wrong");
  EXPECT_TRUE(FieldViolationsOf(FromGrpc(ToGrpc(wrong))).empty());
}

TEST(GrpcStatus, AdvisesToRetryWhenNoWorkerServes) {
  const auto details = Details(ToGrpc(WithReason(absl::UnavailableError("no worker"), "NO_SERVING_WORKER")));
  google::rpc::RetryInfo retry;
  ASSERT_EQ(details.details_size(), 2);
  ASSERT_TRUE(details.details(1).UnpackTo(&retry));
  EXPECT_GT(retry.retry_delay().seconds(), 0);
}

TEST(GrpcStatus, KeepsTheBoundAndTheTimeUntilTheNextAttempt) {
  const absl::Status refused = WithReason(absl::ResourceExhaustedError("too many rows"), "TENANT_LIMIT");
  EXPECT_EQ(Details(ToGrpc(refused)).details_size(), 1) << "no time is known";
  const grpc::Status sent =
      ToGrpc(WithRetryAfter(WithBound(refused, "tenant_rows_per_second"), absl::Milliseconds(2500)));
  google::rpc::RetryInfo retry;
  ASSERT_TRUE(Details(sent).details(1).UnpackTo(&retry));
  EXPECT_EQ(retry.retry_delay().seconds(), 2);
  EXPECT_EQ(retry.retry_delay().nanos(), 500'000'000);
  const absl::Status back = FromGrpc(sent);
  EXPECT_EQ(BoundOf(back), "tenant_rows_per_second");
  EXPECT_EQ(ReasonOf(back), "TENANT_LIMIT");
  EXPECT_EQ(RetryAfterOf(back), absl::Milliseconds(2500));
}

TEST(GrpcStatus, KeepsTheRequestsIdBesideTheReason) {
  const grpc::Status sent = ToGrpc(WithReason(absl::NotFoundError("no job x"), "NO_JOB"));
  const absl::Status back = FromGrpc(WithRequestId(sent, "4bf92f"));
  EXPECT_EQ(RequestIdOf(back), "4bf92f");
  EXPECT_EQ(ReasonOf(back), "NO_JOB");
  EXPECT_EQ(back.message(), "no job x");
  EXPECT_EQ(RequestIdOf(FromGrpc(sent)), "");
  EXPECT_TRUE(WithRequestId(grpc::Status::OK, "4bf92f").ok());
}

TEST(GrpcStatus, GivesErrorsOfGrpcItselfTheRequestsId) {
  const grpc::Status status = WithRequestId(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "no such method"), "r-1");
  EXPECT_EQ(RequestIdOf(FromGrpc(status)), "r-1");
  EXPECT_EQ(Details(status).code(), 12);
  EXPECT_EQ(Details(status).message(), "no such method");
}

TEST(GrpcStatus, StaysBelowTheMetadataLimitOfPeers) {
  std::vector<FieldViolation> violations;
  for (int i = 0; i < 1000; ++i)
    violations.push_back({"layers[" + std::to_string(i) + "].kernel", "must be odd \xc3\xa9"});
  const grpc::Status status = WithRequestId(ToGrpc(InvalidFields(violations)), std::string(64, 'r'));
  EXPECT_LT(3 * status.error_message().size() + status.error_details().size() * 4 / 3, 8192u);
  EXPECT_FALSE(FieldViolationsOf(FromGrpc(status)).empty());
}

TEST(GrpcStatus, NeverCutsInsideACharacter) {
  for (size_t length = 990; length < 1010; ++length) {
    const grpc::Status status = ToGrpc(absl::InternalError(std::string(length, 'x') + "\xe2\x82\xac" + "tail"));
    google::rpc::Status details;
    EXPECT_TRUE(details.ParseFromString(status.error_details())) << length;  // rejects strings that are not UTF-8
  }
}

TEST(GrpcStatus, IgnoresDetailsItDoesNotKnow) {
  EXPECT_EQ(FromGrpc(grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone", "\xff\xff not a proto")).message(), "gone");
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  info.set_reason("OTHER");
  info.set_domain("example.com");
  details.add_details()->PackFrom(info);
  EXPECT_EQ(ReasonOf(FromGrpc(grpc::Status(grpc::StatusCode::ABORTED, "x", details.SerializeAsString()))), "");
}

}  // namespace
}  // namespace chainfleet

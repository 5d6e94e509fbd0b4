#include "core/base/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/check.h"

namespace chainfleet {
namespace {

TEST(Status, CarriesReasonAndFieldsThroughAnnotation) {
  const std::vector<FieldViolation> fields = {{"sampler.emcmc.eta", "must be above 0"}, {"name", "is empty"}};
  const absl::Status status = Annotate(InvalidFields(fields), "job.yaml");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(status), "INVALID_FIELD");
  EXPECT_EQ(FieldViolationsOf(status), fields);
  EXPECT_EQ(std::string(status.message()), "job.yaml: sampler.emcmc.eta: must be above 0; name: is empty");
}

TEST(Status, WithoutViolationsThereIsNoError) {
  EXPECT_TRUE(InvalidFields({}).ok());
  EXPECT_TRUE(FieldViolationsOf(absl::InternalError("x")).empty());
  EXPECT_EQ(ReasonOf(absl::InternalError("x")), "");
}

TEST(Status, AnErrorWithoutAReasonHasItsCodeAsReason) {
  EXPECT_EQ(ReasonOrCode(absl::NotFoundError("x")), "NOT_FOUND");
  EXPECT_EQ(ReasonOrCode(WithReason(absl::NotFoundError("x"), "JOB_NOT_FOUND")), "JOB_NOT_FOUND");
}

TEST(Status, SaysWhichBoundRefusedAndWhenToTryAgain) {
  const absl::Status full = absl::ResourceExhaustedError("full");
  EXPECT_EQ(BoundOf(full), "");
  const absl::Status refused = Annotate(BoundReached("tenant_calls", "full", "TENANT_LIMIT"), "call 3");
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(refused), "TENANT_LIMIT");
  EXPECT_EQ(BoundOf(refused), "tenant_calls");
  EXPECT_EQ(RetryAfterOf(WithReason(full, "TENANT_LIMIT")), absl::ZeroDuration()) << "nobody knows when";
  EXPECT_EQ(RetryAfterOf(WithReason(full, "QUEUE_FULL")), absl::Seconds(1)) << "it empties by itself";
  EXPECT_EQ(RetryAfterOf(WithRetryAfter(WithReason(full, "QUEUE_FULL"), absl::Milliseconds(2500))),
            absl::Milliseconds(2500));
}

absl::StatusOr<int> Half(int x) {
  if (x % 2 != 0) return absl::InvalidArgumentError("odd");
  return x / 2;
}

absl::StatusOr<int> Quarter(int x) {
  CHAINFLEET_ASSIGN_OR_RETURN(const int half, Half(x));
  CHAINFLEET_ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}

TEST(Status, MacrosReturnTheFirstError) {
  EXPECT_EQ(Quarter(12).value(), 3);
  EXPECT_EQ(std::string(Quarter(6).status().message()), "odd");
}

TEST(CheckDeathTest, AFailedInvariantEndsTheProcessAndSaysWhere) {
  EXPECT_DEATH({ CHAINFLEET_CHECK(1 + 1 == 3) << "sum of " << 2; },
               "status_test.cc:[0-9]+: check failed: 1 \\+ 1 == 3 sum of 2");
}

}  // namespace
}  // namespace chainfleet

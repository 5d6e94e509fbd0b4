#include "client/cli/exit_code.h"

#include "client/cli/job_file.h"
#include "core/wire/grpc_status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

TEST(ExitCode, FollowsTheKindOfError) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("")), 1);
  EXPECT_EQ(ExitCodeOf(absl::FailedPreconditionError("")), 1);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("")), 1);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("")), 3);
  EXPECT_EQ(ExitCodeOf(absl::UnauthenticatedError("")), 4);
  EXPECT_EQ(ExitCodeOf(absl::PermissionDeniedError("")), 4);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("")), 5);
  EXPECT_EQ(ExitCodeOf(absl::DeadlineExceededError("")), 5);
  EXPECT_EQ(ExitCodeOf(absl::DataLossError("")), 6);
}

TEST(ExitCode, IsUsageForErrorsOfTheUser) {
  EXPECT_EQ(ExitCodeOf(WithReason(absl::InvalidArgumentError(""), kJobFileReason)), 2);
  EXPECT_EQ(ExitCodeOf(WithReason(absl::NotFoundError(""), kUsageReason)), 2);
}

TEST(ExitCode, IsThatOfASignalForWhatAUserInterrupts) {
  EXPECT_EQ(ExitCodeOf(WithReason(absl::CancelledError(""), kInterruptedReason)), 130);
}

TEST(FormatError, IsOneLine) {
  EXPECT_EQ(FormatError(absl::NotFoundError("no job\nof that name"), false), "error: no job of that name\n");
  EXPECT_EQ(FormatError(absl::NotFoundError("no \x1b[2J\u202ejob"), false), "error: no \\u001b[2J\\u202ejob\n");
  EXPECT_EQ(FormatError(absl::NotFoundError(""), false), "error: NOT_FOUND\n");
  EXPECT_EQ(FormatError(InvalidFields({{"chains", "must be at least 1"}}), false),
            "error: chains: must be at least 1\n");
}

TEST(FormatError, NamesTheRequestIfAServerSaidIt) {
  EXPECT_EQ(FormatError(WithRequestId(absl::NotFoundError("no job x"), "4bf92f"), false),
            "error: no job x (request 4bf92f)\n");
  EXPECT_EQ(FormatError(WithRequestId(InvalidFields({{"chains", "is 0"}, {"seed", "is odd"}}), "r-1"), false),
            "error: 2 fields are wrong (request r-1)\n  chains: is 0\n  seed: is odd\n");
}

TEST(FormatError, SaysWhenACallThatABoundRefusedMayComeAgain) {
  const absl::Status refused = WithReason(absl::ResourceExhaustedError("too many rows"), "TENANT_LIMIT");
  EXPECT_EQ(FormatError(refused, false), "error: too many rows\n");
  EXPECT_EQ(FormatError(WithRetryAfter(refused, absl::Milliseconds(1100)), false),
            "error: too many rows\ntry again in 2 s\n");
}

TEST(FormatError, ListsSeveralFieldsBelowOneHeadLine) {
  EXPECT_EQ(FormatError(InvalidFields({{"chains", "is 0"}, {"seed", "is\nodd"}}), false),
            "error: 2 fields are wrong\n  chains: is 0\n  seed: is odd\n");
}

TEST(FormatError, ColorsOnlyTheWord) {
  EXPECT_EQ(FormatError(absl::InternalError("x"), true), "\x1b[1;31merror:\x1b[0m x\n");
}

}  // namespace
}  // namespace chainfleet

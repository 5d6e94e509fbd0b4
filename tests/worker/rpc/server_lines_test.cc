#include "worker/rpc/server_lines.h"

#include <gtest/gtest.h>

namespace chainfleet {
namespace {

TEST(ServerLines, MoveOnFromAServerThatIsGoneOrSilent) {
  ServerLines lines("a:1,b:2,c:3", TlsFiles(), {"calls"});
  EXPECT_EQ(lines.current(), 0u);
  lines.Ended(0, absl::StatusCode::kUnavailable);
  EXPECT_EQ(lines.current(), 1u);
  lines.Ended(1, absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(lines.current(), 2u);
  lines.Ended(2, absl::StatusCode::kUnavailable);
  EXPECT_EQ(lines.current(), 0u);
}

TEST(ServerLines, OnlyTheFirstCallThatEndsMovesOn) {
  ServerLines lines("a:1,b:2,c:3", TlsFiles(), {"calls", "shards"});
  lines.Ended(0, absl::StatusCode::kUnavailable);
  lines.Ended(0, absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(lines.current(), 1u);
}

TEST(ServerLines, StayWithAServerThatAnswers) {
  ServerLines lines("a:1,b:2", TlsFiles(), {"calls"});
  for (const auto code : {absl::StatusCode::kOk, absl::StatusCode::kAborted, absl::StatusCode::kCancelled,
                          absl::StatusCode::kFailedPrecondition, absl::StatusCode::kResourceExhausted}) {
    lines.Ended(0, code);
  }
  EXPECT_EQ(lines.current(), 0u);
}

}  // namespace
}  // namespace chainfleet

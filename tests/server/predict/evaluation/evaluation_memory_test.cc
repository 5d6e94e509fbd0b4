#include "server/predict/evaluation/evaluation_memory.h"

#include <limits>
#include <string>

#include "core/base/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/predict/evaluation/evaluation.h"

namespace chainfleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Three averages (two kinds and all) of ten classes and two entropies, a label, and the sorted values.
TEST(EvaluationMemory, CountsEachSetAsItIsHeldByHand) {
  const EvaluatedRows rows{.labelled = 1000};
  EXPECT_EQ(EvaluationBytes(rows, 2, Classes{10}), 1000 * (4 + 3 * 12 * 8 + 64));
  EXPECT_EQ(EvaluationBytes({.labelled = 1000, .changed = true}, 2, Classes{10}), 1000 * (2 * (4 + 3 * 12 * 8) + 64));
  EXPECT_EQ(EvaluationBytes({.labelled = 1000, .ood = 10}, 2, Classes{10}),
            1000 * (4 + 3 * 12 * 8 + 64) + 10 * (3 * 2 * 8 + 64));
  EXPECT_EQ(EvaluationBytes({.labelled = 1000, .held_out = 10}, 2, Classes{10}),
            1010 * (4 + 3 * 12 * 8) + 1000 * 64 + 1000 * 22 * 8);
  EXPECT_EQ(EvaluationBytes({.labelled = 10, .held_out = 1000}, 2, Classes{10}),
            1010 * (4 + 3 * 12 * 8) + 10 * 64 + 1000 * 10 * 8);
  EXPECT_EQ(EvaluationBytes({.labelled = 1000, .changed = true}, 1, Numbers()), 1000 * 2 * (4 + 2 * 4 * 8));
  EXPECT_EQ(EvaluationBytes({.labelled = 1000, .weighted = true}, 2, Classes{10}), 1000 * (4 + 5 * 12 * 8 + 64));
}

TEST(EvaluationMemory, DoesNotOverflowForTooManyRows) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_GT(EvaluationBytes({kMost, kMost, kMost, true}, 2, Classes{kMost}), kMost / 2);
}

TEST(EvaluationMemory, RefusalSaysTheBytesAndTheNumberOfPartsThatFit) {
  const int64_t bytes = EvaluationBytes({.labelled = 45'000'000}, 2, Classes{10});
  const absl::Status status = CheckEvaluationBytes(bytes, Evaluator::kMaxRowBytes);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("takes 15278 MiB"), HasSubstr("have 2048 MiB"), HasSubstr("in 8 parts or more")));
  EXPECT_TRUE(CheckEvaluationBytes(limits::kMiB, limits::kMiB).ok());
}

}  // namespace
}  // namespace chainfleet

#include "tests/support/lossy_port.h"

#include <gtest/gtest.h>

#include "core/store/draw_codec/segment_codec.h"
#include "tests/support/fake_coordinator.h"
#include "tests/support/worker_fixture.h"

namespace chainfleet {
namespace {

// Calls are lost in both directions, repeated and late, tasks run in any order: the committed draws are still one path.
class LossyLine : public ::testing::TestWithParam<uint64_t> {};

TEST_P(LossyLine, AJobEndsWithOnePathPerChain) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  FakeClock clock;
  ManualExecutor executor(&clock, GetParam());
  FakeCoordinator server(&executor);
  LossyPort port(&server, &executor, &executor, GetParam());
  port.SetFaults({.drop_request = 0.15,
                  .drop_reply = 0.15,
                  .duplicate = 0.1,
                  .max_delay = absl::Milliseconds(300),
                  .max_lateness = absl::Seconds(20)});
  FakeBatchScript script;
  script.total_steps = 60;
  FakeWorker worker(&port, &executor, &clock, &script);
  server.AddChains(AnalyticPlan("job-a", 3), 3);
  worker.session.Start();
  RunWorker(&worker, &executor, &clock, absl::Minutes(10));
  for (const auto& [id, chain] : server.chains) {
    EXPECT_EQ(chain.state, ChainState::kSucceeded) << ToString(id);
    int64_t step = 0, index = 0;
    for (const Segment& segment : chain.segments) {
      EXPECT_EQ(segment.first_index, index);
      const auto content = DecodeSegment(server.blobs.at(segment.object.name));
      ASSERT_TRUE(content.ok()) << content.status();
      for (const Draw& draw : content->draws) {
        step += script.collect_every;
        ++index;
        EXPECT_EQ(draw.theta[0][0], FakeChainBatch::Coordinate(id.index, step, 0, 0));
      }
    }
    EXPECT_EQ(step, 60);
  }
  EXPECT_TRUE(worker.held.quiet());
}

INSTANTIATE_TEST_SUITE_P(Seeds, LossyLine, ::testing::Range<uint64_t>(1, 33));

}  // namespace
}  // namespace chainfleet

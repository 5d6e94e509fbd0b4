#include "server/telemetry/control_metrics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/scrape.h"

namespace chainfleet {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ControlMetrics, CountsLeasesAndCommitsByOutcome) {
  MetricsRegistry registry("server");
  ControlMetrics metrics(&registry);
  metrics.OnGrant(absl::Seconds(2));
  metrics.OnLeaseEnd(LeaseOutcome::kLost);
  metrics.OnWorkerSilent();
  for (int i = 0; i < 2; ++i) metrics.OnLeaseEnd(LeaseOutcome::kHung);
  metrics.OnPreempt({"job-aaaaaa", 0});
  for (int i = 0; i < 2; ++i) metrics.OnChainEnd(ChainState::kFailed);
  metrics.OnCommit({.draws = 3, .bytes = 100, .took = absl::Milliseconds(2)});
  metrics.OnCommit({.replayed = true, .draws = 3, .bytes = 100});
  metrics.OnCommit({.refused = "LEASE_FENCED", .draws = 3, .bytes = 100});
  metrics.OnCommit({.refused = "DISK_FULL"});
  const auto address = registry.Serve("127.0.0.1:0");
  ASSERT_TRUE(address.ok()) << address.status();
  const std::string scrape = Scrape(*address);
  for (const char* line : {"chainfleet_leases_granted_total 1",
                           "chainfleet_leases_ended_total{cause=\"lost\"} 1",
                           "chainfleet_leases_ended_total{cause=\"hung\"} 2",
                           "chainfleet_leases_ended_total{cause=\"ordered\"} 0",
                           "chainfleet_leases_ended_total{cause=\"given_back\"} 0",
                           "chainfleet_leases_ended_total{cause=\"job_wrong\"} 0",
                           "chainfleet_chains_ended_total{state=\"FAILED\"} 2",
                           "chainfleet_chains_ended_total{state=\"DIVERGED\"} 0",
                           "chainfleet_chains_ended_total{state=\"SUCCEEDED\"} 0",
                           "chainfleet_chains_ended_total{state=\"CANCELLED\"} 0",
                           "chainfleet_workers_lost_total 1",
                           "chainfleet_preemptions_total 1",
                           "chainfleet_commits_total{outcome=\"OK\"} 1",
                           "chainfleet_commits_total{outcome=\"REPLAYED\"} 1",
                           "chainfleet_commits_total{outcome=\"LEASE_FENCED\"} 1",
                           "chainfleet_commits_total{outcome=\"DISK_FULL\"} 1",
                           "chainfleet_commits_total{outcome=\"PATH_CONFLICT\"} 0",
                           "chainfleet_committed_draws_total 3",
                           "chainfleet_committed_bytes_total 100",
                           "chainfleet_scheduling_delay_seconds_sum 2",
                           "chainfleet_commit_duration_seconds_count 4"}) {
    EXPECT_THAT(scrape, HasSubstr(std::string("\n") + line)) << line;
  }
  EXPECT_THAT(scrape, Not(HasSubstr("chainfleet_chains_ended_total{state=\"PENDING\"}")));
}

}  // namespace
}  // namespace chainfleet

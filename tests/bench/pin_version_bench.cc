// Measures how long a prediction takes to find its draws: in the records of a version that the catalog keeps, in those
// of the version before and a new segment, and in SQLite in memory, as for the first call.
#include <benchmark/benchmark.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "server/adapters/dispatcher_draw_catalog.h"
#include "server/control/coordinator.h"
#include "tests/bench/in_turn.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"
#include "tests/support/memory_database.h"

namespace chainfleet {
namespace {

constexpr int kChains = 16;
constexpr int64_t kDrawsOfSegment = 8;

DigestHex DigestOf(int64_t segment) {
  return absl::StrCat(absl::Dec(segment + 1, absl::kZeroPad16), std::string(48, 'd'));
}

// A coordinator with one job whose chains have committed `segments` segments each.
class PinnedJob {
 public:
  explicit PinnedJob(int64_t segments) : next_segment_(segments) {
    auto plan = std::make_shared<JobPlan>();
    plan->job = kJob;
    plan->spec.name = "bench";
    plan->spec.model.kind = GaussianPotential{.dimension = 10};
    plan->spec.num_steps = int64_t{1} << 40;
    plan->spec.chains = kChains;
    Apply({change::CreateJob{plan, ""}});
    for (int32_t c = 0; c < kChains; ++c) {
      Apply({change::GrantLease{{kJob, c}, 1, "w", "life"}});
      for (int64_t s = 0; s < segments; ++s) Apply({CommitOf({kJob, c}, s)});
    }
    coordinator_ =
        std::make_unique<Coordinator>(&clock_, &executor_, store_.get(), store_->Load().value(), DispatcherOptions{});
  }

  std::unique_ptr<DispatcherDrawCatalog> NewCatalog(int64_t max_kept_bytes) {
    const DrawCatalogParts parts{.executor = &executor_,
                                 .state = store_.get(),
                                 .writer = &coordinator_->writer(),
                                 .catalog = &coordinator_->catalog(),
                                 .versions = &coordinator_->versions(),
                                 .dispatcher = &coordinator_->dispatcher()};
    return std::make_unique<DispatcherDrawCatalog>(parts, max_kept_bytes);
  }

  // Commits a segment of chain 0. Returns the number of a new version.
  int64_t Grow() {
    Apply({CommitOf({kJob, 0}, next_segment_++)});
    return Apply({change::CreateVersion{kJob}}).at(0).version->number;
  }

  void Pin(DispatcherDrawCatalog* catalog, const DrawQuery& query) {
    bool pinned = false;
    catalog->Pin(query, [&](const absl::StatusOr<PinnedDraws>& draws) {
      CHAINFLEET_CHECK(draws.ok()) << draws.status().ToString();
      pinned = draws->chains.size() == kChains;
    });
    executor_.RunUntilIdle();
    CHAINFLEET_CHECK(pinned);
  }

  static constexpr char kJob[] = "bench-aaaaaa";

 private:
  std::vector<ApplyResult> Apply(const std::vector<StateChange>& changes) {
    auto results = store_->Apply(changes, absl::Now());
    CHAINFLEET_CHECK(results.ok()) << results.status().ToString();
    for (const ApplyResult& result : *results) CHAINFLEET_CHECK(result.status.ok()) << result.status.ToString();
    return *std::move(results);
  }

  static ProgressCommit CommitOf(const ChainId& chain, int64_t index) {
    ProgressCommit commit{.author = {"w", "host", "cpu", 1}, .incarnation = "life", .chain = chain, .lease_epoch = 1};
    Segment segment{.first_index = index * kDrawsOfSegment,
                    .kinds = {DrawKind::kTheta},
                    .object = {absl::StrCat("store/", chain.job, "/", chain.index, "/segments/e1-", DigestOf(index)),
                               1 << 20, DigestOf(index)},
                    .digest = DigestOf(index),
                    .parent_digest = index == 0 ? FirstParentDigest() : DigestOf(index - 1)};
    for (int64_t i = 0; i < kDrawsOfSegment; ++i) segment.steps.push_back(10 * (segment.first_index + i + 1));
    segment.weights.assign(kDrawsOfSegment, 1.0);
    commit.resume_point = {segment.steps.back(), "state", std::nullopt, DigestOf(0)};
    commit.segment = std::move(segment);
    return commit;
  }

  int64_t next_segment_;
  FakeClock clock_;
  ManualExecutor executor_{&clock_};
  const std::unique_ptr<StateStore> store_ = MemoryDatabase("store").Open();
  std::unique_ptr<Coordinator> coordinator_;
};

// state.range(0): segments of each of 16 chains. state.range(1): newest draws of each chain in the selection; 0:
// all.
void PinVersion(benchmark::State& state) {
  PinnedJob job(state.range(0));
  const auto keeps = job.NewCatalog(DispatcherDrawCatalog::kMaxKeptBytes), reads = job.NewCatalog(0);
  const auto grows = job.NewCatalog(DispatcherDrawCatalog::kMaxKeptBytes);
  const DrawQuery query{.job = PinnedJob::kJob, .members = state.range(1)};
  const auto pin_new = [&] {  // with the commit and the new version
    DrawQuery newest = query;
    newest.version = job.Grow();
    job.Pin(grows.get(), newest);
  };
  StepInTurn(state,
             {{"kept", [&] { job.Pin(keeps.get(), query); }},
              {"grown", pin_new},
              {"read", [&] { job.Pin(reads.get(), query); }}},
             StepTime::kThreadCpu);
}
BENCHMARK(PinVersion)->Name("predict/pin_version")->ArgsProduct({{4, 64, 1024}, {0, 1}})->UseRealTime();

}  // namespace
}  // namespace chainfleet

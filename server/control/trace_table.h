// The traces of running and lately ended jobs, and what they say: R-hat, effective sample sizes, Monte Carlo errors.
//
// Numbers for people, dashboards and stop rules, kept in memory: of jobs that run, a server that comes back knows what
// chains commit from then on; what ended jobs leave is kept by server/rpc/final_findings.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/executor.h"
#include "core/base/ids.h"
#include "core/base/status.h"
#include "core/domain/chain_state.h"
#include "core/domain/chain_trace.h"

namespace chainfleet {

// Of one quantity at one point of a job's sweep; core/diagnostics says what the numbers are. In the quantity's units.
struct Diagnostic {
  int32_t point = 0;
  std::string quantity;
  int32_t chains = 0;  // looked at, and
  int64_t values = 0;  // of each, the newest
  double rhat = 0;     // NaN for one chain
  double ess_bulk = 0, ess_tail = 0;
  double mean = 0, mcse_mean = 0;
  double seconds = 0;        // in which these values were made, waiting between them too; 0: nobody knows yet
  bool descriptive = false;  // true: decides nothing, since the job's predictions do (core/domain/chain_trace.h)
  // Of the message; `rhat` only if there is one.
  static void Fields(auto& self, auto&& visit) {
    visit("point", self.point);
    visit("quantity", self.quantity);
    visit("chains", self.chains);
    visit("values", self.values);
    visit("ess_bulk", self.ess_bulk);
    visit("ess_tail", self.ess_tail);
    visit("mean", self.mean);
    visit("mcse_mean", self.mcse_mean);
    visit("descriptive", self.descriptive);
  }
  bool operator==(const Diagnostic&) const = default;
};

// What the traces of one point say.
struct PointDiagnosis {
  int32_t point = 0;
  std::vector<int32_t> looked_at;       // chains, in order
  std::vector<int32_t> without_room;    // in order: chains with traces that are not kept
  int64_t values = 0;                   // of each quantity and chain that is looked at, the newest
  std::vector<Diagnostic> diagnostics;  // empty for too few values, and while all are equal
};

// What is known of one quantity on one chain, in the quantity's units: the newest kTraceWindow values at most.
struct TracedChain {
  int32_t chain = 0, point = 0;
  std::vector<int64_t> steps;  // [n], rising
  std::vector<double> values;  // [n]
  static void Fields(auto& self, auto&& visit) {
    visit("chain", self.chain);
    visit("point", self.point);
    visit("steps", self.steps);
    visit("values", self.values);
  }
  bool operator==(const TracedChain&) const = default;
};

// Thread-safe. Diagnostics are computed on the executor, of each job by one task at a time: when its traces grew by a
// tenth, and when a chain ended. Looked at are the chains of a point with at least half the values of its longest,
// each with as many as the shortest of these has.
//
// Bounded: a window of values of a chain, kMostChains chains of a point (the first that come), kMostValues of a job,
// which its points share evenly (the last chain of the one with the most gives way); beyond kMostValuesInAll and
// kMostJobs the job that has not been fed for longest is forgotten.
class TraceTable {
 public:
  static constexpr size_t kMostChains = kMostTracedChains, kMostJobs = 4096;
  static constexpr int64_t kMostValues = int64_t{1} << 21, kMostValuesInAll = int64_t{1} << 24;

  // Hears of a job what was just computed, of all its points; on the executor, outside of all locks.
  using Renewed = std::function<void(const std::string& job, const std::vector<PointDiagnosis>& points)>;

  explicit TraceTable(Executor* executor, Renewed renewed = nullptr);
  ~TraceTable();

  // What a commit adds that was accepted at `at`, by the monotonic clock. Steps that the chain has already are left
  // out, and traces of other quantities than its job's first; a chain that ends as DIVERGED or FAILED is forgotten.
  void Add(const ChainId& chain, const ChainTrace& trace, std::optional<ChainState> ends_as, absl::Duration at);

  // A chain that the server ends without its draws being averaged: what it left must not hold the others' rule back.
  void Forget(const ChainId& chain);

  // A commit of `job` is on its way: until what is returned is destroyed, the job is not settled. It may outlive this.
  std::shared_ptr<void> Expect(const std::string& job);

  // Runs `settled` once, when no commit is expected and the diagnostics are of the newest traces that they are computed
  // of: at once, in this call, or from whoever brings it about, outside of all locks; not at all once this is
  // destroyed.
  void WhenSettled(const std::string& job, std::function<void()> settled);

  // By point, then in the order of the quantities; those whose values are all equal are left out.
  std::vector<Diagnostic> Of(const std::string& job) const;

  // What is traced of the job; none before its first commit with traces.
  std::vector<std::string> QuantitiesOf(const std::string& job) const;

  // By point, then chain. NOT_FOUND / NOT_TRACED naming the quantities that are traced, or saying that none is: before
  // the first commit after burn-in, and after a start of the server until chains commit again.
  absl::StatusOr<std::vector<TracedChain>> TracesOf(const std::string& job, const std::string& quantity) const;

 private:
  struct State;
  const std::shared_ptr<State> state_;  // shared with tasks on the executor
};

}  // namespace chainfleet

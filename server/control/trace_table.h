// The traces of running and recently ended jobs, and their diagnostics: R-hat, effective sample sizes, Monte Carlo
// errors.
//
// For people, dashboards and stop rules. Traces are kept in memory; server/rpc/final_findings stores them, so that a
// restarted server, or another leader, goes on with them.
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

// The ranks of the true values among the draws of their chains, as shares in (0, 1) (core/diagnostics/uniformity.h).
struct Ranks {
  std::vector<int64_t> counts;    // chains in each of kParts equal parts of [0, 1]
  std::optional<double> p_value;  // that the shares are uniform; none below kFewestShares or kFewestRankedDraws
  static constexpr int64_t kParts = 20;
  static void Fields(auto& self, auto&& visit) {
    visit("counts", self.counts);
    visit("p_value", self.p_value);
  }
  bool operator==(const Ranks&) const = default;
};

// Diagnostics of one quantity at one sweep point, in the quantity's units. core/diagnostics defines the numbers.
struct Diagnostic {
  int32_t point = 0;
  std::string quantity;
  int32_t chains = 0;                 // number of chains used
  int64_t values = 0;                 // newest values of each chain that were used
  double rhat = 0;                    // NaN for one chain, and for a job of kind sbc
  double ess_bulk = 0, ess_tail = 0;  // for a job of kind sbc the sums of what each chain has by itself
  double mean = 0, mcse_mean = 0;
  double seconds = 0;  // wall-clock time that these values took, including waiting; 0 if unknown
  // true: no stop rule reads it, because the job's predictions decide (core/domain/chain_trace.h)
  bool descriptive = false;
  std::optional<double> nested_rhat = std::nullopt;  // none without superchains, or if unknown
  std::optional<Ranks> ranks = std::nullopt;         // only for a job of kind sbc, whose values are less the true ones
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
    visit("nested_rhat", self.nested_rhat);
    visit("ranks", self.ranks);
  }
  bool operator==(const Diagnostic&) const = default;
};

// Diagnostics of one sweep point.
struct PointDiagnosis {
  int32_t point = 0;
  std::vector<int32_t> looked_at;       // chains used, in order
  std::vector<int32_t> without_room;    // chains with traces that are not kept, in order
  int64_t values = 0;                   // newest values used, of each quantity and chain
  std::vector<Diagnostic> diagnostics;  // empty for too few values, and while all values are equal
};

// The trace of one quantity on one chain, in the quantity's units: at most the newest kTraceWindow values.
// EveryTrace fills in all quantities: values [n, Q].
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

// Thread-safe. The executor computes diagnostics, for each job in one task at a time: when its traces grew by a tenth,
// and when a chain ended. They use the chains of a point that have at least half as many values as its longest, and of
// each as many values as the shortest of these has.
//
// Bounds: a window of values for each chain; kMostTracedChains chains of a point, kMostRankedChains of a job of kind
// sbc (the first that arrive); kMostValues values of a job and kMostValuesOfQuantity of each of its quantities, shared
// evenly by its points (the point with the most chains drops its last one). Beyond kMostValuesInAll or kMostJobs, the
// job that has got no values for longest is forgotten.
class TraceTable {
 public:
  static constexpr size_t kMostJobs = 4096;
  static constexpr int64_t kMostValuesOfQuantity = int64_t{1} << 20;  // fit one reply
  static constexpr int64_t kMostValues = int64_t{1} << 23, kMostValuesInAll = int64_t{1} << 25;

  // Called with the new diagnostics of all points of a job; on the executor, outside all locks.
  using Renewed = std::function<void(const std::string& job, const std::vector<PointDiagnosis>& points)>;

  // How the chains of a job relate.
  struct Relation {
    int64_t superchains = 0;  // 0: it has none (core/domain/sweep_points.h)
    bool is_sbc = false;      // each chain has a posterior of its own
    int64_t chains = 0;       // chains of the job; one with a higher index was added later
  };
  // Called in Add, outside all locks: for a job without traces, and for a chain that was added to the job later.
  using Relate = std::function<Relation(const std::string& job)>;

  explicit TraceTable(Executor* executor, Renewed renewed = nullptr, Relate relate = nullptr);
  ~TraceTable();

  // Adds the trace of a commit that was accepted at `at` (monotonic). Skips steps that the chain has already, and
  // traces of other quantities than the job's. If a trace has all of these and more, as a worker of a newer release may
  // send, the job's traces begin anew with them. A chain that ends as DIVERGED or FAILED is forgotten.
  void Add(const ChainId& chain, const ChainTrace& trace, std::optional<ChainState> ends_as, absl::Duration at);

  // Forgets a chain that the server ends without averaging its draws, so that it does not hold back the stop rule.
  void Forget(const ChainId& chain);

  // Announces a commit of `job`: the job is not settled until the returned object is destroyed, which may outlive this
  // table.
  std::shared_ptr<void> Expect(const std::string& job);

  // Runs `settled` once, when no commit is expected and no diagnostics are being computed: at once in this call, or
  // later in the call that settles the job, outside all locks. Does not run after this table is destroyed.
  void WhenSettled(const std::string& job, std::function<void()> settled);

  // Returns diagnostics by point, then in the order of the quantities, without quantities whose values are all equal.
  std::vector<Diagnostic> Of(const std::string& job) const;

  // Returns the job's traced quantities; none before its first commit with traces.
  std::vector<std::string> QuantitiesOf(const std::string& job) const;

  // Returns traces by point, then chain. NOT_FOUND / NOT_TRACED: the error names the traced quantities, or says that
  // there are none, as before the first commit after burn-in.
  absl::StatusOr<std::vector<TracedChain>> TracesOf(const std::string& job, const std::string& quantity) const;

  // Returns the traces of all quantities, by point, then chain: values [n, Q] in the order of QuantitiesOf.
  std::vector<TracedChain> EveryTrace(const std::string& job) const;

 private:
  struct State;
  const std::shared_ptr<State> state_;  // shared with tasks on the executor
};

}  // namespace chainfleet

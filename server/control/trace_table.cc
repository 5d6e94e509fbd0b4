#include "server/control/trace_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/mutex.h"
#include "core/base/rng_key.h"
#include "core/diagnostics/ess.h"
#include "core/diagnostics/mcse.h"
#include "core/diagnostics/rhat.h"
#include "core/diagnostics/uniformity.h"

namespace chainfleet {
namespace {

using Commit = std::pair<int64_t, absl::Duration>;  // newest step, and time of the commit

// The newest values of one chain.
struct Window {
  std::vector<int64_t> steps;   // [n]
  std::vector<double> values;   // [n, Q]
  std::vector<Commit> commits;  // the commits of these values, and the one before them if any
};
using Windows = std::map<int32_t, Window>;  // by chain

struct TracedJob {
  std::vector<std::string> quantities;
  std::map<int32_t, Windows> points;
  std::map<int32_t, std::set<int32_t>> without_room;  // chains by point
  int64_t num_values = 0;
  int64_t added = 0, added_before = 0;  // total values now, and when diagnostics were last computed
  bool ended = false;                   // a chain has ended since then
  bool computing = false;
  TraceTable::Relation relation;
  uint64_t fed = 0;  // number of the last call of Add
  std::shared_ptr<const std::vector<Diagnostic>> diagnostics = std::make_shared<std::vector<Diagnostic>>();

  bool IsStale() const { return added > added_before && (ended || (added - added_before) * 10 >= num_values); }
};

// The values of each quantity, [chains, values].
struct Matrix {
  int32_t point = 0;
  std::vector<int32_t> chains;
  int64_t values = 0;
  double seconds = 0;  // time that these values took
  std::vector<std::vector<double>> of_quantity;
};

// The data from which a job's diagnostics are computed.
struct Selection {
  TraceTable::Relation relation;
  std::vector<std::string> quantities;
  std::map<int32_t, std::set<int32_t>> without_room;
  std::vector<Matrix> matrices;
};

struct Span {
  absl::Duration begin = absl::InfiniteDuration(), end = -absl::InfiniteDuration();
};

// The time that the newest `values` took, starting at the commit before them. The start of a chain's first commit is
// unknown, so its values are assumed to have the rate of the later ones. Empty after one commit.
Span MadeIn(const Window& window, int64_t values) {
  const int64_t oldest = window.steps[window.steps.size() - static_cast<size_t>(values)];
  auto before = std::ranges::lower_bound(window.commits, oldest, {}, &Commit::first);
  if (before != window.commits.begin()) --before;
  const auto since = window.steps.end() - std::ranges::upper_bound(window.steps, before->first);
  if (since == 0) return {};
  const absl::Duration end = window.commits.back().second;
  return {end - (end - before->second) * (static_cast<double>(values) / static_cast<double>(since)), end};
}

// Returns 0 while the time is unknown.
double SecondsOf(const std::vector<const Window*>& windows, int64_t values) {
  Span span;
  for (const Window* window : windows) {
    const Span of_chain = MadeIn(*window, values);
    span = {std::min(span.begin, of_chain.begin), std::max(span.end, of_chain.end)};
  }
  return span.begin < span.end ? absl::ToDoubleSeconds(span.end - span.begin) : 0;
}

Matrix Select(int32_t point, const Windows& windows, size_t num_quantities) {
  const auto length = [](const Window& w) { return static_cast<int64_t>(w.steps.size()); };
  int64_t longest = 0;
  for (const auto& [index, window] : windows) longest = std::max(longest, length(window));
  Matrix matrix{.point = point, .values = longest};
  std::vector<const Window*> chosen;
  for (const auto& [index, window] : windows) {
    if (2 * length(window) < longest) continue;
    chosen.push_back(&window);
    matrix.chains.push_back(index);
    matrix.values = std::min(matrix.values, length(window));
  }
  if (matrix.values > 0) matrix.seconds = SecondsOf(chosen, matrix.values);
  for (size_t q = 0; q < num_quantities; ++q) {
    std::vector<double>& values = matrix.of_quantity.emplace_back();
    for (const Window* window : chosen) {
      const int64_t n = length(*window);
      for (int64_t i = n - matrix.values; i < n; ++i) values.push_back(window->values[i * num_quantities + q]);
    }
  }
  return matrix;
}

// Returns nullopt without superchains, and if the traces have no nested R-hat.
std::optional<double> NestedRhatOf(const Traces& traces, const std::vector<int32_t>& chains, int64_t superchains) {
  if (superchains == 0) return std::nullopt;
  std::vector<int64_t> labels;
  for (const int32_t chain : chains) labels.push_back(chain % superchains);
  const double nested = NestedRhat(traces, labels);
  return std::isnan(nested) ? std::nullopt : std::optional(nested);
}

// Breaks ties of a chain's rank: the same number after a restart.
double TieBreaker(const std::string& quantity, int32_t chain) {
  RngKey key;
  for (const char letter : quantity) key = Fold(key, static_cast<unsigned char>(letter));
  const PhiloxBlock block = RandomBlock(Fold(key, static_cast<uint64_t>(chain)), RngStream::kProbe, 0, 0);
  return UniformDouble(block.word[0], block.word[1]);
}

// Each chain is judged by itself: chains of different data need not agree. A chain with a NaN is left out.
void JudgeRanks(const Traces& traces, const std::vector<int32_t>& chains, Diagnostic* found) {
  Ranks ranks{.counts = std::vector<int64_t>(Ranks::kParts), .p_value = std::nullopt};
  std::vector<double> shares;
  for (size_t c = 0; c < chains.size(); ++c) {
    const Traces chain{traces.Chain(static_cast<int64_t>(c)), 1};
    if (!Usable(chain)) continue;
    const double ess = EssBulk(chain);
    found->ess_bulk += ess;
    found->ess_tail += EssTail(chain);
    shares.push_back(RankShare(chain.values, ess, TieBreaker(found->quantity, chains[c])));
    ++ranks.counts[std::min(Ranks::kParts - 1, static_cast<int64_t>(shares.back() * Ranks::kParts))];
  }
  const auto used = static_cast<int64_t>(shares.size());
  if (used >= kFewestShares && found->ess_bulk >= kFewestRankedDraws * static_cast<double>(used)) {
    ranks.p_value = AndersonDarlingUniform(shares);
  }
  found->rhat = std::nan("");
  found->chains = static_cast<int32_t>(shares.size());
  found->ranks = std::move(ranks);
}

std::vector<Diagnostic> Diagnose(const Matrix& matrix, const std::vector<std::string>& quantities,
                                 const TraceTable::Relation& relation) {
  std::vector<Diagnostic> found;
  if (matrix.chains.empty() || matrix.values < kFewestDraws) return found;
  const bool predicts = std::ranges::any_of(quantities, IsOfPredictions);
  for (size_t q = 0; q < quantities.size(); ++q) {
    const std::vector<double>& values = matrix.of_quantity[q];
    if (std::all_of(values.begin(), values.end(), [&](double x) { return x == values.front(); })) continue;
    const Traces traces{values, static_cast<int64_t>(matrix.chains.size())};
    Diagnostic& diagnostic = found.emplace_back(Diagnostic{.point = matrix.point,
                                                           .quantity = quantities[q],
                                                           .chains = static_cast<int32_t>(matrix.chains.size()),
                                                           .values = matrix.values,
                                                           .mean = Mean(values),
                                                           .mcse_mean = McseMean(traces),
                                                           .seconds = matrix.seconds});
    if (relation.is_sbc) {
      JudgeRanks(traces, matrix.chains, &diagnostic);
      continue;
    }
    diagnostic.rhat = Rhat(traces);
    diagnostic.ess_bulk = EssBulk(traces);
    diagnostic.ess_tail = EssTail(traces);
    diagnostic.descriptive = predicts && !IsOfPredictions(quantities[q]);
    diagnostic.nested_rhat = NestedRhatOf(traces, matrix.chains, relation.superchains);
  }
  return found;
}

}  // namespace

struct TraceTable::State {
  State(Executor* executor, Renewed renewed, Relate relate)
      : executor(executor), renewed(std::move(renewed)), relate(std::move(relate)) {}

  // Returns nullopt if the stored relation already covers this chain. Calls the dispatcher, so not under the lock.
  std::optional<Relation> RelationFor(const ChainId& chain) {
    {
      MutexLock lock(&mutex);
      const auto job = jobs.find(chain.job);
      if (job != jobs.end() && chain.index < job->second.relation.chains) return std::nullopt;
    }
    return relate ? relate(chain.job) : Relation();
  }

  // Returns the chain's window, and adds the chain to its job. Null if there is no room for another chain.
  Window* Place(TracedJob* job, const ChainId& chain, const ChainTrace& trace)
      CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Drops a chain of the point that has the most, if it has at least two more than `than`. Otherwise returns false.
  bool TakeFromLargest(TracedJob* job, size_t than) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Drop(TracedJob* job, Windows* windows, Windows::iterator window) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Append(TracedJob* job, Window* window, const ChainTrace& trace, absl::Duration at)
      CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Forget(TracedJob* job, const ChainId& chain) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void MakeRoom() CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Returns nullopt for a forgotten job. Values up to now count as used.
  std::optional<Selection> SelectFrom(const std::string& id);
  void ComputeIfStale(const std::shared_ptr<State>& self, const std::string& id, TracedJob* job)
      CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  static void Compute(const std::shared_ptr<State>& state, const std::string& id);
  static void Keep(const std::shared_ptr<State>& state, const std::string& id,
                   std::shared_ptr<const std::vector<Diagnostic>> found);
  bool IsSettled(const std::string& id) const CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void TellSettled(const std::string& id);

  Executor* const executor;
  const Renewed renewed;
  const Relate relate;
  Mutex mutex;
  std::map<std::string, TracedJob> jobs CHAINFLEET_GUARDED_BY(mutex);
  std::map<std::string, int> expected CHAINFLEET_GUARDED_BY(mutex);  // number of commits, by job
  std::map<std::string, std::vector<std::function<void()>>> waiting CHAINFLEET_GUARDED_BY(mutex);
  int64_t num_values CHAINFLEET_GUARDED_BY(mutex) = 0;
  uint64_t calls CHAINFLEET_GUARDED_BY(mutex) = 0;
};

Window* TraceTable::State::Place(TracedJob* job, const ChainId& chain, const ChainTrace& trace) {
  if (job->quantities != trace.quantities) {
    const auto has = [&](const std::string& known) { return std::ranges::count(trace.quantities, known) > 0; };
    if (!std::ranges::all_of(job->quantities, has)) return nullptr;
    for (auto& [point, windows] : job->points) {
      while (!windows.empty()) Drop(job, &windows, windows.begin());
    }
    job->quantities = trace.quantities;
  }
  Windows& windows = job->points[trace.point];
  const auto found = windows.find(chain.index);
  if (found != windows.end()) return &found->second;
  const auto whole_window = kTraceWindow * static_cast<int64_t>(trace.quantities.size());
  int64_t chains = 0;
  for (const auto& [point, of_point] : job->points) chains += static_cast<int64_t>(of_point.size());
  const bool full = (chains + 1) * whole_window > kMostValues || (chains + 1) * kTraceWindow > kMostValuesOfQuantity;
  const auto most = static_cast<size_t>(job->relation.is_sbc ? kMostRankedChains : kMostTracedChains);
  if (windows.size() >= most || (full && !TakeFromLargest(job, windows.size()))) {
    job->without_room[trace.point].insert(chain.index);
    return nullptr;
  }
  job->without_room[trace.point].erase(chain.index);
  return &windows[chain.index];
}

bool TraceTable::State::TakeFromLargest(TracedJob* job, size_t than) {
  const auto largest = std::ranges::max_element(job->points, {}, [](const auto& of) { return of.second.size(); });
  auto& [point, windows] = *largest;
  if (windows.size() < than + 2) return false;  // otherwise the two points would take from each other in turn
  const int32_t last = windows.rbegin()->first;
  job->without_room[point].insert(last);
  Drop(job, &windows, windows.find(last));
  return true;
}

void TraceTable::State::Drop(TracedJob* job, Windows* windows, Windows::iterator window) {
  const auto size = static_cast<int64_t>(window->second.values.size());
  job->num_values -= size;
  num_values -= size;
  windows->erase(window);
  ++job->added;  // a change, so that diagnostics are computed again
}

void TraceTable::State::Append(TracedJob* job, Window* window, const ChainTrace& trace, absl::Duration at) {
  const size_t q = trace.quantities.size(), before = window->values.size();
  for (size_t i = 0; i < trace.steps.size(); ++i) {
    if (!window->steps.empty() && trace.steps[i] <= window->steps.back()) continue;
    window->steps.push_back(trace.steps[i]);
    const auto first = trace.values.begin() + static_cast<int64_t>(i * q);
    window->values.insert(window->values.end(), first, first + static_cast<int64_t>(q));
    job->added += static_cast<int64_t>(q);
  }
  if (window->steps.empty()) return;
  if (window->values.size() > before) window->commits.emplace_back(window->steps.back(), at);
  if (window->steps.size() > kTraceWindow) {
    window->steps.erase(window->steps.begin(), window->steps.end() - kTraceWindow);
    window->values.erase(window->values.begin(), window->values.end() - kTraceWindow * static_cast<int64_t>(q));
    auto& commits = window->commits;
    const auto within = std::ranges::lower_bound(commits, window->steps.front(), {}, &Commit::first);
    if (within - commits.begin() > 1) commits.erase(commits.begin(), within - 1);
  }
  const int64_t grown = static_cast<int64_t>(window->values.size()) - static_cast<int64_t>(before);
  job->num_values += grown;
  num_values += grown;
}

void TraceTable::State::Forget(TracedJob* job, const ChainId& chain) {
  for (auto& [point, windows] : job->points) {
    const auto found = windows.find(chain.index);
    if (found != windows.end()) Drop(job, &windows, found);
  }
}

void TraceTable::State::MakeRoom() {
  while (num_values > kMostValuesInAll || jobs.size() > kMostJobs) {
    const auto oldest = std::min_element(jobs.begin(), jobs.end(),
                                         [](const auto& a, const auto& b) { return a.second.fed < b.second.fed; });
    num_values -= oldest->second.num_values;
    jobs.erase(oldest);
  }
}

bool TraceTable::State::IsSettled(const std::string& id) const {
  const auto job = jobs.find(id);
  return !expected.contains(id) && (job == jobs.end() || !job->second.computing);
}

void TraceTable::State::TellSettled(const std::string& id) {
  std::vector<std::function<void()>> told;
  {
    MutexLock lock(&mutex);
    const auto found = waiting.find(id);
    if (found == waiting.end() || !IsSettled(id)) return;
    told = std::move(found->second);
    waiting.erase(found);
  }
  for (const auto& settled : told) settled();
}

void TraceTable::State::ComputeIfStale(const std::shared_ptr<State>& self, const std::string& id, TracedJob* job) {
  if (job->computing || !job->IsStale()) return;
  job->computing = true;
  executor->Schedule([self, id] { Compute(self, id); });
}

std::optional<Selection> TraceTable::State::SelectFrom(const std::string& id) {
  MutexLock lock(&mutex);
  const auto found = jobs.find(id);
  if (found == jobs.end()) return std::nullopt;
  TracedJob& job = found->second;
  Selection selection{
      .relation = job.relation, .quantities = job.quantities, .without_room = job.without_room, .matrices = {}};
  for (const auto& [point, windows] : job.points) {
    selection.matrices.push_back(Select(point, windows, job.quantities.size()));
  }
  job.added_before = job.added;
  job.ended = false;
  return selection;
}

void TraceTable::State::Compute(const std::shared_ptr<State>& state, const std::string& id) {
  std::optional<Selection> selection = state->SelectFrom(id);
  if (!selection) return state->TellSettled(id);  // forgotten meanwhile
  const auto found = std::make_shared<std::vector<Diagnostic>>();
  std::vector<PointDiagnosis> points;
  for (const Matrix& matrix : selection->matrices) {
    const std::set<int32_t>& others = selection->without_room[matrix.point];
    points.push_back({.point = matrix.point,
                      .looked_at = matrix.chains,
                      .without_room = {others.begin(), others.end()},
                      .values = matrix.values,
                      .diagnostics = Diagnose(matrix, selection->quantities, selection->relation)});
    found->insert(found->end(), points.back().diagnostics.begin(), points.back().diagnostics.end());
  }
  if (state->renewed && !points.empty()) state->renewed(id, points);  // while the job is not settled yet
  Keep(state, id, found);
  state->TellSettled(id);
}

void TraceTable::State::Keep(const std::shared_ptr<State>& state, const std::string& id,
                             std::shared_ptr<const std::vector<Diagnostic>> found) {
  MutexLock lock(&state->mutex);
  const auto job = state->jobs.find(id);
  if (job == state->jobs.end()) return;
  job->second.diagnostics = std::move(found);
  job->second.computing = job->second.IsStale();
  if (job->second.computing) state->executor->Schedule([state, id] { Compute(state, id); });
}

TraceTable::TraceTable(Executor* executor, Renewed renewed, Relate relate)
    : state_(std::make_shared<State>(executor, std::move(renewed), std::move(relate))) {}

TraceTable::~TraceTable() {
  // Destroy the waiting callbacks here: the state may outlive this table.
  std::map<std::string, std::vector<std::function<void()>>> dropped;
  MutexLock lock(&state_->mutex);
  dropped.swap(state_->waiting);
}

void TraceTable::Add(const ChainId& chain, const ChainTrace& trace, std::optional<ChainState> ends_as,
                     absl::Duration at) {
  State& state = *state_;
  const std::optional<Relation> relation = state.RelationFor(chain);
  MutexLock lock(&state.mutex);
  const bool failed = ends_as == ChainState::kDiverged || ends_as == ChainState::kFailed;
  const bool adds = !failed && !trace.steps.empty() && !trace.quantities.empty() && trace.well_formed();
  if (!adds && !state.jobs.contains(chain.job)) return;
  TracedJob& job = state.jobs[chain.job];
  if (relation && relation->chains >= job.relation.chains) job.relation = *relation;  // not one of before a scaling
  job.fed = ++state.calls;
  job.ended = job.ended || (ends_as && IsFinal(*ends_as));
  if (failed) {
    state.Forget(&job, chain);
  } else if (adds) {
    if (Window* window = state.Place(&job, chain, trace)) state.Append(&job, window, trace, at);
  }
  state.ComputeIfStale(state_, chain.job, &job);
  state.MakeRoom();
}

void TraceTable::Forget(const ChainId& chain) {
  State& state = *state_;
  MutexLock lock(&state.mutex);
  const auto job = state.jobs.find(chain.job);
  if (job == state.jobs.end()) return;
  job->second.ended = true;
  state.Forget(&job->second, chain);
  state.ComputeIfStale(state_, chain.job, &job->second);
}

std::shared_ptr<void> TraceTable::Expect(const std::string& job) {
  {
    MutexLock lock(&state_->mutex);
    ++state_->expected[job];
  }
  return std::shared_ptr<void>(nullptr, [state = state_, job](void*) {
    {
      MutexLock lock(&state->mutex);
      if (--state->expected[job] == 0) state->expected.erase(job);
    }
    state->TellSettled(job);
  });
}

void TraceTable::WhenSettled(const std::string& job, std::function<void()> settled) {
  {
    MutexLock lock(&state_->mutex);
    state_->waiting[job].push_back(std::move(settled));
  }
  state_->TellSettled(job);
}

std::vector<Diagnostic> TraceTable::Of(const std::string& job) const {
  MutexLock lock(&state_->mutex);
  const auto found = state_->jobs.find(job);
  return found == state_->jobs.end() ? std::vector<Diagnostic>() : *found->second.diagnostics;
}

std::vector<std::string> TraceTable::QuantitiesOf(const std::string& job) const {
  MutexLock lock(&state_->mutex);
  const auto found = state_->jobs.find(job);
  return found == state_->jobs.end() ? std::vector<std::string>() : found->second.quantities;
}

absl::StatusOr<std::vector<TracedChain>> TraceTable::TracesOf(const std::string& job,
                                                              const std::string& quantity) const {
  MutexLock lock(&state_->mutex);
  const auto found = state_->jobs.find(job);
  const TracedJob none, &traced = found == state_->jobs.end() ? none : found->second;
  const auto column = std::ranges::find(traced.quantities, quantity);
  if (column == traced.quantities.end()) {
    return WithReason(absl::NotFoundError(absl::StrCat(
                          "job ", job, " has no traces of \"", quantity, "\": ",
                          traced.quantities.empty()
                              ? "none have come yet"
                              : absl::StrCat("the traced quantities are ", absl::StrJoin(traced.quantities, ", ")))),
                      "NOT_TRACED");
  }
  const size_t q = traced.quantities.size(), offset = static_cast<size_t>(column - traced.quantities.begin());
  std::vector<TracedChain> chains;
  for (const auto& [point, windows] : traced.points) {
    for (const auto& [index, window] : windows) {
      TracedChain& chain = chains.emplace_back(TracedChain{index, point, window.steps, {}});
      chain.values.reserve(window.steps.size());
      for (size_t i = offset; i < window.values.size(); i += q) chain.values.push_back(window.values[i]);
    }
  }
  return chains;
}

std::vector<TracedChain> TraceTable::EveryTrace(const std::string& job) const {
  MutexLock lock(&state_->mutex);
  std::vector<TracedChain> chains;
  const auto found = state_->jobs.find(job);
  if (found == state_->jobs.end()) return chains;
  for (const auto& [point, windows] : found->second.points) {
    for (const auto& [index, window] : windows) chains.push_back({index, point, window.steps, window.values});
  }
  return chains;
}

}  // namespace chainfleet

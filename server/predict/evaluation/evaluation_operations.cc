#include "server/predict/evaluation/evaluation_operations.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/backoff.h"
#include "core/base/limits.h"
#include "core/base/log.h"

namespace chainfleet {
namespace {

using View = EvaluationOperations::View;

// Operations that run or wait.
constexpr size_t kPlaces = limits::kRunningEvaluations + limits::kWaitingEvaluations;

struct Watcher {
  std::function<bool(const EvaluationProgress&)> progress;
  std::function<void(absl::StatusOr<EvaluationRow>)> ended;
};

struct Operation {
  EvaluationRow row;
  Backoff backoff;
  bool running = false;                                       // or waiting for its next retry
  bool ending = false;                                        // its end is being stored
  std::optional<absl::Duration> waits_for_memory_since = {};  // monotonic
  absl::Duration deadline;
  EvaluationProgress progress = {};
  std::function<void()> cancel = [] {};
  std::vector<Watcher> watchers = {};

  // Sends the progress to the watchers, and forgets those whose callers have gone.
  void Tell() {
    std::erase_if(watchers, [this](const Watcher& watcher) { return !watcher.progress(progress); });
  }
};

using Operations = std::map<int64_t, Operation>;  // running and waiting operations, by sequence

// Returns the oldest waiting operation of the tenant with the fewest running ones, or null if none may run. Behind one
// that waits for memory, later ones of its tenant wait at once, and those of others when it has waited kMemoryPatience:
// smaller ones would take the memory forever.
Operation* NextToRun(Operations* operations, absl::Duration now) {
  int64_t running = 0;
  std::map<std::string, int64_t> of_tenant;
  for (const auto& [sequence, operation] : *operations) {
    running += operation.running;
    const bool waits = operation.waits_for_memory_since.has_value();
    if (waits && now - *operation.waits_for_memory_since > limits::kMemoryPatience) return nullptr;
    of_tenant[operation.row.tenant] += waits ? limits::kRunningEvaluations : operation.running;
  }
  if (running >= limits::kRunningEvaluations) return nullptr;
  Operation* next = nullptr;
  int64_t fewest = limits::kRunningEvaluations;
  for (auto& [sequence, operation] : *operations) {
    if (operation.running || of_tenant[operation.row.tenant] >= fewest) continue;
    fewest = of_tenant[operation.row.tenant];
    next = &operation;
  }
  return next;
}

bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status) || absl::IsAborted(status);
}

absl::Status QueueFull() {
  return BoundReached("waiting_evaluations",
                      absl::StrCat(limits::kRunningEvaluations, " evaluations run and ", limits::kWaitingEvaluations,
                                   " wait already: start this one again when one of them has ended, or cancel one"),
                      "QUEUE_FULL");
}

absl::Status TenantFull(const std::string& tenant, size_t own) {
  const std::string message = absl::StrCat(
      "tenant ", tenant, " has ", own, " evaluations that run or wait, and may have ", kPlaces / 2,
      ", and at most half of what others do not use: start this one again when one of them has ended, or cancel one");
  return WithRetryAfter(BoundReached("tenant_evaluations", message, "TENANT_LIMIT"), absl::Seconds(1));
}

absl::Status WatchersFull(const std::string& id) {
  return BoundReached("evaluation_watchers",
                      absl::StrCat(limits::kEvaluationWatchers, " callers watch evaluation ", id,
                                   " already: watch it when one of them has gone, or ask for its progress instead"),
                      "QUEUE_FULL");
}

}  // namespace

std::string MakeEvaluationId(RngKey key) {
  constexpr char kAlphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
  std::string id = "eval-";
  for (int i = 0; i < 10; ++i) id += kAlphabet[(key.value >> (5 * i)) & 31];
  return id;
}

// Everything except reads of the log runs on the strand.
struct EvaluationOperations::State : std::enable_shared_from_this<EvaluationOperations::State> {
  State(const Clock* clock, Executor* executor, Evaluator* evaluator, EvaluationLog* log, EvaluationCodec codec,
        RngKey id_key, absl::Duration longest)
      : clock(clock),
        executor(executor),
        evaluator(evaluator),
        log(log),
        codec(std::move(codec)),
        id_key(id_key),
        longest(longest),
        strand(executor) {}

  const Clock* const clock;
  Executor* const executor;
  Evaluator* const evaluator;
  EvaluationLog* const log;
  const EvaluationCodec codec;
  const RngKey id_key;
  const absl::Duration longest;
  Strand strand;
  Operations operations;
  std::multiset<std::string> creating;  // tenants of the operations that are being stored
  uint64_t ids_made = 0;

  Operation* Find(const std::string& id) {
    const auto found = std::ranges::find_if(operations, [&](const auto& entry) { return entry.second.row.id == id; });
    return found == operations.end() ? nullptr : &found->second;
  }

  absl::Status CheckPlaces(const Asked& asked) const {
    const auto is_own = [&](const auto& entry) { return entry.second.row.tenant == asked.tenant; };
    const size_t own = creating.count(asked.tenant) + std::ranges::count_if(operations, is_own);
    const size_t taken = operations.size() + creating.size();
    if (taken >= kPlaces) return QueueFull();
    return asked.shared && own >= std::min(kPlaces / 2, kPlaces - taken) ? TenantFull(asked.tenant, own)
                                                                         : absl::OkStatus();
  }

  // Stores only requests that were checked: `asked` was checked on `version`.
  void Create(const Asked& asked, int64_t version, std::function<void(absl::StatusOr<View>)> done) {
    if (const absl::Status room = CheckPlaces(asked); !room.ok()) return done(room);
    EvaluationRow row;
    row.id = MakeEvaluationId(Fold(id_key, ++ids_made));
    row.job = asked.job;
    row.tenant = asked.tenant;
    row.request_id = asked.request_id;
    row.request = asked.request(version);
    row.version = version;
    const auto place = creating.insert(row.tenant);
    log->Create(row, [self = shared_from_this(), place, request = asked.trace_id,
                      done](absl::StatusOr<EvaluationLog::Stored> stored) {
      self->strand.Schedule([self, place, request, done, stored = std::move(stored)] {
        self->creating.erase(place);
        if (!stored.ok()) return done(stored.status());
        Log(LogLevel::kInfo, "evaluation begun",
            {{"request", request}, {"evaluation", stored->row.id}, {"job", stored->row.job}});
        if (!stored->replayed) self->Admit({stored->row});
        done(self->ViewOf(stored->row));
      });
    });
  }

  // A running operation that is not in `operations` was just stored, and the strand has not admitted it yet.
  absl::StatusOr<EvaluationRow> FindEnded(const std::string& id, const std::string& tenant) const {
    CHAINFLEET_ASSIGN_OR_RETURN(EvaluationRow row, log->Find(id, tenant));
    if (row.state != EvaluationState::kRunning) return row;
    return absl::UnavailableError(absl::StrCat("evaluation ", id, " is about to begin: ask again"));
  }

  View ViewOf(const EvaluationRow& row) {
    const Operation* operation = Find(row.id);
    return {row, operation ? std::optional(operation->progress) : std::nullopt};
  }

  void Admit(const std::vector<EvaluationRow>& rows) {
    for (const EvaluationRow& row : rows) {
      operations.emplace(row.sequence, Operation{.row = row,
                                                 .backoff = Backoff(Fold(id_key, static_cast<uint64_t>(row.sequence))),
                                                 .deadline = absl::InfiniteDuration()});
    }
    Advance();
  }

  void Advance() {
    while (Operation* operation = NextToRun(&operations, clock->Monotonic())) {
      operation->running = true;
      operation->deadline = clock->Monotonic() + longest;
      strand.Schedule([self = shared_from_this(), id = operation->row.id] { self->Run(id); });
    }
  }

  void Run(const std::string& id) {
    Operation* operation = Find(id);
    if (operation == nullptr || operation->ending) return;
    absl::StatusOr<EvaluateQuery> query = codec.query(operation->row.request);
    if (!query.ok()) return OnRun(id, query.status());
    query->trace_id = id;
    const std::weak_ptr<State> weak = weak_from_this();
    operation->cancel = evaluator->Evaluate(
        *std::move(query), operation->deadline - clock->Monotonic(),
        [weak, id](const EvaluationProgress& progress) {
          const auto self = weak.lock();
          if (self) self->strand.Schedule([self, id, progress] { self->OnProgress(id, progress); });
        },
        [weak, id](absl::StatusOr<Evaluation> result) {
          const auto self = weak.lock();
          if (!self) return;
          self->strand.Schedule(
              [self, id, result = std::move(result)]() mutable { self->OnRun(id, std::move(result)); });
        });
  }

  void OnProgress(const std::string& id, const EvaluationProgress& progress) {
    Operation* operation = Find(id);
    if (operation == nullptr) return;
    operation->progress = progress;
    operation->Tell();
    if (std::exchange(operation->waits_for_memory_since, std::nullopt)) Advance();
  }

  void OnRun(const std::string& id, absl::StatusOr<Evaluation> result) {
    Operation* operation = Find(id);
    if (operation == nullptr || operation->ending) return;
    if (result.ok()) return End({id, EvaluationState::kSucceeded, codec.result(*result), absl::OkStatus()});
    const absl::Duration wait = operation->backoff.Next();
    if (!MayPass(result.status()) || clock->Monotonic() + wait >= operation->deadline) {
      return End({id, EvaluationState::kFailed, "", result.status()});
    }
    const auto waited = std::exchange(operation->waits_for_memory_since, std::nullopt);
    if (absl::IsResourceExhausted(result.status()))
      operation->waits_for_memory_since = waited.value_or(clock->Monotonic());
    strand.ScheduleAfter(wait, [weak = weak_from_this(), id] {
      if (const auto self = weak.lock()) self->Run(id);
    });
    if (waited) Advance();
  }

  // Retries until the log has stored the end, for example while the disk is full.
  void End(const change::EndEvaluation& end) {
    if (Operation* operation = Find(end.id)) operation->ending = true;
    log->End(end, [weak = weak_from_this(), end](absl::StatusOr<EvaluationLog::Stored> stored) {
      const auto self = weak.lock();
      if (!self) return;
      self->strand.Schedule([self, end, stored = std::move(stored)] {
        if (!absl::IsResourceExhausted(stored.status())) return self->Leave(end.id, stored);
        self->strand.ScheduleAfter(limits::kRetryMax, [weak = self->weak_from_this(), end] {
          if (const auto alive = weak.lock()) alive->End(end);
        });
      });
    });
  }

  // The log has stored the end, or the operation was deleted.
  void Leave(const std::string& id, const absl::StatusOr<EvaluationLog::Stored>& stored) {
    Operation* operation = Find(id);
    if (operation == nullptr) return;
    operation->cancel();
    const std::vector<Watcher> watchers = std::move(operation->watchers);
    operations.erase(operation->row.sequence);
    for (const Watcher& watcher : watchers) {
      if (stored.ok()) {
        watcher.ended(stored->row);
      } else {
        watcher.ended(stored.status());
      }
    }
    Advance();
  }
};

EvaluationOperations::EvaluationOperations(const Clock* clock, Executor* executor, Evaluator* evaluator,
                                           EvaluationLog* log, EvaluationCodec codec, RngKey id_key,
                                           absl::Duration longest)
    : state_(std::make_shared<State>(clock, executor, evaluator, log, std::move(codec), id_key, longest)) {}

absl::Status EvaluationOperations::Recover() {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<EvaluationRow> rows,
                              state_->log->List({.state = EvaluationState::kRunning, .limit = kPlaces}));
  state_->strand.Schedule([state = state_, rows] { state->Admit(rows); });
  return absl::OkStatus();
}

void EvaluationOperations::Start(Asked asked, absl::Duration timeout, std::function<void(absl::StatusOr<View>)> done) {
  state_->executor->Schedule([state = state_, asked = std::move(asked), timeout, done = std::move(done)] {
    if (!asked.request_id.empty()) {
      const auto older = state->log->List({.tenant = asked.tenant, .request_id = asked.request_id, .limit = 1});
      if (!older.ok()) return done(older.status());
      if (!older->empty()) return EvaluationOperations(state).Get(older->front().id, asked.tenant, done);
    }
    state->evaluator->Check(asked.query, timeout, [state, asked, done](const absl::StatusOr<int64_t>& version) {
      if (!version.ok()) return done(version.status());
      state->strand.Schedule([state, asked, version = *version, done] { state->Create(asked, version, done); });
    });
  });
}

void EvaluationOperations::Get(const std::string& id, const std::string& tenant,
                               std::function<void(absl::StatusOr<View>)> done) {
  state_->executor->Schedule([state = state_, id, tenant, done = std::move(done)] {
    const absl::StatusOr<EvaluationRow> row = state->log->Find(id, tenant);
    if (!row.ok()) return done(row.status());
    state->strand.Schedule([state, row = *row, done] { done(state->ViewOf(row)); });
  });
}

void EvaluationOperations::Cancel(const std::string& id, std::function<void(absl::StatusOr<View>)> done) {
  const auto taken = [state = state_, id, done](const absl::StatusOr<EvaluationLog::Stored>& stored) {
    state->strand.Schedule([state, id, stored, done] {
      if (!stored.ok()) return done(stored.status());
      state->Leave(id, stored);
      done(state->ViewOf(stored->row));
    });
  };
  state_->log->End({id, EvaluationState::kCancelled, "", absl::OkStatus()}, taken);
}

void EvaluationOperations::Watch(const EvaluationRow& row, std::function<bool(const EvaluationProgress&)> progress,
                                 std::function<void(absl::StatusOr<EvaluationRow>)> ended) {
  state_->strand.Schedule(
      [state = state_, id = row.id, tenant = row.tenant, progress = std::move(progress), ended = std::move(ended)] {
        Operation* operation = state->Find(id);
        if (operation == nullptr)
          return state->executor->Schedule([state, id, tenant, ended] { ended(state->FindEnded(id, tenant)); });
        if (operation->watchers.size() >= limits::kEvaluationWatchers) operation->Tell();
        if (operation->watchers.size() >= limits::kEvaluationWatchers) return ended(WatchersFull(id));
        if (progress(operation->progress)) operation->watchers.push_back({progress, ended});
      });
}

}  // namespace chainfleet

#include "server/predict/serving/batcher.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/byte_budget.h"
#include "core/base/log.h"
#include "core/domain/prediction_rows.h"
#include "server/predict/serving/draw_selection.h"
#include "server/predict/serving/version_lookup.h"

namespace chainfleet {
namespace {

constexpr int64_t kSharedBatchRows = 64;

using Done = std::function<void(absl::StatusOr<Prediction>)>;

// The properties that the requests of a batch share. Requests of more than max_rows form batches of their own.
using Kind = std::tuple<DrawQuery, std::vector<DrawKind>, bool, InputType, std::vector<int64_t>, bool>;

Kind KindOf(const PredictQuery& query, const InputTensor& inputs, int64_t max_rows) {
  const std::vector<int64_t> row_shape(inputs.shape.begin() + 1, inputs.shape.end());
  DrawQuery draws = query.draws;
  draws.pinned = nullptr;  // an alias and a number mean the same version, which is unique
  return {std::move(draws), query.kinds, query.with_errors, inputs.type, row_shape, inputs.shape.front() > max_rows};
}

// Includes requests that will be refused for their rows: in a shared batch, wrong byte counts would shift the rows of
// others.
bool GoesAlone(const PredictQuery& query, const InputTensor& inputs) {
  return query.min_draws > 0 || query.anytime || query.members || query.gradients || !query.quantiles.empty() ||
         !CheckRows(inputs).ok() || inputs.shape.front() < 1;
}

struct Batch;

struct Request {
  DrawQuery draws;
  std::string tenant, trace_id;
  int64_t rows;
  std::shared_ptr<const InputTensor> inputs;  // null once answered without a batch: their bytes count while held
  PredictPriority priority = PredictPriority::kNormal;
  absl::Duration arrived, deadline;  // monotonic
  Done done;                         // null once answered
  bool waiting = false;              // in its group
  std::weak_ptr<Batch> batch;        // while in flight
  absl::Duration launched = absl::InfiniteDuration();
  std::multimap<absl::Duration, std::shared_ptr<Request>>::iterator by_deadline;
};

struct Batch {
  std::vector<std::shared_ptr<Request>> requests;
  std::function<void()> cancel;
  PredictPriority priority = PredictPriority::kLow;  // that of the most urgent request
  absl::Duration sent;                               // monotonic
  ComputeTimes took;
};

// The waiting requests of one kind, and the number of its batches in flight.
struct Group {
  PredictQuery query;
  std::string tenant;                                                            // who owns the job
  std::array<std::deque<std::shared_ptr<Request>>, kPredictPriorities> waiting;  // by priority
  std::array<int, kPredictPriorities> in_flight = {};                            // by priority

  // Number of batches in flight that are at least as urgent as the most urgent waiting request; all if none waits.
  int NumAhead() const {
    int ahead = 0;
    for (size_t priority = 0; priority < waiting.size(); ++priority) {
      ahead += in_flight[priority];
      if (!waiting[priority].empty()) break;
    }
    return ahead;
  }

  struct Waiting {
    int64_t rows = 0;
    absl::Duration oldest = absl::InfiniteDuration();  // arrival
  };
  Waiting LookAtWaiting() const {
    Waiting found;
    for (const auto& urgent : waiting) {
      for (const auto& request : urgent) {
        found.rows += request->rows;
        found.oldest = std::min(found.oldest, request->arrived);
      }
    }
    return found;
  }
};

// The trace id of a batch: the first request's, with the number of others, each of which gets a log line.
std::string TraceOf(const std::vector<std::shared_ptr<Request>>& requests) {
  std::string trace = requests.front()->trace_id;
  if (requests.size() == 1) return trace;
  absl::StrAppend(&trace, "+", requests.size() - 1);
  if (!IsLogged(LogLevel::kDebug)) return trace;
  for (const auto& request : requests) {
    Log(LogLevel::kDebug, "predictions share a pass",
        {{"request", request->trace_id}, {"pass", trace}, {"job", request->draws.job}});
  }
  return trace;
}

std::shared_ptr<const InputTensor> Joined(const std::vector<std::shared_ptr<Request>>& requests) {
  if (requests.size() == 1) return requests.front()->inputs;
  const InputTensor& first = *requests.front()->inputs;
  auto joined = std::make_shared<InputTensor>(InputTensor{.type = first.type, .shape = first.shape, .bytes = {}});
  size_t size = 0;
  for (const auto& request : requests) size += request->inputs->bytes.size();
  joined->bytes.reserve(size);
  joined->shape.front() = 0;
  for (const auto& request : requests) {
    joined->shape.front() += request->rows;
    joined->bytes += request->inputs->bytes;
  }
  return joined;
}

}  // namespace

// Everything but Predict runs on the strand.
struct Batcher::State : std::enable_shared_from_this<Batcher::State> {
  State(const Clock* clock, Executor* executor, PredictRouter* router, InferenceStatistics* statistics,
        BatchLimits limits, PredictObserver* observer)
      : clock(clock),
        strand(executor),
        router(router),
        statistics(statistics),
        limits(limits),
        observer(ObserverOrNobody(observer)),
        input_bytes(limits.max_bytes),
        versions(router->catalog(), &strand),
        places(limits.max_waiting),
        rates(limits.tenant_rows_per_second) {}

  void Take(const Kind& kind, const PredictQuery& query, const std::shared_ptr<Request>& request) {
    request->by_deadline = by_deadline.emplace(request->deadline, request);
    if (Expired(request, clock->Monotonic())) return;
    if (absl::Status room = places.CheckRoom(request->tenant, "predictions", "waiting_predictions"); !room.ok()) {
      return Answer(request, std::move(room));
    }
    SetWaiting(request.get(), true);
    recent.Came(request->tenant, clock->Monotonic());
    WatchDeadlines();
    if (query.draws.version == 0 || query.draws.pinned != nullptr) return Join(kind, query, request);
    const auto join = [this, kind, query, request](const absl::StatusOr<std::shared_ptr<const Version>>& version) {
      if (!version.ok()) return Answer(request, version.status());
      PredictQuery pinned = query;
      pinned.draws.pinned = *version;
      Join(kind, pinned, request);
    };
    versions.Find(query.draws, shared_from_this(), join);
  }

  // Called when the request's draws are known, or are the newest.
  void Join(const Kind& kind, const PredictQuery& query, const std::shared_ptr<Request>& request) {
    if (request->done == nullptr) return;  // answered during the lookup
    Group& group = groups[kind];
    group.query = query;
    group.tenant = request->tenant;
    group.waiting[static_cast<size_t>(request->priority)].push_back(request);
    Advance(kind);
  }

  void SetWaiting(Request* request, bool waiting) {
    if (request->waiting == waiting) return;
    request->waiting = waiting;
    waiting ? places.Enter(request->tenant) : places.Leave(request->tenant);
  }

  // True if the request needs no more work. Answers a request whose deadline has passed, because its timer may not have
  // fired yet.
  bool Expired(const std::shared_ptr<Request>& request, absl::Duration now) {
    if (request->done != nullptr && request->deadline <= now) {
      Answer(request, absl::DeadlineExceededError("the deadline passed before the prediction was made"));
    }
    return request->done == nullptr;
  }

  // One timer for all requests: a request with a deadline of a minute leaves no timer behind if it is answered in a
  // millisecond.
  void WatchDeadlines() {
    if (by_deadline.empty() || by_deadline.begin()->first >= watching) return;
    watching = by_deadline.begin()->first;
    strand.ScheduleAfter(watching - clock->Monotonic(), [self = shared_from_this()] {
      self->watching = absl::InfiniteDuration();
      const absl::Duration now = self->clock->Monotonic();
      while (!self->by_deadline.empty() && self->by_deadline.begin()->first <= now) {
        const std::shared_ptr<Request> late = self->by_deadline.begin()->second;
        self->Expired(late, now);
      }
      self->WatchDeadlines();
    });
  }

  // Starts the batches of a kind that may start now.
  void Advance(const Kind& kind) {
    const auto found = groups.find(kind);
    if (found == groups.end()) return;
    Group& group = found->second;
    DropAnswered(&group);  // also while all its batches hang: answered requests hold no place
    // A batch that runs is not interrupted: while other tenants predict, too, they wait for a short one only.
    const bool is_shared = recent.OthersCame(group.tenant, clock->Monotonic());
    const int64_t most_rows = is_shared ? std::min(limits.max_rows, kSharedBatchRows) : limits.max_rows;
    while (group.NumAhead() < kFullBatchesInFlight) {
      const Group::Waiting waiting = group.LookAtWaiting();
      if (waiting.rows < most_rows) {
        if (waiting.oldest == absl::InfiniteDuration() || group.NumAhead() >= kBatchesInFlight) break;
        const absl::Duration wait = waiting.oldest + limits.max_delay - clock->Monotonic();
        if (wait > absl::ZeroDuration()) {
          strand.ScheduleAfter(wait, [self = shared_from_this(), kind] { self->Advance(kind); });
          return;
        }
      }
      Launch(kind, &group, Gather(&group, most_rows));
    }
    const bool idle = std::ranges::all_of(group.in_flight, [](int batches) { return batches == 0; });
    if (idle) groups.erase(found);  // no request waits then
  }

  void DropAnswered(Group* group) {
    const absl::Duration now = clock->Monotonic();
    for (auto& waiting : group->waiting) std::erase_if(waiting, [&](const auto& r) { return Expired(r, now); });
  }

  std::vector<std::shared_ptr<Request>> Gather(Group* group, int64_t most_rows) {
    std::vector<std::shared_ptr<Request>> requests;
    int64_t rows = 0;
    for (auto& waiting : group->waiting) {
      while (!waiting.empty() && (requests.empty() || rows + waiting.front()->rows <= most_rows)) {
        rows += waiting.front()->rows;
        SetWaiting(waiting.front().get(), false);
        requests.push_back(std::move(waiting.front()));
        waiting.pop_front();
      }
      if (!waiting.empty()) break;  // less urgent requests do not overtake
    }
    return requests;
  }

  void Launch(const Kind& kind, Group* group, std::vector<std::shared_ptr<Request>> requests) {
    const auto batch = std::make_shared<Batch>();
    batch->requests = std::move(requests);
    const absl::Duration now = clock->Monotonic();
    absl::Duration earliest = absl::InfiniteDuration();
    for (const auto& request : batch->requests) {
      earliest = std::min(earliest, request->deadline);
      batch->priority = std::min(batch->priority, request->priority);
      request->batch = batch;
      request->launched = std::min(request->launched, now);
    }
    ++group->in_flight[static_cast<size_t>(batch->priority)];
    PredictQuery query = group->query;
    query.priority = batch->priority;
    query.rows_are_checked = true;
    query.trace_id = TraceOf(batch->requests);
    query.hoped_within = earliest - now;
    const std::shared_ptr<const InputTensor> inputs = Joined(batch->requests);
    batch->sent = clock->Monotonic();
    batch->took.input = batch->sent - now;
    // No deadline: its requests have their own, and the last one that ends cancels the batch.
    batch->cancel = router->Predict(std::move(query), inputs, absl::InfiniteDuration(),
                                    [self = shared_from_this(), kind, batch](absl::StatusOr<Prediction> prediction) {
                                      self->strand.Schedule([self, kind, batch, prediction = std::move(prediction)] {
                                        self->End(kind, batch.get(), prediction);
                                      });
                                    });
  }

  void End(const Kind& kind, Batch* batch, const absl::StatusOr<Prediction>& prediction) {
    Group& group = groups[kind];
    --group.in_flight[static_cast<size_t>(batch->priority)];
    if (prediction.ok()) {
      HandOut(*prediction, batch);
    } else {  // an error of the whole batch: errors of single requests were found before
      for (const auto& request : batch->requests) Answer(request, prediction.status());
    }
    Advance(kind);
  }

  void HandOut(const Prediction& prediction, Batch* batch) {
    const absl::Duration answered = clock->Monotonic();
    batch->took.infer = answered - batch->sent;
    std::vector<Prediction> parts;
    int64_t row = 0;
    for (const auto& request : batch->requests) {
      parts.push_back(RowsOf(prediction, row, request->rows));
      row += request->rows;
    }
    batch->took.output = clock->Monotonic() - answered;
    statistics->CountBatch(prediction.job, prediction.version, clock->Wall(), row, batch->took);
    observer->OnBatch(static_cast<int64_t>(batch->requests.size()), row);
    for (size_t i = 0; i < parts.size(); ++i) Answer(batch->requests[i], std::move(parts[i]));
  }

  // No effect on an answered request. Cancels a batch when all its requests are answered.
  void Answer(const std::shared_ptr<Request>& request, absl::StatusOr<Prediction> answer) {
    const Done done = std::exchange(request->done, nullptr);
    if (done == nullptr) return;
    by_deadline.erase(request->by_deadline);
    SetWaiting(request.get(), false);
    const std::shared_ptr<Batch> batch = request->batch.lock();
    if (batch == nullptr) request->inputs = nullptr;
    Count(*request, answer, batch == nullptr ? ComputeTimes() : batch->took);
    done(std::move(answer));
    if (batch == nullptr) return;
    if (std::ranges::all_of(batch->requests, [](const auto& r) { return r->done == nullptr; })) batch->cancel();
  }

  void Count(const Request& request, const absl::StatusOr<Prediction>& answer, const ComputeTimes& compute) {
    const absl::Duration total = clock->Monotonic() - request.arrived;
    if (answer.ok()) {
      observer->OnRequest(total, request.launched - request.arrived);
      statistics->CountSuccess(answer->job, answer->version, clock->Wall(), request.rows,
                               {total, request.launched - request.arrived, compute});
    }
  }

  // Counts the bytes of `inputs` until they are destroyed; null if too many bytes are held already.
  std::shared_ptr<const InputTensor> Hold(std::shared_ptr<const InputTensor> inputs) {
    struct Held {
      ByteShare share;
      std::shared_ptr<const InputTensor> inputs;  // destroyed before its bytes are released
    };
    const std::shared_ptr<Held> held(new Held{ByteShare(input_bytes), std::move(inputs)});
    if (!held->share.Add(static_cast<int64_t>(held->inputs->bytes.size()))) return nullptr;
    return {held, held->inputs.get()};
  }

  // Runs a request that waits for no others and shares no pass.
  std::function<void()> PredictAlone(PredictQuery query, std::shared_ptr<const InputTensor> inputs,
                                     absl::Duration timeout, Done done) {
    const absl::Duration start = clock->Monotonic();
    return router->Predict(
        std::move(query), std::move(inputs), timeout,
        [self = shared_from_this(), start, done = std::move(done)](absl::StatusOr<Prediction> prediction) {
          const absl::Duration took = self->clock->Monotonic() - start;
          const absl::Time now = self->clock->Wall();
          if (prediction.ok()) {
            const Prediction& of = *prediction;
            const ComputeTimes compute{.input = {}, .infer = took, .output = {}};
            self->observer->OnBatch(1, of.num_rows);
            self->observer->OnRequest(took, absl::ZeroDuration());
            self->statistics->CountBatch(of.job, of.version, now, of.num_rows, compute);
            self->statistics->CountSuccess(of.job, of.version, now, of.num_rows, {took, absl::ZeroDuration(), compute});
          }
          done(std::move(prediction));
        });
  }

  const Clock* const clock;
  Strand strand;
  PredictRouter* const router;
  InferenceStatistics* const statistics;
  const BatchLimits limits;
  PredictObserver* const observer;
  std::map<Kind, Group> groups;
  const ByteBudget input_bytes;
  VersionLookup versions;
  TenantPlaces places;
  RecentTenants recent;
  RefusalTimes refusals;
  RowRates rates;
  std::multimap<absl::Duration, std::shared_ptr<Request>> by_deadline;  // all unanswered requests
  absl::Duration watching = absl::InfiniteDuration();                   // deadline of the current timer
};

Batcher::Batcher(const Clock* clock, Executor* executor, PredictRouter* router, InferenceStatistics* statistics,
                 BatchLimits limits, PredictObserver* observer)
    : state_(std::make_shared<State>(clock, executor, router, statistics, limits, observer)) {}

const BatchLimits& Batcher::limits() const { return state_->limits; }

std::function<void()> Batcher::Predict(PredictQuery query, std::shared_ptr<const InputTensor> inputs,
                                       absl::Duration timeout, PredictPriority priority, Done done) {
  const absl::Duration now = state_->clock->Monotonic();
  const int64_t rows = inputs->shape.empty() ? 0 : inputs->shape.front(), counted = std::max<int64_t>(rows, 0);
  absl::Status taken = state_->rates.Take(query.tenant, counted, now);
  done = [state = state_, tenant = query.tenant, counted, deadline = now + timeout,
          done = std::move(done)](absl::StatusOr<Prediction> answer) {
    if (!absl::IsResourceExhausted(answer.status())) return done(std::move(answer));
    if (ReasonOf(answer.status()) == "QUEUE_FULL") state->rates.GiveBack(tenant, counted);  // they are not predicted
    state->strand.Schedule([state, tenant, deadline, done, refused = answer.status()] {
      const absl::Duration wait = state->refusals.Wait(tenant, state->clock->Monotonic(), deadline);
      state->strand.ScheduleAfter(wait, [done, refused] { done(refused); });
    });
  };
  if (taken.ok() && (inputs = state_->Hold(std::move(inputs))) == nullptr) {
    taken = BoundReached("prediction_input_bytes",
                         absl::StrCat("the inputs of predictions under way would take over ", state_->limits.max_bytes,
                                      " bytes: retry with backoff"),
                         "QUEUE_FULL");
  }
  if (!taken.ok()) {
    state_->strand.Schedule([done = std::move(done), taken] { done(taken); });
    return [] {};
  }
  if (GoesAlone(query, *inputs)) {
    query.priority = priority;
    state_->strand.Schedule([state = state_, tenant = query.tenant, now] { state->recent.Came(tenant, now); });
    return state_->PredictAlone(std::move(query), std::move(inputs), timeout, std::move(done));
  }
  const Kind kind = KindOf(query, *inputs, state_->limits.max_rows);
  const auto request = std::make_shared<Request>(Request{query.draws,
                                                         query.tenant,
                                                         query.trace_id,
                                                         rows,
                                                         std::move(inputs),
                                                         priority,
                                                         now,
                                                         now + timeout,
                                                         std::move(done),
                                                         {}});
  state_->strand.Schedule(
      [state = state_, kind, query = std::move(query), request] { state->Take(kind, query, request); });
  return [weak = std::weak_ptr<Request>(request), state = state_] {
    state->strand.Schedule([weak, state] {
      const auto gone = weak.lock();
      if (gone != nullptr) state->Answer(gone, absl::CancelledError("the call was cancelled"));
    });
  };
}

}  // namespace chainfleet

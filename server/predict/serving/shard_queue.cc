#include "server/predict/serving/shard_queue.h"

#include <algorithm>
#include <atomic>
#include <compare>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/base/limits.h"
#include "core/base/log.h"
#include "core/base/tenant_turns.h"
#include "server/predict/serving/shard_result_check.h"
#include "server/predict/serving/tenant_places.h"
#include "server/predict/serving/worker_places.h"

namespace chainfleet {
namespace {

// The worker is away or full, or could not fetch its inputs: another worker may succeed, or the same one later.
bool IsLost(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status) || absl::IsAborted(status) || absl::IsNotFound(status);
}

// Do not show worker, object or device details to the caller. They are in the log.
absl::Status NoWorkerCould(const absl::Status& last) {
  if (!BoundOf(last).empty()) return last;  // a bound of this server, which speaks of no worker
  if (absl::IsResourceExhausted(last)) {
    if (ReasonOf(last) == "QUEUE_FULL") {
      const std::string message = "every worker that was asked is full: retry with backoff";
      return WithRetryAfter(BoundReached("worker_shards", message, "QUEUE_FULL"), absl::Seconds(1));
    }
    return WithReason(absl::ResourceExhaustedError("every worker that was asked is full or has too little memory for "
                                                   "this: ask for fewer rows, or retry with backoff"),
                      ReasonOf(last));
  }
  return WithReason(
      absl::UnavailableError("every worker that was asked is full, went away or could not read its draws: "
                             "retry with backoff (the server's log has what each said)"),
      absl::IsUnavailable(last) ? ReasonOf(last) : "");
}

// The order of waiting shards: predictions before evaluations, then by urgency, then in turn by tenant, then oldest
// first.
struct Place {
  bool evaluation = false;
  PredictPriority priority = PredictPriority::kHigh;
  uint64_t turn = 0;
  uint64_t ticket = 0;

  auto operator<=>(const Place&) const = default;
};

// The worker is at fault: its answer does not fit the request, or its device or program is broken.
bool IsFault(const absl::Status& status) { return !absl::IsInvalidArgument(status) && !IsLost(status); }

absl::Status OnlyFaults(const absl::Status& last) {
  const std::string reason = ReasonOf(last) == "BAD_SHARD_RESULT" ? "BAD_SHARD_RESULT" : "WORKER_FAILED";
  return WithReason(
      absl::InternalError("no worker gave an answer that can be used: the server's log names them and says "
                          "what is wrong with each"),
      reason);
}

}  // namespace

absl::Status NoServingWorker() {
  return WithReason(absl::UnavailableError("no worker serves predictions now: start one, or retry"),
                    "NO_SERVING_WORKER");
}

// Only the strand touches the state, except the ticket counter.
struct ShardQueue::State : std::enable_shared_from_this<ShardQueue::State> {
  State(const Clock* c, Executor* executor, ShardPort* p) : clock(c), strand(executor), port(p) {}

  struct Attempt {
    uint64_t id = 0;
    std::string worker;
    absl::Duration patience;                   // time after which the worker is slow
    absl::Duration sent = {}, look_next = {};  // monotonic
    bool late = false;
  };
  struct Shard {
    ShardRequest request;
    std::string preferred;
    absl::Duration deadline;  // monotonic
    PredictPriority priority;
    Done done;
    uint64_t turn = 0;
    std::set<std::string> lost_by = {};   // workers that lost it in this round; the next round begins when all have
    std::set<std::string> not_to = {};    // workers that were at fault, in any round
    absl::Status fault = {};              // the newest fault
    int attempts = 0;                     // without second attempts for a slow worker
    std::vector<Attempt> under_way = {};  // empty while it waits; two while a worker is slow with it

    bool evaluation() const { return request.rows.has_value(); }
    const std::string& tenant() const { return request.plan->tenant; }
    bool MayGoTo(const ServingWorker& worker) const { return worker.admission.Admits(tenant()); }
  };

  const Clock* const clock;
  Strand strand;
  ShardPort* const port;
  std::atomic<uint64_t> next_id = 1;  // for tickets and attempts
  std::map<uint64_t, Shard> shards;   // by ticket
  std::set<Place> waiting;
  TenantPlaces places{limits::kMaxWaitingShards};  // taken by predictions that wait
  TenantTurns turns;
  WorkerPlaces in_flight;                             // attempts
  std::map<std::string, int> late;                    // late attempts in flight, by worker
  std::map<std::string, absl::Duration> slow_until;   // monotonic; workers whose late attempts were cancelled
  std::map<std::string, absl::Duration> suspended;    // monotonic end of the suspension of workers that were at fault
  absl::Duration looking = absl::InfiniteDuration();  // when the timer checks for late attempts

  void Add(uint64_t ticket, Shard shard) {
    absl::Status room;
    if (!shard.evaluation()) room = places.CheckRoom(shard.tenant(), "shards of predictions", "waiting_shards");
    if (!room.ok()) return shard.done(room);
    shard.turn = turns.Take(shard.tenant()).begin;
    Wait(ticket, shards.emplace(ticket, std::move(shard)).first->second);
    Pump();
  }

  static Place PlaceOf(uint64_t ticket, const Shard& shard) {
    return {shard.evaluation(), shard.evaluation() ? PredictPriority::kHigh : shard.priority, shard.turn, ticket};
  }
  void Wait(uint64_t ticket, const Shard& shard) {
    waiting.insert(PlaceOf(ticket, shard));
    if (!shard.evaluation()) places.Enter(shard.tenant());
  }
  // Called for a shard that waits no longer.
  void Leave(const Shard& shard) {
    if (!shard.evaluation()) places.Leave(shard.tenant());
  }

  bool HasRoom(const Shard& shard, const ServingWorker& worker) const {
    return in_flight.HasRoom(worker, shard.request, !waiting.empty() && waiting.rbegin()->evaluation);
  }

  void Pump() {
    if (waiting.empty() && late.empty()) return;
    std::vector<ServingWorker> workers = port->Workers();
    const auto is_over = [now = clock->Monotonic()](const auto& until) { return until.second <= now; };
    std::erase_if(slow_until, is_over);
    std::erase_if(suspended, is_over);
    for (auto it = waiting.begin(); it != waiting.end();) {
      const uint64_t ticket = it->ticket;
      Shard& shard = shards.at(ticket);
      if (const absl::Status status = AnyMayAnswer(shard, workers); !status.ok()) {
        it = waiting.erase(it);
        Leave(shard);
        Finish(ticket, status);
        continue;
      }
      ServingWorker* const worker = Choose(&shard, &workers);
      if (worker == nullptr) {
        ++it;
        continue;
      }
      it = waiting.erase(it);
      Leave(shard);
      turns.Served(shard.turn);
      ++worker->shards_in_flight;
      ++shard.attempts;
      Send(ticket, &shard, worker->id);
    }
    if (waiting.empty()) turns.Forget();
    if (late.empty()) return;
    for (auto& [ticket, shard] : shards) {
      if (shard.under_way.size() == 1 && shard.under_way.front().late) SendBeside(ticket, &shard, &workers);
    }
  }

  static absl::Status AnyMayAnswer(const Shard& shard, const std::vector<ServingWorker>& workers) {
    const auto may = [&](const ServingWorker& worker) { return shard.MayGoTo(worker); };
    if (std::ranges::none_of(workers, may)) return NoServingWorker();
    const bool any =
        std::ranges::any_of(workers, [&](const auto& w) { return may(w) && !shard.not_to.contains(w.id); });
    return any ? absl::OkStatus() : OnlyFaults(shard.fault);
  }

  bool IsAvoided(const std::string& worker) const {
    return late.contains(worker) || slow_until.contains(worker) || suspended.contains(worker);
  }

  // Null while no permitted worker has room. Slow and suspended workers are used if there are no others.
  ServingWorker* Choose(Shard* shard, std::vector<ServingWorker>* workers) {
    const auto lost = [&](const ServingWorker& w) { return shard->lost_by.contains(w.id) || !shard->MayGoTo(w); };
    if (std::all_of(workers->begin(), workers->end(), lost)) shard->lost_by = shard->not_to;
    const auto passed_over = [&](const ServingWorker& w) { return lost(w) || IsAvoided(w.id); };
    const bool all_avoided = std::all_of(workers->begin(), workers->end(), passed_over);
    ServingWorker* best = nullptr;
    for (ServingWorker& worker : *workers) {
      if (lost(worker) || (IsAvoided(worker.id) && !all_avoided)) continue;
      if (!HasRoom(*shard, worker)) continue;
      if (worker.id == shard->preferred) return &worker;
      if (best == nullptr || worker.shards_in_flight < best->shards_in_flight) best = &worker;
    }
    return best;
  }

  void Send(uint64_t ticket, Shard* shard, const std::string& worker) {
    const uint64_t id = next_id++;
    shard->request.shard_id = id;
    shard->under_way.push_back({.id = id, .worker = worker, .sent = clock->Monotonic()});
    BeginPatience(*shard, &shard->under_way.back());
    in_flight.Take(worker, shard->request);
    LookAt(shard->under_way.back().look_next);
    port->Send(worker, shard->request,
               [weak = weak_from_this(), ticket, id](absl::StatusOr<ShardResult> result) mutable {
                 const auto state = weak.lock();
                 if (state == nullptr) return;
                 state->strand.Schedule([state, ticket, id, result = std::move(result)]() mutable {
                   state->OnReply(ticket, id, std::move(result));
                 });
               });
  }

  void BeginPatience(const Shard& shard, Attempt* attempt) const {
    const absl::Duration now = clock->Monotonic();
    attempt->patience = std::clamp((shard.deadline - now) / 3, kLeastSlowShard, kSlowShard);
    attempt->look_next = now + attempt->patience;
  }

  // `worker` has answered attempt `id` of `tenant`: restarts the timers of attempts queued behind it. Others' answers
  // restart that of a prediction for twice its length at most, because its worker may hang while it answers others.
  void RenewPatience(const std::string& worker, uint64_t id, const std::string& tenant) {
    const absl::Duration now = clock->Monotonic();
    for (auto& [ticket, shard] : shards) {
      for (Attempt& attempt : shard.under_way) {
        const bool overtaken = shard.tenant() != tenant && now - attempt.sent < 2 * attempt.patience;
        const bool stood_behind = attempt.worker == worker && (attempt.id > id || shard.evaluation() || overtaken);
        if (stood_behind && !attempt.late) BeginPatience(shard, &attempt);
      }
    }
  }

  // One timer for all shards: shards that are answered in time leave none behind.
  void LookAt(absl::Duration time) {
    if (time >= looking) return;
    looking = time;
    strand.ScheduleAfter(time - clock->Monotonic(), [weak = weak_from_this(), time] {
      const auto state = weak.lock();
      if (state == nullptr || state->looking != time) return;  // an earlier timer was set after this one
      state->looking = absl::InfiniteDuration();
      state->Look();
    });
  }

  // Looks at late shards again after the same time, because workers may have joined.
  void Look() {
    const absl::Duration now = clock->Monotonic();
    absl::Duration next = absl::InfiniteDuration();
    for (auto& [ticket, shard] : shards) {
      for (Attempt& attempt : shard.under_way) {
        if (attempt.look_next <= now) {
          if (!std::exchange(attempt.late, true)) ++late[attempt.worker];
          attempt.look_next = now + attempt.patience;
        }
        next = std::min(next, attempt.look_next);
      }
    }
    LookAt(next);
    Pump();
  }

  // Sends a second attempt to the least loaded worker with room that is not avoided, if any. The first answer wins.
  void SendBeside(uint64_t ticket, Shard* shard, std::vector<ServingWorker>* workers) {
    if (shard->not_to.size() >= limits::kShardAttempts) return;
    ServingWorker* best = nullptr;
    for (ServingWorker& worker : *workers) {
      if (!HasRoom(*shard, worker) || IsAvoided(worker.id) || !shard->MayGoTo(worker)) continue;
      if (shard->lost_by.contains(worker.id) || worker.id == shard->under_way.front().worker) continue;
      if (best == nullptr || worker.shards_in_flight < best->shards_in_flight) best = &worker;
    }
    if (best == nullptr) return;
    ++best->shards_in_flight;
    Send(ticket, shard, best->id);
  }

  // Removes an attempt that is over.
  void Forget(const Shard& shard, const Attempt& attempt) {
    in_flight.Leave(attempt.worker, shard.request);
    if (attempt.late && --late[attempt.worker] == 0) late.erase(attempt.worker);
  }

  void OnReply(uint64_t ticket, uint64_t id, absl::StatusOr<ShardResult> result) {
    const auto it = shards.find(ticket);
    if (it != shards.end()) TakeReply(ticket, &it->second, id, std::move(result));
    Pump();
  }

  void TakeReply(uint64_t ticket, Shard* shard, uint64_t id, absl::StatusOr<ShardResult> result) {
    const auto it = std::find_if(shard->under_way.begin(), shard->under_way.end(),
                                 [&](const Attempt& attempt) { return attempt.id == id; });
    if (it == shard->under_way.end()) return;
    const std::string worker = it->worker;
    Forget(*shard, *it);
    slow_until.erase(worker);
    shard->under_way.erase(it);
    RenewPatience(worker, id, shard->tenant());
    const absl::Status status = result.ok() ? CheckShardResult(shard->request, *result) : result.status();
    if (status.ok()) return Finish(ticket, std::move(result));
    if (absl::IsInvalidArgument(status)) {
      Tell(*shard, worker, status);
      return Finish(ticket, status);
    }
    const bool fault = IsFault(status);
    if (fault) Suspend(shard, worker, status);
    shard->lost_by.insert(worker);
    if (!shard->under_way.empty()) return;
    if (std::max(shard->attempts, static_cast<int>(shard->not_to.size())) < limits::kShardAttempts) {
      return Retry(ticket, shard);
    }
    if (!fault) Tell(*shard, worker, status);
    Finish(ticket, fault ? OnlyFaults(status) : NoWorkerCould(status));
  }

  // The worker never gets the shard again, and for a while no other shard that another worker can take.
  void Suspend(Shard* shard, const std::string& worker, const absl::Status& status) {
    Tell(*shard, worker, status);
    shard->not_to.insert(worker);
    shard->fault = status;
    suspended[worker] = clock->Monotonic() + kSuspendedFor;
  }

  // The caller gets the error, the operator's log also the worker.
  static void Tell(const Shard& shard, const std::string& worker, const absl::Status& status) {
    Log(LogLevel::kWarning, "prediction shard failed",
        {{"request", shard.request.trace_id},
         {"job", shard.request.plan->job},
         {"worker", worker},
         {"attempts", shard.attempts},
         {"error", status.ToString()}});
  }

  // Retries at once if another worker is there or none may have the shard; after a pause if all workers have lost it.
  void Retry(uint64_t ticket, Shard* shard) {
    const std::vector<ServingWorker> workers = port->Workers();
    const auto lost = [&](const auto& w) { return shard->lost_by.contains(w.id) || !shard->MayGoTo(w); };
    if (!std::ranges::all_of(workers, lost) || !AnyMayAnswer(*shard, workers).ok()) {
      Wait(ticket, *shard);
      return;
    }
    strand.ScheduleAfter(limits::kRetryInitial, [weak = weak_from_this(), ticket] {
      const auto state = weak.lock();
      if (state == nullptr) return;
      const auto it = state->shards.find(ticket);
      if (it == state->shards.end()) return;
      state->Wait(ticket, it->second);
      state->Pump();
    });
  }

  void Finish(uint64_t ticket, absl::StatusOr<ShardResult> result) {
    Shard shard = std::move(shards.extract(ticket).mapped());
    Drop(shard);
    shard.done(std::move(result));
  }

  void Cancel(uint64_t ticket) {
    const auto node = shards.extract(ticket);
    if (node.empty()) return;
    if (waiting.erase(PlaceOf(ticket, node.mapped())) > 0) Leave(node.mapped());
    Drop(node.mapped());
  }

  // Ends the attempts in flight of a shard that is no longer needed.
  void Drop(const Shard& shard) {
    for (const Attempt& attempt : shard.under_way) {
      if (attempt.late) slow_until[attempt.worker] = clock->Monotonic() + std::min(10 * attempt.patience, kSlowFor);
      Forget(shard, attempt);
      port->Cancel(attempt.worker, attempt.id);
    }
  }
};

ShardQueue::ShardQueue(const Clock* clock, Executor* executor, ShardPort* port)
    : state_(std::make_shared<State>(clock, executor, port)) {}

uint64_t ShardQueue::Submit(ShardRequest request, const std::string& preferred, absl::Duration deadline,
                            PredictPriority priority, Done done) {
  const uint64_t ticket = state_->next_id++;
  state_->strand.Schedule(
      [state = state_, ticket,
       shard = State::Shard{.request = std::move(request),
                            .preferred = preferred,
                            .deadline = deadline,
                            .priority = priority,
                            .done = std::move(done)}]() mutable { state->Add(ticket, std::move(shard)); });
  return ticket;
}

void ShardQueue::Cancel(uint64_t ticket) {
  state_->strand.Schedule([state = state_, ticket] { state->Cancel(ticket); });
}

std::vector<std::string> ShardQueue::WorkerIds(const std::string& tenant) const {
  std::vector<std::string> ids;
  for (const ServingWorker& worker : state_->port->Workers()) {
    if (worker.admission.Admits(tenant)) ids.push_back(worker.id);
  }
  return ids;
}

}  // namespace chainfleet

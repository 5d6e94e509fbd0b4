#include "server/predict/shard_queue.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "server/predict/shard_result_check.h"

namespace chainfleet {
namespace {

bool IsLost(const absl::Status& status) { return absl::IsUnavailable(status) || absl::IsResourceExhausted(status); }

constexpr int kLooksUntilLate = 2;

}  // namespace

absl::Status NoServingWorker() {
  return WithReason(absl::UnavailableError("no worker serves predictions now: start one, or retry"),
                    "NO_SERVING_WORKER");
}

// Everything but the ticket counter is touched on the strand alone.
struct ShardQueue::State : std::enable_shared_from_this<ShardQueue::State> {
  State(Executor* executor, ShardPort* p) : strand(executor), port(p) {}

  struct Attempt {
    uint64_t id = 0;
    std::string worker;
    int looks = 0;  // that found it under way
    bool late() const { return looks >= kLooksUntilLate; }
  };
  struct Shard {
    ShardRequest request;
    std::string preferred;
    Done done;
    std::set<std::string> lost_by;   // workers of this round; when all have lost it the next round begins
    int attempts = 0;                // but those beside a slow one
    std::vector<Attempt> under_way;  // none while it waits; two while a worker is slow with it
  };

  Strand strand;
  ShardPort* const port;
  std::atomic<uint64_t> next_id = 1;  // of tickets and of attempts
  std::map<uint64_t, Shard> shards;   // by ticket
  std::set<uint64_t> waiting;         // tickets, oldest first
  std::map<std::string, int> late;    // late attempts under way, by worker
  bool looking = false;

  void Add(uint64_t ticket, Shard shard) {
    if (waiting.size() >= limits::kMaxWaitingShards) {
      shard.done(WithReason(absl::ResourceExhaustedError(absl::StrCat(
                                waiting.size(), " shards of predictions wait for workers: retry with backoff")),
                            "QUEUE_FULL"));
      return;
    }
    shards.emplace(ticket, std::move(shard));
    waiting.insert(ticket);
    Pump();
    Watch();
  }

  void Pump() {
    if (waiting.empty()) return;
    std::vector<ServingWorker> workers = port->Workers();
    for (auto it = waiting.begin(); it != waiting.end();) {
      const uint64_t ticket = *it;
      Shard& shard = shards.at(ticket);
      if (workers.empty()) {
        it = waiting.erase(it);
        Finish(ticket, NoServingWorker());
        continue;
      }
      ServingWorker* const worker = Choose(&shard, &workers);
      if (worker == nullptr) {
        ++it;
        continue;
      }
      it = waiting.erase(it);
      ++worker->shards_in_flight;
      ++shard.attempts;
      Send(ticket, &shard, worker->id);
    }
  }

  // Null while no worker that may have it has room. Slow workers get it if there are no others.
  ServingWorker* Choose(Shard* shard, std::vector<ServingWorker>* workers) {
    const auto lost = [&](const ServingWorker& w) { return shard->lost_by.contains(w.id); };
    if (std::all_of(workers->begin(), workers->end(), lost)) shard->lost_by.clear();
    const auto passed_over = [&](const ServingWorker& w) { return lost(w) || late.contains(w.id); };
    const bool all_slow = std::all_of(workers->begin(), workers->end(), passed_over);
    ServingWorker* best = nullptr;
    for (ServingWorker& worker : *workers) {
      if (lost(worker) || (late.contains(worker.id) && !all_slow)) continue;
      if (worker.shards_in_flight >= limits::kMaxShardsInFlightPerWorker) continue;
      if (worker.id == shard->preferred) return &worker;
      if (best == nullptr || worker.shards_in_flight < best->shards_in_flight) best = &worker;
    }
    return best;
  }

  void Send(uint64_t ticket, Shard* shard, const std::string& worker) {
    const uint64_t id = next_id++;
    shard->request.shard_id = id;
    shard->under_way.push_back({id, worker});
    port->Send(worker, shard->request,
               [weak = weak_from_this(), ticket, id](absl::StatusOr<ShardResult> result) mutable {
                 const auto state = weak.lock();
                 if (state == nullptr) return;
                 state->strand.Schedule([state, ticket, id, result = std::move(result)]() mutable {
                   state->OnReply(ticket, id, std::move(result));
                 });
               });
  }

  // One timer for all shards, which runs while there are any.
  void Watch() {
    if (looking || shards.empty()) return;
    looking = true;
    strand.ScheduleAfter(kSlowShard / kLooksUntilLate, [weak = weak_from_this()] {
      const auto state = weak.lock();
      if (state == nullptr) return;
      state->looking = false;
      state->Look();
      state->Watch();
    });
  }

  void Look() {
    for (auto& [ticket, shard] : shards) {
      for (Attempt& attempt : shard.under_way) {
        if (++attempt.looks == kLooksUntilLate) ++late[attempt.worker];
      }
    }
    if (late.empty()) return;
    std::vector<ServingWorker> workers = port->Workers();
    for (auto& [ticket, shard] : shards) {
      if (shard.under_way.size() == 1 && shard.under_way.front().late()) SendBeside(ticket, &shard, &workers);
    }
    Pump();
  }

  // To a worker with nothing else to do, if there is one: the first answer wins.
  void SendBeside(uint64_t ticket, Shard* shard, std::vector<ServingWorker>* workers) {
    const auto free = std::find_if(workers->begin(), workers->end(), [&](const ServingWorker& w) {
      return w.shards_in_flight == 0 && !late.contains(w.id) && !shard->lost_by.contains(w.id) &&
             w.id != shard->under_way.front().worker;
    });
    if (free == workers->end()) return;
    ++free->shards_in_flight;
    Send(ticket, shard, free->id);
  }

  // Of an attempt that is over.
  void Forget(const Attempt& attempt) {
    if (attempt.late() && --late[attempt.worker] == 0) late.erase(attempt.worker);
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
    Forget(*it);
    shard->under_way.erase(it);
    if (result.ok()) {
      const absl::Status valid = CheckShardResult(shard->request, *result);
      Finish(ticket, valid.ok() ? std::move(result) : Annotate(valid, "worker " + worker));
    } else if (IsLost(result.status()) && (!shard->under_way.empty() || shard->attempts < limits::kShardAttempts)) {
      shard->lost_by.insert(worker);
      if (shard->under_way.empty()) Retry(ticket, shard);
    } else {
      Finish(ticket, Annotate(result.status(), "worker " + worker));
    }
  }

  // At once if another worker is there, after a pause if it must be one that has lost it before.
  void Retry(uint64_t ticket, Shard* shard) {
    const std::vector<ServingWorker> workers = port->Workers();
    if (workers.empty()) return Finish(ticket, NoServingWorker());
    if (std::any_of(workers.begin(), workers.end(), [&](const auto& w) { return !shard->lost_by.contains(w.id); })) {
      waiting.insert(ticket);
      return;
    }
    strand.ScheduleAfter(limits::kRetryInitial, [weak = weak_from_this(), ticket] {
      const auto state = weak.lock();
      if (state == nullptr || !state->shards.contains(ticket)) return;
      state->waiting.insert(ticket);
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
    waiting.erase(ticket);
    Drop(node.mapped());
  }

  // What is under way of it is not wanted any more.
  void Drop(const Shard& shard) {
    for (const Attempt& attempt : shard.under_way) {
      Forget(attempt);
      port->Cancel(attempt.worker, attempt.id);
    }
  }
};

ShardQueue::ShardQueue(Executor* executor, ShardPort* port) : state_(std::make_shared<State>(executor, port)) {}

uint64_t ShardQueue::Submit(ShardRequest request, const std::string& preferred, Done done) {
  const uint64_t ticket = state_->next_id++;
  state_->strand.Schedule([state = state_, ticket,
                           shard = State::Shard{std::move(request), preferred, std::move(done), {}, 0, {}}]() mutable {
    state->Add(ticket, std::move(shard));
  });
  return ticket;
}

void ShardQueue::Cancel(uint64_t ticket) {
  state_->strand.Schedule([state = state_, ticket] { state->Cancel(ticket); });
}

std::vector<std::string> ShardQueue::WorkerIds() const {
  std::vector<std::string> ids;
  for (const ServingWorker& worker : state_->port->Workers()) ids.push_back(worker.id);
  return ids;
}

}  // namespace chainfleet

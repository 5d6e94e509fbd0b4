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

absl::Status NoServingWorker() {
  return WithReason(absl::UnavailableError("no worker serves predictions now: start one, or retry"),
                    "NO_SERVING_WORKER");
}

}  // namespace

// Everything but the ticket counter is touched on the strand alone.
struct ShardQueue::State : std::enable_shared_from_this<ShardQueue::State> {
  State(Executor* executor, ShardPort* p) : strand(executor), port(p) {}

  struct Shard {
    ShardRequest request;
    std::string preferred;
    Done done;
    std::set<std::string> lost_by;  // workers of this round; when all have lost it the next round begins
    int attempts = 0;
    std::string worker;  // that has it now; empty while it waits
  };

  Strand strand;
  ShardPort* const port;
  std::atomic<uint64_t> next_id = 1;  // of tickets and of attempts
  std::map<uint64_t, Shard> shards;   // by ticket
  std::set<uint64_t> waiting;         // tickets, oldest first

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
      Send(ticket, &shard, worker->id);
    }
  }

  // Null while no worker that may have it has room.
  static ServingWorker* Choose(Shard* shard, std::vector<ServingWorker>* workers) {
    const auto lost = [&](const ServingWorker& w) { return shard->lost_by.contains(w.id); };
    if (std::all_of(workers->begin(), workers->end(), lost)) shard->lost_by.clear();
    ServingWorker* best = nullptr;
    for (ServingWorker& worker : *workers) {
      if (lost(worker) || worker.shards_in_flight >= limits::kMaxShardsInFlightPerWorker) continue;
      if (worker.id == shard->preferred) return &worker;
      if (best == nullptr || worker.shards_in_flight < best->shards_in_flight) best = &worker;
    }
    return best;
  }

  void Send(uint64_t ticket, Shard* shard, const std::string& worker) {
    shard->worker = worker;
    shard->request.shard_id = next_id++;
    ++shard->attempts;
    port->Send(worker, shard->request, [weak = weak_from_this(), ticket](absl::StatusOr<ShardResult> result) mutable {
      const auto state = weak.lock();
      if (state == nullptr) return;
      state->strand.Schedule(
          [state, ticket, result = std::move(result)]() mutable { state->OnReply(ticket, std::move(result)); });
    });
  }

  void OnReply(uint64_t ticket, absl::StatusOr<ShardResult> result) {
    if (const auto it = shards.find(ticket); it != shards.end()) {
      Shard& shard = it->second;
      if (result.ok()) {
        const absl::Status valid = CheckShardResult(shard.request, *result);
        Finish(ticket, valid.ok() ? std::move(result) : Annotate(valid, "worker " + shard.worker));
      } else if (IsLost(result.status()) && shard.attempts < limits::kShardAttempts) {
        Retry(ticket, &shard);
      } else {
        Finish(ticket, Annotate(result.status(), "worker " + shard.worker));
      }
    }
    Pump();
  }

  // At once if another worker is there, after a pause if it must be one that has lost it before.
  void Retry(uint64_t ticket, Shard* shard) {
    shard->lost_by.insert(std::exchange(shard->worker, ""));
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
    const Done done = std::move(shards.extract(ticket).mapped().done);
    done(std::move(result));
  }

  void Cancel(uint64_t ticket) {
    const auto node = shards.extract(ticket);
    if (node.empty()) return;
    waiting.erase(ticket);
    const Shard& shard = node.mapped();
    if (!shard.worker.empty()) port->Cancel(shard.worker, shard.request.shard_id);
  }
};

ShardQueue::ShardQueue(Executor* executor, ShardPort* port) : state_(std::make_shared<State>(executor, port)) {}

uint64_t ShardQueue::Submit(ShardRequest request, const std::string& preferred, Done done) {
  const uint64_t ticket = state_->next_id++;
  state_->strand.Schedule([state = state_, ticket,
                           shard = State::Shard{std::move(request), preferred, std::move(done), {}, 0, ""}]() mutable {
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

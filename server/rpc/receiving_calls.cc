#include "server/rpc/receiving_calls.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "server/rpc/call_limits.h"

namespace chainfleet {

uint64_t ReceivingCalls::Begin(const std::string& connection, absl::Duration now, Cancel cancel) {
  const int64_t received = received_(connection);
  const MutexLock lock(&mutex_);
  calls_[++last_id_] = {connection, now, received, std::move(cancel)};
  return last_id_;
}

absl::Status ReceivingCalls::End(uint64_t id) {
  const MutexLock lock(&mutex_);
  if (calls_.erase(id) != 0) return absl::OkStatus();
  return dropped_.extract(id).mapped();
}

size_t ReceivingCalls::Watch(absl::Duration now) {
  std::vector<Cancelled> cancelled;
  size_t left = 0;
  {
    const MutexLock lock(&mutex_);
    while (!calls_.empty() && now - calls_.begin()->second.began > limits::kReceiveDeadline) {
      cancelled.push_back(Drop(calls_.begin(), absl::DeadlineExceededError(
                                                   "the request did not arrive completely in time: send it faster")));
    }
    KeepToBudget(now, &cancelled);
    last_watched_ = last_id_;
    left = calls_.size();
  }
  for (const Cancelled& call : cancelled) call.cancel(call.why);
  return left;
}

void ReceivingCalls::KeepToBudget(absl::Duration now, std::vector<Cancelled>* cancelled) {
  struct Connection {
    int64_t received, calls, held;
  };
  struct Candidate {
    Calls::iterator call;
    int64_t freed;  // bytes freed if the older calls of its connection were dropped before
    double weight;  // byte-seconds: bytes of its connection since it began, times its age
  };
  std::map<std::string, Connection> connections;
  std::vector<Candidate> candidates;
  int64_t total = 0;
  for (auto next = std::make_reverse_iterator(calls_.upper_bound(last_watched_)); next != calls_.rend(); ++next) {
    const Call& call = next->second;
    const auto [found, is_new] = connections.try_emplace(call.connection);
    Connection& connection = found->second;
    if (is_new) connection = {received_(call.connection), 0, 0};
    const int64_t brought = std::max<int64_t>(0, connection.received - call.received);
    const int64_t held = brought + ++connection.calls * limits::kReceivingCallBytes;
    const int64_t freed = held - std::exchange(connection.held, held);
    candidates.push_back(
        {std::prev(next.base()), freed, static_cast<double>(held) * absl::ToDoubleSeconds(now - call.began)});
    total += freed;
  }
  if (total <= budget_) return;
  std::ranges::reverse(candidates);
  std::ranges::stable_sort(candidates, std::ranges::greater(), &Candidate::weight);
  for (const Candidate& candidate : candidates) {
    if (total <= budget_) return;
    total -= candidate.freed;
    cancelled->push_back(
        Drop(candidate.call, BoundReached("receiving_bytes",
                                          "the server receives too many requests at a time, and this connection "
                                          "holds the most of them: retry with backoff",
                                          "QUEUE_FULL")));
  }
}

ReceivingCalls::Cancelled ReceivingCalls::Drop(Calls::iterator call, absl::Status why) {
  dropped_[call->first] = why;
  Cancelled cancelled{std::move(call->second.cancel), std::move(why)};
  calls_.erase(call);
  return cancelled;
}

}  // namespace chainfleet

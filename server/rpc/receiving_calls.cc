#include "server/rpc/receiving_calls.h"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <utility>

namespace chainfleet {

uint64_t ReceivingCalls::Begin(const std::string& connection, absl::Duration now, Cancel cancel) {
  std::vector<Cancelled> cancelled;
  uint64_t id = 0;
  {
    const MutexLock lock(&mutex_);
    id = ++last_id_;
    calls_[id] = {connection, now, std::move(cancel)};
    if (calls_.size() > most_) Trim(id, most_ / 2, &cancelled);
  }
  for (const Cancelled& call : cancelled) call.cancel(call.why);
  return id;
}

absl::Status ReceivingCalls::End(uint64_t id) {
  const MutexLock lock(&mutex_);
  if (calls_.erase(id) != 0) return absl::OkStatus();
  return dropped_.extract(id).mapped();
}

size_t ReceivingCalls::Watch(absl::Duration oldest) {
  std::vector<Cancelled> cancelled;
  size_t left = 0;
  {
    const MutexLock lock(&mutex_);
    while (!calls_.empty() && calls_.begin()->second.began < oldest) {
      cancelled.push_back(
          Drop(calls_.begin(), absl::DeadlineExceededError("the request was not whole in time: send it faster")));
    }
    Trim(last_watched_, most_slow_, &cancelled);
    last_watched_ = last_id_;
    left = calls_.size();
  }
  for (const Cancelled& call : cancelled) call.cancel(call.why);
  return left;
}

void ReceivingCalls::Trim(uint64_t last, size_t most, std::vector<Cancelled>* cancelled) {
  struct Candidate {
    size_t newer;  // candidates of its connection
    Calls::iterator call;
  };
  std::vector<Candidate> candidates;
  std::map<std::string, size_t> of_connection;
  for (auto call = std::make_reverse_iterator(calls_.upper_bound(last)); call != calls_.rend(); ++call) {
    candidates.push_back({of_connection[call->second.connection]++, std::prev(call.base())});
  }
  if (candidates.size() <= most) return;
  std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
    return a.newer != b.newer ? a.newer < b.newer : a.call->first > b.call->first;
  });
  for (const Candidate& candidate : candidates | std::views::drop(most)) {
    cancelled->push_back(Drop(
        candidate.call,
        WithReason(absl::ResourceExhaustedError("the server receives too many requests at a time, and this connection "
                                                "sends the most: retry with backoff"),
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

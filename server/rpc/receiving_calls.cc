#include "server/rpc/receiving_calls.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace chainfleet {

uint64_t ReceivingCalls::Begin(const std::string& connection, absl::Duration now, Cancel cancel) {
  const absl::Status too_many = WithReason(
      absl::ResourceExhaustedError("the server receives too many requests at a time, and this connection sends the "
                                   "most: retry with backoff"),
      "QUEUE_FULL");
  uint64_t id = 0;
  Cancel cancel_other;
  {
    const MutexLock lock(&mutex_);
    id = ++last_id_;
    calls_[id] = {connection, now, std::move(cancel)};
    ++of_connection_[connection];
    if (calls_.size() > most_) {
      cancel_other = Drop(OldestOfTheBusiest(), too_many);
    }
  }
  if (cancel_other) cancel_other(too_many);
  return id;
}

absl::Status ReceivingCalls::End(uint64_t id) {
  const MutexLock lock(&mutex_);
  if (const auto call = calls_.find(id); call != calls_.end()) {
    Drop(call, absl::OkStatus());
  }
  return dropped_.extract(id).mapped();
}

size_t ReceivingCalls::CancelOlderThan(absl::Duration time) {
  const absl::Status late = absl::DeadlineExceededError("the request was not whole in time: send it faster");
  std::vector<Cancel> cancels;
  size_t left = 0;
  {
    const MutexLock lock(&mutex_);
    while (!calls_.empty() && calls_.begin()->second.began < time) {
      cancels.push_back(Drop(calls_.begin(), late));
    }
    left = calls_.size();
  }
  for (const Cancel& cancel : cancels) cancel(late);
  return left;
}

ReceivingCalls::Calls::iterator ReceivingCalls::OldestOfTheBusiest() {
  const auto busiest = std::ranges::max_element(of_connection_, {}, [](const auto& entry) { return entry.second; });
  return std::ranges::find_if(calls_, [&](const auto& call) { return call.second.connection == busiest->first; });
}

ReceivingCalls::Cancel ReceivingCalls::Drop(Calls::iterator call, const absl::Status& why) {
  const auto count = of_connection_.find(call->second.connection);
  if (--count->second == 0) of_connection_.erase(count);
  dropped_[call->first] = why;
  Cancel cancel = std::move(call->second.cancel);
  calls_.erase(call);
  return cancel;
}

}  // namespace chainfleet

#include "server/rpc/call_turns.h"

#include <utility>

namespace chainfleet {

void CallTurns::Take(const std::string& tenant, const void* call, std::function<void()> begin) {
  {
    MutexLock lock(&mutex_);
    Tenant& its = tenants_[tenant];
    if (its.turns == most_) return its.waiting.push_back({call, std::move(begin)});
    ++its.turns;
    turns_[call] = tenant;
  }
  begin();
}

// The next call begins on the executor, because the end of a call must not run another one within it.
void CallTurns::End(const void* call) {
  std::function<void()> begin;
  {
    MutexLock lock(&mutex_);
    const auto turn = turns_.find(call);
    if (turn == turns_.end()) return;
    const auto tenant = tenants_.find(turn->second);
    turns_.erase(turn);
    std::deque<Waiting>& waiting = tenant->second.waiting;
    if (waiting.empty()) {
      if (--tenant->second.turns == 0) tenants_.erase(tenant);
      return;
    }
    turns_[waiting.front().call] = tenant->first;
    begin = std::move(waiting.front().begin);
    waiting.pop_front();
  }
  executor_->Schedule(std::move(begin));
}

}  // namespace chainfleet

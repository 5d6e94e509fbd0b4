// Queues calls by tenant, so that a flood of one tenant's calls does not stand before those of another.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/base/executor.h"
#include "core/base/mutex.h"

namespace chainfleet {

// Thread-safe.
class CallTurns {
 public:
  // At most `most` calls of a tenant have a turn at a time. The executor outlives the object.
  CallTurns(Executor* executor, int most) : executor_(executor), most_(most) {}

  // Gives `call`, an address that no other call has, a turn until End(call). Runs `begin` at once if the tenant has a
  // turn left, else on the executor, first come, first served. Calls of other tenants are not waited for.
  void Take(const std::string& tenant, const void* call, std::function<void()> begin);

  // No effect on a call without a turn.
  void End(const void* call);

 private:
  struct Waiting {
    const void* call;
    std::function<void()> begin;
  };
  struct Tenant {
    int turns = 0;  // taken
    std::deque<Waiting> waiting;
  };

  Executor* const executor_;
  const int most_;
  Mutex mutex_;
  std::map<std::string, Tenant> tenants_ CHAINFLEET_GUARDED_BY(mutex_);     // those with a turn
  std::map<const void*, std::string> turns_ CHAINFLEET_GUARDED_BY(mutex_);  // the tenant of each call with a turn
};

}  // namespace chainfleet

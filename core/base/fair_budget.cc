#include "core/base/fair_budget.h"

namespace chainfleet {

int64_t FairBudget::held_bytes() const {
  const MutexLock lock(&pool_->mutex);
  return pool_->held;
}

int64_t FairBudget::held_bytes(const std::string& holder) const {
  const MutexLock lock(&pool_->mutex);
  const auto found = pool_->by_holder.find(holder);
  return found == pool_->by_holder.end() ? 0 : found->second;
}

bool FairBudget::Pool::Add(const std::string& holder, int64_t bytes) {
  const MutexLock lock(&mutex);
  const int64_t free = max_bytes - held;
  const auto found = by_holder.find(holder);
  const int64_t own = found == by_holder.end() ? 0 : found->second;
  if (bytes > (holder.empty() ? free : (free - own) / 2)) return false;
  held += bytes;
  by_holder[holder] += bytes;
  return true;
}

void FairBudget::Pool::Remove(const std::string& holder, int64_t bytes) {
  if (bytes == 0) return;
  const MutexLock lock(&mutex);
  held -= bytes;
  const auto found = by_holder.find(holder);
  if ((found->second -= bytes) == 0) by_holder.erase(found);
}

bool BudgetShare::Add(int64_t bytes) {
  if (bytes == 0) return true;
  if (pool_->Add(holder_, bytes)) {
    bytes_ += bytes;
    return true;
  }
  if (pool_->on_refused) pool_->on_refused();
  return false;
}

}  // namespace chainfleet

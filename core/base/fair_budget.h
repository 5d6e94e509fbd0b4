// A bound on the memory that several holders use together, and that a few of them cannot fill.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/base/mutex.h"

namespace chainfleet {

// A holder, such as a tenant, a connection or a host, holds no more than it leaves free: the first gets at most a half,
// the next a quarter, an eighth. Thread-safe. Copies share one budget, which lives as long as any copy or share of it.
class FairBudget {
 public:
  // `on_refused` may be null. It is called with each refusal, by any thread, as long as there are shares.
  explicit FairBudget(int64_t max_bytes, std::function<void()> on_refused = nullptr)
      : pool_(std::make_shared<Pool>(max_bytes, std::move(on_refused))) {}

  int64_t max_bytes() const { return pool_->max_bytes; }
  // The bytes that all shares hold together, and those of one holder.
  int64_t held_bytes() const;
  int64_t held_bytes(const std::string& holder) const;

 private:
  friend class BudgetShare;
  struct Pool {
    Pool(int64_t max, std::function<void()> f) : max_bytes(max), on_refused(std::move(f)) {}
    bool Add(const std::string& holder, int64_t bytes);
    void Remove(const std::string& holder, int64_t bytes);

    const int64_t max_bytes;
    const std::function<void()> on_refused;
    Mutex mutex;
    int64_t held CHAINFLEET_GUARDED_BY(mutex) = 0;
    std::map<std::string, int64_t> by_holder CHAINFLEET_GUARDED_BY(mutex);  // those that hold bytes
  };
  std::shared_ptr<Pool> pool_;
};

// Bytes of `holder`. The destructor gives them back, on any thread. Only one thread at a time may call Add.
class BudgetShare {
 public:
  // With an empty `holder` only the bound of all holders together counts.
  BudgetShare(const FairBudget& budget, std::string holder) : pool_(budget.pool_), holder_(std::move(holder)) {}
  ~BudgetShare() { pool_->Remove(holder_, bytes_); }
  BudgetShare(const BudgetShare&) = delete;
  BudgetShare& operator=(const BudgetShare&) = delete;

  const std::string& holder() const { return holder_; }
  // Returns false and adds nothing if there is no room, or if the holder would hold more than it leaves free.
  [[nodiscard]] bool Add(int64_t bytes);

 private:
  const std::shared_ptr<FairBudget::Pool> pool_;
  const std::string holder_;
  int64_t bytes_ = 0;
};

}  // namespace chainfleet

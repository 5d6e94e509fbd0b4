// A bound on the memory that several holders use together.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace chainfleet {

// Thread-safe. Copies share one budget, which lives as long as any copy or share of the budget.
class ByteBudget {
 public:
  explicit ByteBudget(int64_t max_bytes) : pool_(std::make_shared<Pool>(max_bytes)) {}

  int64_t max_bytes() const { return pool_->max_bytes; }
  // The bytes that all shares hold together.
  int64_t held_bytes() const { return pool_->held_bytes; }

 private:
  friend class ByteShare;
  struct Pool {
    explicit Pool(int64_t max) : max_bytes(max) {}
    const int64_t max_bytes;
    std::atomic<int64_t> held_bytes = 0;
  };
  std::shared_ptr<Pool> pool_;
};

// The bytes of one holder. The destructor gives them back, on any thread. Only one thread at a time may call Add.
class ByteShare {
 public:
  explicit ByteShare(const ByteBudget& budget) : pool_(budget.pool_) {}
  ~ByteShare() { pool_->held_bytes -= bytes_; }
  ByteShare(const ByteShare&) = delete;
  ByteShare& operator=(const ByteShare&) = delete;

  // Returns false and adds nothing if all shares together would exceed the budget.
  [[nodiscard]] bool Add(int64_t bytes);

 private:
  const std::shared_ptr<ByteBudget::Pool> pool_;
  int64_t bytes_ = 0;
};

}  // namespace chainfleet

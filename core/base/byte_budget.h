// Bytes of memory that several holders may have between them, and no more.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace chainfleet {

// Thread-safe. Copies are the same budget; it lives as long as one of them or of its shares.
class ByteBudget {
 public:
  explicit ByteBudget(int64_t max_bytes) : pool_(std::make_shared<Pool>(max_bytes)) {}

  int64_t max_bytes() const { return pool_->max_bytes; }
  // Of all shares.
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

// What one holder has of it, given back when this is destroyed, by any thread. Add by one thread at a time.
class ByteShare {
 public:
  explicit ByteShare(const ByteBudget& budget) : pool_(budget.pool_) {}
  ~ByteShare() { pool_->held_bytes -= bytes_; }
  ByteShare(const ByteShare&) = delete;
  ByteShare& operator=(const ByteShare&) = delete;

  // False if all shares would hold more than the budget then: nothing is added.
  [[nodiscard]] bool Add(int64_t bytes);

 private:
  const std::shared_ptr<ByteBudget::Pool> pool_;
  int64_t bytes_ = 0;
};

}  // namespace chainfleet

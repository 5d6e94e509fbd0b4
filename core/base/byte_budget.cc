#include "core/base/byte_budget.h"

namespace chainfleet {

bool ByteShare::Add(int64_t bytes) {
  // Never exceed the budget, not even for a moment: a refused Add must not make another Add fail.
  int64_t held = pool_->held_bytes;
  do {
    if (bytes > pool_->max_bytes - held) return false;
  } while (!pool_->held_bytes.compare_exchange_weak(held, held + bytes));
  bytes_ += bytes;
  return true;
}

}  // namespace chainfleet

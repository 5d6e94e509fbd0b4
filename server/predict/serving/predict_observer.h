// What predictions tell whoever keeps figures about them (metrics are a matter of other folders).
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace chainfleet {

// Of one averaging over the workers: until its draws were known, until all shards were back less what the sums took,
// and that.
struct AverageFigures {
  absl::Duration lookup, workers, reduce;
  int64_t draws = 0;  // averaged
};

// Called from many threads: thread-safe and quick, a few counters. This one listens to nothing.
class PredictObserver {
 public:
  virtual ~PredictObserver() = default;

  // A request was answered so long after it came; for so long it had waited for its batch.
  virtual void OnRequest(absl::Duration /*total*/, absl::Duration /*queue*/) {}
  // So many requests had so many rows in one pass over the draws.
  virtual void OnBatch(int64_t /*requests*/, int64_t /*rows*/) {}
  virtual void OnAverage(const AverageFigures&) {}
};

// For those who are given none.
inline PredictObserver* ObserverOrNobody(PredictObserver* observer) {
  static PredictObserver nobody;
  return observer != nullptr ? observer : &nobody;
}

}  // namespace chainfleet

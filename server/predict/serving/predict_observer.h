// The events that predictions report, for example to metrics, which live in other folders.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace chainfleet {

// Durations of one average over the workers. lookup: until its draws were known. workers: until all shards were back,
// without `reduce`. reduce: adding the sums.
struct AverageFigures {
  absl::Duration lookup, workers, reduce;
  int64_t draws = 0;  // averaged
};

// Called from many threads. Implementations must be thread-safe and fast. This base class ignores every event.
class PredictObserver {
 public:
  virtual ~PredictObserver() = default;

  // A request was answered `total` after its arrival; it waited for its batch for `queue`.
  virtual void OnRequest(absl::Duration /*total*/, absl::Duration /*queue*/) {}
  // One pass over the draws served `requests` requests with `rows` rows.
  virtual void OnBatch(int64_t /*requests*/, int64_t /*rows*/) {}
  virtual void OnAverage(const AverageFigures&) {}
};

// Replaces a null observer.
inline PredictObserver* ObserverOrNobody(PredictObserver* observer) {
  static PredictObserver nobody;
  return observer != nullptr ? observer : &nobody;
}

}  // namespace chainfleet

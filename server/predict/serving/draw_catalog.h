// Where predictions learn which draws to average: a version pins them. Implemented over the Dispatcher and the
// StateStore.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/prediction.h"
#include "core/domain/snapshot.h"

namespace chainfleet {

struct DrawQuery {
  std::string job;      // id, name or "@latest"
  int64_t version = 0;  // 0: newest
  int64_t members = 0;  // newest so many draws of each chain; 0: all
  bool include_failed = false;
  std::string point;            // of a sweep, as FindPoint takes it
  int64_t every = 0;            // of those every so many-th, counted back from the newest; 0 and 1: each
  int64_t max_draws = 0;        // of those at most so many, as SelectDraws shares them out; 0: all
  std::vector<int32_t> chains;  // their indices; empty: all of the job, or point
  // The version itself where it is known, because an alias named it or FindVersion found it: it is served even if it is
  // deleted before the draws are looked up.
  std::shared_ptr<const Snapshot> pinned = nullptr;

  auto operator<=>(const DrawQuery&) const = default;
};

struct PinnedDraws {
  std::shared_ptr<const PredictPlan> plan;
  int64_t version = 0;
  std::string point;                      // its name; empty without a sweep
  int64_t draws_in_version = 0;           // of the point; steps, each with all its kinds
  std::vector<ChainDraws> chains;         // in chain order, those selected; corrupt and deleted segments left out
  std::vector<DrawKind> kinds;            // all the job keeps
  InputType learned = InputType::kUint8;  // of the data set that the job learns from, which sets the scale of inputs
};

// Thread-safe.
class DrawCatalog {
 public:
  virtual ~DrawCatalog() = default;

  // NOT_FOUND; FAILED_PRECONDITION / NO_DRAWS; INVALID_ARGUMENT for a chain that is not there; of a sweep
  // INVALID_ARGUMENT / POINT_REQUIRED, NO_SUCH_POINT. `done` runs once, on the executor.
  virtual void Pin(const DrawQuery& query, std::function<void(absl::StatusOr<PinnedDraws>)> done) = 0;

  // The version that a number names now, for DrawQuery::pinned. NOT_FOUND; FAILED_PRECONDITION / NOT_SERVED. `done`
  // runs once, on the executor.
  virtual void FindVersion(const std::string& job, int64_t number,
                           std::function<void(absl::StatusOr<std::shared_ptr<const Snapshot>>)> done) = 0;

  // NOT_FOUND.
  virtual absl::StatusOr<Dataset> GetDataset(const std::string& name) = 0;

  // Remembers that an object's bytes did not match their digest: its draws are excluded from now on.
  virtual void MarkCorrupt(const std::string& job, const std::string& object) = 0;
};

}  // namespace chainfleet

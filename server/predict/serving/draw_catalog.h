// Tells predictions which draws to average: a version pins the draws. Implemented over the Dispatcher and the
// StateStore.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/fields.h"
#include "core/domain/prediction.h"
#include "core/domain/version.h"
#include "server/predict/sums/chain_shares.h"

namespace chainfleet {

struct DrawQuery {
  std::string job;      // id, name or "@latest"
  int64_t version = 0;  // 0: newest
  int64_t members = 0;  // newest draws of each chain; 0: all
  bool include_failed = false;
  std::string point;            // sweep point, in a form that FindPoint accepts
  int64_t every = 0;            // stride over these draws, counted back from the newest; 0 and 1: each draw
  int64_t max_draws = 0;        // most draws in all, shared out by SelectDraws; 0: all
  std::vector<int32_t> chains;  // chain indices; empty: all chains of the job, or of the point
  ChainShares shares = {};      // weights of these chains in the average
  // Set if an alias named the version or FindVersion found it. Such a version is served even if it is deleted before
  // the draws are looked up.
  std::shared_ptr<const Version> pinned = nullptr;

  // The fields of v1.DrawSelection but kinds, weights and pseudo_bma.
  static void Fields(auto& self, auto&& visit) {
    visit("version", self.version, AtLeast(0));
    visit("members", self.members, AtLeast(0));
    visit("include_failed", self.include_failed);
    visit("point", self.point);
    visit("every", self.every, AtLeast(0));
    visit("max_draws", self.max_draws, AtLeast(0));
    visit("chains", self.chains);
  }
  auto operator<=>(const DrawQuery&) const = default;
};

struct PinnedDraws {
  std::shared_ptr<const PredictPlan> plan;
  int64_t version = 0;
  std::string point;                      // name of the sweep point; empty without a sweep
  int64_t draws_in_version = 0;           // steps of the point, each with all its kinds
  std::vector<ChainDraws> chains;         // selected draws in chain order, without corrupt and deleted segments
  std::vector<DrawKind> kinds;            // all kinds that the job keeps
  InputType learned = InputType::kUint8;  // type of the training inputs, which sets the scale of inputs
};

// Thread-safe.
class DrawCatalog {
 public:
  virtual ~DrawCatalog() = default;

  // Errors: NOT_FOUND; FAILED_PRECONDITION / NO_DRAWS; INVALID_ARGUMENT for a missing chain; for a sweep
  // INVALID_ARGUMENT / POINT_REQUIRED, NO_SUCH_POINT. `done` runs once, on the executor.
  virtual void Pin(const DrawQuery& query, std::function<void(absl::StatusOr<PinnedDraws>)> done) = 0;

  // Finds the version of a number now, for DrawQuery::pinned. NOT_FOUND; FAILED_PRECONDITION / NOT_SERVED. `done` runs
  // once, on the executor.
  virtual void FindVersion(const std::string& job, int64_t number,
                           std::function<void(absl::StatusOr<std::shared_ptr<const Version>>)> done) = 0;

  // Errors: NOT_FOUND.
  virtual absl::StatusOr<Dataset> GetDataset(const std::string& job, const std::string& name) = 0;

  // Records that an object's bytes did not match their digest. Its draws are excluded from now on.
  virtual void MarkCorrupt(const std::string& job, const std::string& object) = 0;
};

}  // namespace chainfleet

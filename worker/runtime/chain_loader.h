// Gets a granted chain ready to step: its data set in memory, its resume point at hand.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/base/executor.h"
#include "worker/numerics/dataset/resident_dataset.h"
#include "worker/runtime/held_chains.h"
#include "worker/runtime/loading_cache.h"
#include "worker/runtime/object_fetcher.h"

namespace chainfleet {

struct LoadedChain {
  LeasedChain chain;
  std::shared_ptr<const ResidentDataset> dataset;  // null for analytic potentials
  std::optional<std::string> resume_point;         // none: starts at step 0
};

// Data sets decoded once per process, by digest; shared by chains and prediction shards. Thread-safe.
class DatasetCache {
 public:
  DatasetCache(ObjectFetcher* fetcher, Executor* executor, int64_t capacity_bytes = limits::kDatasetCacheBytes)
      : fetcher_(fetcher), executor_(executor), cache_(capacity_bytes, executor) {}

  // Errors of ObjectFetcher; DATA_LOSS if the shards are not what the description says.
  void Get(const Dataset& dataset, Done<std::shared_ptr<const ResidentDataset>> done);

 private:
  struct Assembly;

  void FetchNext(const std::shared_ptr<Assembly>& assembly);

  ObjectFetcher* const fetcher_;
  Executor* const executor_;
  LoadingCache<ResidentDataset> cache_;
};

// Thread-safe.
class ChainLoader {
 public:
  ChainLoader(ObjectFetcher* fetcher, DatasetCache* datasets, Executor* executor)
      : fetcher_(fetcher), datasets_(datasets), executor_(executor) {}

  // Errors of ObjectFetcher; DATA_LOSS if an inline resume point does not match its digest.
  void Load(const LeasedChain& chain, Done<LoadedChain> done);

 private:
  void LoadResumePoint(const std::shared_ptr<LoadedChain>& loaded, const Done<LoadedChain>& done);

  ObjectFetcher* const fetcher_;
  DatasetCache* const datasets_;
  Executor* const executor_;
};

}  // namespace chainfleet

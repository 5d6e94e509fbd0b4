// Prepares a granted chain for stepping: loads its data set, its module and its resume point into memory.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/base/executor.h"
#include "core/base/loading_cache.h"
#include "worker/numerics/dataset/resident_dataset.h"
#include "worker/runtime/object_fetcher.h"
#include "worker/runtime/session/held_chains.h"

namespace chainfleet {

struct ModelFile;
class ModuleProcesses;

// The data that the chains of a job read, in addition to the plan.
struct JobInputs {
  std::shared_ptr<const ResidentDataset> dataset;  // null for analytic potentials
  std::shared_ptr<const ModelFile> module;         // null unless the network is a stored one
};

struct LoadedChain {
  LeasedChain chain;
  JobInputs inputs;
  std::optional<std::string> resume_point;  // nullopt: starts at step 0
  // Bytes of its file of init.weights, for a start at step 0 or if it HoldsDraws; else null.
  std::shared_ptr<const std::string> weights;
};

// True if the chain's file of init.weights has its draws, which it needs at each step.
bool HoldsDraws(const Grant& grant);

// Checks TorchScript files before any other use. The check may block, so `executor` is a separate one.
struct ModuleUse {
  Executor* executor;
  std::function<absl::Status(const std::shared_ptr<const std::string>& bytes)> check;
  std::shared_ptr<ModuleProcesses> processes = nullptr;  // which run the modules; null: this process does
};

// Caches decoded data sets, stored networks and files of weights for the process, by digest. Chains and prediction
// shards share them. Thread-safe.
class InputCache {
 public:
  InputCache(ObjectFetcher* fetcher, Executor* executor, ModuleUse modules,
             int64_t dataset_bytes = limits::kDatasetCacheBytes)
      : fetcher_(fetcher),
        executor_(executor),
        modules_(std::move(modules)),
        datasets_(dataset_bytes, executor),
        models_(limits::kMaxModelBytes, executor),
        weights_(limits::kModelCacheBytes, executor) {}

  // Errors of ObjectFetcher. DATA_LOSS: the shards do not match the description.
  void GetDataset(const Dataset& dataset, Done<std::shared_ptr<const ResidentDataset>> done);
  // Errors of ObjectFetcher, of the check and of ReadModelFile.
  void GetModel(const BlobRef& file, Done<std::shared_ptr<const ModelFile>> done);
  // The bytes of a file of weights. Errors of ObjectFetcher.
  void GetWeights(const BlobRef& file, Done<std::shared_ptr<const std::string>> done);

 private:
  struct Assembly;

  void FetchNext(const std::shared_ptr<Assembly>& assembly);
  absl::StatusOr<std::shared_ptr<const ModelFile>> ReadModel(const BlobRef& file,
                                                             std::shared_ptr<const std::string> bytes) const;

  ObjectFetcher* const fetcher_;
  Executor* const executor_;
  const ModuleUse modules_;
  LoadingCache<ResidentDataset> datasets_;
  LoadingCache<ModelFile> models_;
  LoadingCache<std::string> weights_;
};

// Thread-safe.
class ChainLoader {
 public:
  ChainLoader(ObjectFetcher* fetcher, InputCache* inputs, Executor* executor)
      : fetcher_(fetcher), inputs_(inputs), executor_(executor) {}

  // Errors of ObjectFetcher. DATA_LOSS: the resume point is missing, of another step than the chain, or damaged.
  void Load(const LeasedChain& chain, Done<LoadedChain> done);

 private:
  void LoadModule(const std::shared_ptr<LoadedChain>& loaded, const Done<LoadedChain>& done);
  void LoadStart(const std::shared_ptr<LoadedChain>& loaded, const Done<LoadedChain>& done);
  void LoadResumePoint(const std::shared_ptr<LoadedChain>& loaded, const Done<LoadedChain>& done);
  void LoadWeights(const std::shared_ptr<LoadedChain>& loaded, const Done<LoadedChain>& done);

  ObjectFetcher* const fetcher_;
  InputCache* const inputs_;
  Executor* const executor_;
};

}  // namespace chainfleet

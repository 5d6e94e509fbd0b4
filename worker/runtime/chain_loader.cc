#include "worker/runtime/chain_loader.h"

#include <utility>
#include <vector>

#include "core/store/draw_codec/sha256.h"

namespace chainfleet {

// The shards of one data set that is being fetched. One after the other, because they share one channel anyway.
struct InputCache::Assembly {
  Dataset dataset;
  std::vector<std::string> shards;
  Done<LoadingCache<ResidentDataset>::Loaded> done;
};

void InputCache::GetDataset(const Dataset& dataset, Done<std::shared_ptr<const ResidentDataset>> done) {
  const auto load = [this, &dataset](Done<LoadingCache<ResidentDataset>::Loaded> loaded) {
    FetchNext(std::make_shared<Assembly>(Assembly{dataset, {}, std::move(loaded)}));
  };
  datasets_.Get(dataset.digest, load, std::move(done));
}

void InputCache::GetFile(const BlobRef& file, bool is_module, Done<std::shared_ptr<const std::string>> done) {
  const auto load = [this, &file, is_module](Done<LoadingCache<std::string>::Loaded> loaded) {
    fetcher_->Fetch(
        file, /*on_disk=*/true,
        [this, is_module, loaded = std::move(loaded)](const absl::StatusOr<std::shared_ptr<const std::string>>& bytes) {
          if (!bytes.ok()) return loaded(bytes.status());
          const LoadingCache<std::string>::Loaded whole{*bytes, static_cast<int64_t>((*bytes)->size())};
          if (!is_module) return loaded(whole);
          module_check_.executor->Schedule([this, loaded, whole] {
            const absl::Status checked = module_check_.run(*whole.value);
            checked.ok() ? loaded(whole) : loaded(checked);
          });
        });
  };
  files_.Get(file.sha256, load, std::move(done));
}

void InputCache::FetchNext(const std::shared_ptr<Assembly>& assembly) {
  if (assembly->shards.size() == assembly->dataset.shards.size()) {
    executor_->Schedule([assembly] {
      auto resident = ResidentDataset::Create(assembly->dataset, assembly->shards);
      if (!resident.ok()) return assembly->done(resident.status());
      const int64_t target_bytes = assembly->dataset.num_rows * static_cast<int64_t>(sizeof(int32_t));  // or float
      const int64_t bytes = static_cast<int64_t>((*resident)->input_bytes().size()) + target_bytes;
      assembly->done(LoadingCache<ResidentDataset>::Loaded{*std::move(resident), bytes});
    });
    return;
  }
  const BlobRef& object = assembly->dataset.shards[assembly->shards.size()].object;
  fetcher_->Fetch(object, /*on_disk=*/true,
                  [this, assembly](const absl::StatusOr<std::shared_ptr<const std::string>>& bytes) {
                    if (!bytes.ok()) return assembly->done(bytes.status());
                    assembly->shards.push_back(**bytes);
                    FetchNext(assembly);
                  });
}

void ChainLoader::Load(const LeasedChain& chain, Done<LoadedChain> done) {
  auto loaded = std::make_shared<LoadedChain>();
  loaded->chain = chain;
  const auto& dataset = chain.grant.plan->dataset;
  if (!dataset) {
    executor_->Schedule([this, loaded, done = std::move(done)] { LoadModule(loaded, done); });
    return;
  }
  inputs_->GetDataset(*dataset, [this, loaded, done = std::move(done)](
                                    const absl::StatusOr<std::shared_ptr<const ResidentDataset>>& resident) {
    if (!resident.ok()) return done(Annotate(resident.status(), "data set " + loaded->chain.grant.plan->spec.dataset));
    loaded->inputs.dataset = *resident;
    LoadModule(loaded, done);
  });
}

void ChainLoader::LoadModule(const std::shared_ptr<LoadedChain>& loaded, const Done<LoadedChain>& done) {
  const auto& module = loaded->chain.grant.plan->module;
  if (!module) return LoadStart(loaded, done);
  inputs_->GetFile(module->object, /*is_module=*/true,
                   [this, loaded, done](const absl::StatusOr<std::shared_ptr<const std::string>>& bytes) {
                     if (!bytes.ok()) {
                       return done(Annotate(bytes.status(), "model " + loaded->chain.grant.plan->module->name));
                     }
                     loaded->inputs.module = *bytes;
                     LoadStart(loaded, done);
                   });
}

void ChainLoader::LoadStart(const std::shared_ptr<LoadedChain>& loaded, const Done<LoadedChain>& done) {
  const auto& resume_point = loaded->chain.grant.progress.resume_point;
  if (!resume_point) return LoadWeights(loaded, done);
  if (!resume_point->object) {
    if (Sha256Hex(resume_point->inline_bytes) != resume_point->sha256) {
      return done(absl::DataLossError("the resume point of " + ToString(loaded->chain.grant.chain) + " at step " +
                                      std::to_string(resume_point->step) + " does not match its digest"));
    }
    loaded->resume_point = resume_point->inline_bytes;
    return done(std::move(*loaded));
  }
  fetcher_->Fetch(*resume_point->object, /*on_disk=*/false,
                  [loaded, done](const absl::StatusOr<std::shared_ptr<const std::string>>& bytes) {
                    if (!bytes.ok()) return done(Annotate(bytes.status(), "resume point"));
                    loaded->resume_point = **bytes;
                    done(std::move(*loaded));
                  });
}

void ChainLoader::LoadWeights(const std::shared_ptr<LoadedChain>& loaded, const Done<LoadedChain>& done) {
  const Grant& grant = loaded->chain.grant;
  if (grant.plan->weights.empty()) return done(std::move(*loaded));
  const StoredModel& file = grant.plan->weights[grant.chain.index % grant.plan->weights.size()];
  inputs_->GetFile(file.object, /*is_module=*/false,
                   [loaded, done, name = file.name](const absl::StatusOr<std::shared_ptr<const std::string>>& bytes) {
                     if (!bytes.ok()) return done(Annotate(bytes.status(), "model " + name));
                     loaded->weights = *bytes;
                     done(std::move(*loaded));
                   });
}

}  // namespace chainfleet

#include "worker/runtime/chain_loader.h"

#include <malloc.h>

#include <utility>
#include <vector>

#include "core/domain/posthoc_rules.h"
#include "core/store/draw_codec/sha256.h"
#include "core/store/draw_codec/weights_file.h"
#include "worker/numerics/models/model_file.h"
#include "worker/numerics/tensors/torch_errors.h"

namespace chainfleet {

bool HoldsDraws(const Grant& grant) {
  const std::vector<StoredModel>& files = grant.plan->weights;
  if (files.empty() || AveragesSnapshots(grant.plan->spec.sampler)) return false;
  const auto& signature = files[static_cast<size_t>(grant.chain.index) % files.size()].signature;
  return signature && NumDrawsIn(signature->parameters).value_or(0) > 0;
}

namespace {

absl::Status CheckStart(const Grant& grant) {
  const std::optional<ResumePoint>& point = grant.progress.resume_point;
  const DigestHex digest = !point ? "" : point->object ? point->object->sha256 : Sha256Hex(point->inline_bytes);
  return Annotate(CheckResumePoint(grant.progress.step, point, digest), "chain " + ToString(grant.chain));
}

}  // namespace

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

void InputCache::GetModel(const BlobRef& file, Done<std::shared_ptr<const ModelFile>> done) {
  const auto load = [this, &file](Done<LoadingCache<ModelFile>::Loaded> loaded) {
    fetcher_->Fetch(
        file, /*on_disk=*/true, [this, file, loaded](const absl::StatusOr<std::shared_ptr<const std::string>>& bytes) {
          if (!bytes.ok()) return loaded(bytes.status());
          modules_.executor->Schedule([this, file, loaded, bytes = *bytes]() mutable {
            const auto model = CatchTorch("a network's file", [&] { return ReadModel(file, std::move(bytes)); });
            if (!model.ok()) return loaded(model.status());
            loaded(LoadingCache<ModelFile>::Loaded{*model, (*model)->size_bytes()});
          });
        });
  };
  models_.Get(file.sha256, load, std::move(done));
}

// A .pt2 file is read from disk if it is there, so that memory never holds both the file and its tensors.
absl::StatusOr<std::shared_ptr<const ModelFile>> InputCache::ReadModel(const BlobRef& file,
                                                                       std::shared_ptr<const std::string> bytes) const {
  if (!IsExportedProgram(*bytes)) {
    CHAINFLEET_RETURN_IF_ERROR(modules_.check(bytes));
    return std::make_shared<const ModelFile>(ModelFile{ScriptFile{std::move(bytes), modules_.processes}});
  }
  const std::string path = fetcher_->PathOnDisk(file);
  if (path.empty()) return ReadModelFile(std::move(bytes));
  bytes.reset();
  malloc_trim(0);  // parts of a large file leave fragments of about a tenth of it
  return ReadExportedModel(ByteSource::InFile(path, file.size_bytes));
}

void InputCache::GetWeights(const BlobRef& file, Done<std::shared_ptr<const std::string>> done) {
  const auto load = [this, &file](Done<LoadingCache<std::string>::Loaded> loaded) {
    fetcher_->Fetch(file, /*on_disk=*/true, [loaded](const absl::StatusOr<std::shared_ptr<const std::string>>& bytes) {
      if (!bytes.ok()) return loaded(bytes.status());
      loaded(LoadingCache<std::string>::Loaded{*bytes, static_cast<int64_t>((*bytes)->size())});
    });
  };
  weights_.Get(file.sha256, load, std::move(done));
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
  inputs_->GetModel(module->object, [this, loaded, done](const absl::StatusOr<std::shared_ptr<const ModelFile>>& file) {
    if (!file.ok()) return done(Annotate(file.status(), "model " + loaded->chain.grant.plan->module->name));
    loaded->inputs.module = *file;
    LoadStart(loaded, done);
  });
}

void ChainLoader::LoadStart(const std::shared_ptr<LoadedChain>& loaded, const Done<LoadedChain>& done) {
  const Grant& grant = loaded->chain.grant;
  if (const absl::Status start = CheckStart(grant); !start.ok()) return done(start);
  if (grant.progress.resume_point && !HoldsDraws(grant)) return LoadResumePoint(loaded, done);
  LoadWeights(loaded, done);
}

void ChainLoader::LoadResumePoint(const std::shared_ptr<LoadedChain>& loaded, const Done<LoadedChain>& done) {
  const auto& resume_point = loaded->chain.grant.progress.resume_point;
  if (!resume_point) return done(std::move(*loaded));
  if (!resume_point->object) {
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
  if (grant.plan->weights.empty()) return LoadResumePoint(loaded, done);
  const StoredModel& file = grant.plan->weights[grant.chain.index % grant.plan->weights.size()];
  inputs_->GetWeights(file.object, [this, loaded, done,
                                    name = file.name](const absl::StatusOr<std::shared_ptr<const std::string>>& bytes) {
    if (!bytes.ok()) return done(Annotate(bytes.status(), "model " + name));
    loaded->weights = *bytes;
    LoadResumePoint(loaded, done);
  });
}

}  // namespace chainfleet

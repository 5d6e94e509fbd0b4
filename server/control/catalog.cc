#include "server/control/catalog.h"

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/base/saturating.h"
#include "core/domain/no_such.h"
#include "core/domain/wire_bytes.h"
#include "server/control/page_token.h"

namespace chainfleet {
namespace {

struct Kind {
  const char* name;
  const char* plural;  // also the kind of the page tokens
};
constexpr Kind KindOf(const Dataset*) { return {"dataset", "datasets"}; }
constexpr Kind KindOf(const StoredModel*) { return {"model", "models"}; }

int64_t MessageBytes(const Dataset& dataset) { return WireBytes(dataset); }
int64_t MessageBytes(const StoredModel& model) { return WireBytes(model); }
int64_t ObjectBytes(const Dataset& dataset) { return StoredBytes(dataset); }
int64_t ObjectBytes(const StoredModel& model) { return model.object.size_bytes; }

// Returns the key of a job file that takes the name of such a file.
std::string WordOf(const StoredModel& file) {
  if (file.is_weights()) return "weights";
  return EnumName(file.signature ? ModelFormat::kExported : ModelFormat::kTorchScript);
}

absl::Status OtherKind(const StoredModel& file, const std::string& path) {
  const std::string kind = file.is_weights() ? "safetensors file: name it in `init.weights`"
                           : file.signature  ? ".pt2 file: name it as `model.exported`"
                                             : "TorchScript file: name it as `model.torchscript`";
  return InvalidFields({{path, absl::StrCat("model ", file.name, " is a ", kind)}});
}

bool TakesIndices(const JobPlan& plan) {
  if (plan.spec.model.has_layers()) return TakesIndices(LayersOf(plan.spec.model));
  const auto takes_indices = [](const TensorSignature& input) { return input.type.starts_with("int"); };
  return plan.module && plan.module->signature && std::ranges::any_of(plan.module->signature->inputs, takes_indices);
}

// Leaves inputs as they are in the data set, without the x / 255 scale of images.
Normalisation AsStored(InputType type) {
  return type == InputType::kUint8 ? Normalisation{{0}, {1.0 / 255}} : Normalisation();
}

}  // namespace

template <typename Item>
absl::StatusOr<Item> Shelf<Item>::Get(const std::string& name) const {
  MutexLock lock(&mutex_);
  if (const auto found = items_.find(name); found != items_.end()) return found->second;
  return NoSuch(KindOf(static_cast<const Item*>(nullptr)).name, name);
}

template <typename Item>
absl::StatusOr<Page<Item>> Shelf<Item>::List(int32_t page_size, const std::string& page_token) const {
  const std::string arguments = KindOf(static_cast<const Item*>(nullptr)).plural;
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string after, CursorOf(arguments, page_token));
  Page<Item> page;
  PageRoom room(static_cast<size_t>(ClampPageSize(page_size)));
  MutexLock lock(&mutex_);
  for (auto i = items_.upper_bound(after); i != items_.end(); ++i) {
    if (!room.Take(MessageBytes(i->second))) {
      page.next_page_token = MakePageToken(arguments, page.items.back().name);
      break;
    }
    page.items.push_back(i->second);
  }
  return page;
}

template <typename Item>
int64_t Shelf<Item>::StoredBytes(const std::string& tenant) const {
  MutexLock lock(&mutex_);
  int64_t bytes = 0;
  for (const auto& [name, item] : items_) {
    if (item.tenant == tenant) bytes = SaturatingAdd(bytes, ObjectBytes(item));
  }
  return bytes;
}

template <typename Item>
void Shelf<Item>::Put(const Item& item) {
  MutexLock lock(&mutex_);
  items_[item.name] = item;
}

template <typename Item>
void Shelf<Item>::Erase(const std::string& name) {
  MutexLock lock(&mutex_);
  items_.erase(name);
}

template class Shelf<Dataset>;
template class Shelf<StoredModel>;

Catalog::Catalog(StateWriter* writer, const StateStore& store, const StoredState& state, RngKey nonces)
    : writer_(writer), generation_(store.generation()), nonces_(nonces) {
  for (const Dataset& dataset : state.datasets) shelves_->datasets.Put(dataset);
  for (const StoredModel& model : state.models) shelves_->models.Put(model);
}

absl::Status Catalog::FindData(JobPlan* plan) const {
  if (const std::string& name = plan->spec.dataset; !name.empty()) {
    const absl::StatusOr<Dataset> dataset = datasets().Get(name);
    if (!dataset.ok()) return Annotate(dataset.status(), "dataset.name");
    plan->dataset = *dataset;
    if (plan->spec.standardize.inputs) plan->normalisation = dataset->normalisation;
    if (plan->spec.standardize.targets) plan->target_units = dataset->target_units;
  }
  if (const auto* stored = std::get_if<StoredNetworkModel>(&plan->spec.model.kind)) {
    const absl::StatusOr<StoredModel> module = models().Get(stored->name);
    if (!module.ok()) return Annotate(module.status(), PathOf(*stored));
    if (WordOf(*module) != EnumName(stored->format)) return OtherKind(*module, PathOf(*stored));
    plan->module = *module;
  }
  if (plan->dataset && TakesIndices(*plan)) plan->normalisation = AsStored(plan->dataset->input_type);
  plan->weights.clear();
  for (const std::string& name : plan->spec.init.weights) {
    const absl::StatusOr<StoredModel> file = models().Get(name);
    if (!file.ok()) return Annotate(file.status(), "init.weights");
    if (!file->is_weights()) return OtherKind(*file, "init.weights");
    plan->weights.push_back(*file);
  }
  return absl::OkStatus();
}

int64_t Catalog::StoredBytes(const std::string& tenant) const {
  return SaturatingAdd(datasets().StoredBytes(tenant), models().StoredBytes(tenant));
}

uint64_t Catalog::ObjectNonce() { return Fold(nonces_, ++nonces_made_).value; }

void Catalog::BeginUpload(std::vector<std::string> objects, const Reply<std::string>& done) {
  Begin(std::move(objects), false, done);
}

void Catalog::BeginRepair(std::vector<std::string> objects, const Reply<std::string>& done) {
  Begin(std::move(objects), true, done);
}

void Catalog::Begin(std::vector<std::string> objects, bool repairs, const Reply<std::string>& done) {
  const std::string upload = absl::StrCat(generation_, "-", ++uploads_begun_);
  writer_->Write<std::string>(change::BeginUpload{upload, std::move(objects), repairs}, done,
                              [upload](const ApplyResult&) { return upload; });
}

void Catalog::EndUpload(const std::string& upload) { writer_->Persist(change::EndUpload{upload}); }

void Catalog::Put(const Dataset& dataset, const std::string& upload, const Reply<Dataset>& done) {
  writer_->Write<Dataset>(change::PutDataset{dataset, upload}, done, [shelves = shelves_](const ApplyResult& result) {
    shelves->datasets.Put(*result.dataset);
    return *result.dataset;
  });
}

void Catalog::Put(const StoredModel& model, const std::string& upload, const Reply<StoredModel>& done) {
  writer_->Write<StoredModel>(change::PutModel{model, upload}, done, [shelves = shelves_](const ApplyResult& result) {
    shelves->models.Put(*result.model);
    return *result.model;
  });
}

void Catalog::DeleteDataset(const std::string& name, const Reply<bool>& done,
                            const std::optional<std::string>& tenant) {
  writer_->Write<bool>(change::DeleteDataset{name, tenant}, done, [shelves = shelves_, name](const ApplyResult&) {
    shelves->datasets.Erase(name);
    return true;
  });
}

void Catalog::DeleteModel(const std::string& name, const Reply<bool>& done, const std::optional<std::string>& tenant) {
  writer_->Write<bool>(change::DeleteModel{name, tenant}, done, [shelves = shelves_, name](const ApplyResult&) {
    shelves->models.Erase(name);
    return true;
  });
}

}  // namespace chainfleet

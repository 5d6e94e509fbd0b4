#include "server/control/catalog.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/ids.h"
#include "core/base/limits.h"
#include "core/domain/no_such.h"
#include "server/control/page_token.h"
#include "server/control/tenant_limits.h"

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

// Leaves inputs as they are in the data set, without the x / 255 scale of images.
Normalisation AsStored(InputType type) {
  return type == InputType::kUint8 ? Normalisation{{0}, {1.0 / 255}} : Normalisation();
}

// Leaves the columns of indices and masks as they are in the data set. REQUIRES: its rows are vectors of these inputs.
Normalisation OfColumns(const std::vector<TensorSignature>& inputs, const Normalisation& measured, InputType type) {
  const Normalisation given = measured.Spelled(), as_stored = AsStored(type).Spelled();
  Normalisation columns;
  for (const TensorSignature& input : inputs) {
    for (int64_t i = 0; i < NumValues(input.shape); ++i) {
      const size_t from = given.mean.size() == 1 ? 0 : columns.mean.size();
      columns.mean.push_back(input.is_whole() ? as_stored.mean[0] : given.mean[from]);
      columns.stddev.push_back(input.is_whole() ? as_stored.stddev[0] : given.stddev[from]);
    }
  }
  return columns;
}

// The normalisation of a data set for what the network reads of it: indices and masks stay as they are.
Normalisation NormalisationFor(const JobPlan& plan, const Normalisation& measured) {
  const InputType type = plan.dataset->input_type;
  if (plan.spec.model.has_layers()) return TakesIndices(LayersOf(plan.spec.model)) ? AsStored(type) : measured;
  if (!plan.module || !plan.module->signature) return measured;
  const std::vector<TensorSignature>& inputs = plan.module->signature->inputs;
  if (std::ranges::none_of(inputs, &TensorSignature::is_whole)) return measured;
  if (inputs.size() == 1) return AsStored(type);
  const bool fits = WhyUnread(inputs, plan.dataset->input_shape).empty();  // else the job is refused later
  return fits ? OfColumns(inputs, measured, type) : measured;
}

// Returns the key of the item that the name means to the tenant.
std::string KeyOf(const std::string& tenant, const std::string& name) {
  const size_t slash = name.find('/');
  if (slash == std::string::npos) return ContentKey(tenant, name);
  return ContentKey(name.substr(0, slash), name.substr(slash + 1));
}

template <typename Item>
bool MayUse(const Reader& reader, const Item& item) {
  const auto among = [&](const std::string& tenant) { return tenant == reader.tenant || tenant == kEveryTenant; };
  return reader.all || item.tenant == reader.tenant || std::ranges::any_of(item.shared_with, among);
}

absl::Status CheckTenants(const change::ShareContent& how) {
  if (how.tenants.empty() && !how.stop) return InvalidFields({{"tenants", "name tenants, or \"*\", or set stop"}});
  for (const std::string& tenant : how.tenants) {
    if (tenant != kEveryTenant) CHAINFLEET_RETURN_IF_ERROR(CheckName("tenant", tenant, "tenants"));
  }
  return absl::OkStatus();
}

// A registration ends its upload, unless the disk or the queue of changes is full: then it is not applied. The returned
// reply ends the upload as soon as there is space, so that its objects become garbage.
template <typename Item>
Reply<Item> EndingUpload(StateWriter* writer, const std::string& upload, const Reply<Item>& done) {
  return [writer, upload, done](absl::StatusOr<Item> stored) {
    if (absl::IsResourceExhausted(stored.status())) writer->Persist(change::EndUpload{upload});
    done(std::move(stored));
  };
}

}  // namespace

template <typename Item>
absl::StatusOr<Item> Shelf<Item>::Get(const Reader& reader, const std::string& name) const {
  MutexLock lock(&mutex_);
  const auto found = items_.find(KeyOf(reader.tenant, name));
  if (found != items_.end() && MayUse(reader, found->second)) return found->second;
  return NoSuch(KindOf(static_cast<const Item*>(nullptr)).name, name);
}

template <typename Item>
absl::StatusOr<Item> Shelf<Item>::GetOwn(const Reader& reader, const std::string& name) const {
  CHAINFLEET_ASSIGN_OR_RETURN(Item item, Get(reader, name));
  if (reader.all || item.tenant == reader.tenant) return item;
  return WithReason(absl::PermissionDeniedError(absl::StrCat(KindOf(&item).name, " ", name,
                                                             " belongs to another tenant: that tenant or an operator "
                                                             "of the fleet can share and delete it")),
                    "NOT_OWNER");
}

template <typename Item>
Item Shelf<Item>::Shown(const Reader& reader, Item item) {
  if (item.tenant == reader.tenant) return item;
  item.name = absl::StrCat(item.tenant, "/", item.name);
  if (!reader.all) item.shared_with.clear();
  return item;
}

template <typename Item>
absl::StatusOr<Page<Item>> Shelf<Item>::List(const Reader& reader, int32_t page_size,
                                             const std::string& page_token) const {
  const std::string arguments = KindOf(static_cast<const Item*>(nullptr)).plural;
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string after, CursorOf(arguments, page_token));
  Page<Item> page;
  PageRoom room(static_cast<size_t>(ClampPageSize(page_size)));
  std::string last;
  MutexLock lock(&mutex_);
  for (auto i = items_.upper_bound(after); i != items_.end(); ++i) {
    if (!MayUse(reader, i->second)) continue;
    Item shown = Shown(reader, i->second);
    if (!room.Take(MessageBytes(shown))) {
      page.next_page_token = MakePageToken(arguments, last);
      break;
    }
    page.items.push_back(std::move(shown));
    last = i->first;
  }
  return page;
}

template <typename Item>
ContentHoldings Shelf<Item>::HoldingsOf(const std::string& tenant) const {
  MutexLock lock(&mutex_);
  const auto found = holdings_.find(tenant);
  return found == holdings_.end() ? ContentHoldings() : found->second;
}

template <typename Item>
void Shelf<Item>::Put(const Item& item) {
  MutexLock lock(&mutex_);
  EraseLocked(ContentKey(item));
  items_.emplace(ContentKey(item), item);
  ContentHoldings& has = holdings_[item.tenant];
  has.contents += ContentsOf(item);
  has.bytes += ObjectBytes(item);
}

template <typename Item>
void Shelf<Item>::Erase(const std::string& key) {
  MutexLock lock(&mutex_);
  EraseLocked(key);
}

template <typename Item>
void Shelf<Item>::EraseLocked(const std::string& key) {
  const auto found = items_.find(key);
  if (found == items_.end()) return;
  const auto has = holdings_.find(found->second.tenant);
  has->second.contents -= ContentsOf(found->second);
  has->second.bytes -= ObjectBytes(found->second);
  if (has->second.contents == 0) holdings_.erase(has);
  items_.erase(found);
}

template class Shelf<Dataset>;
template class Shelf<StoredModel>;

Catalog::Catalog(StateWriter* writer, const StateStore& store, const StoredState& state, RngKey nonces)
    : writer_(writer), generation_(store.generation()), nonces_(nonces) {
  for (const Dataset& dataset : state.datasets) shelves_->datasets.Put(dataset);
  for (const StoredModel& model : state.models) shelves_->models.Put(model);
}

absl::Status Catalog::FindData(const std::string& tenant, JobPlan* plan) const {
  const Reader reader{tenant};
  if (const std::string& name = plan->spec.dataset; !name.empty()) {
    const absl::StatusOr<Dataset> dataset = datasets().Get(reader, name);
    if (!dataset.ok()) return Annotate(dataset.status(), "dataset.name");
    plan->dataset = *dataset;
    plan->dataset->shared_with.clear();  // may change while the job runs
    if (plan->spec.standardize.inputs) plan->normalisation = dataset->normalisation;
    if (plan->spec.standardize.targets) plan->target_units = dataset->target_units;
  }
  if (const auto* stored = std::get_if<StoredNetworkModel>(&plan->spec.model.kind)) {
    const absl::StatusOr<StoredModel> module = models().Get(reader, stored->name);
    if (!module.ok()) return Annotate(module.status(), PathOf(*stored));
    if (WordOf(*module) != EnumName(stored->format)) return OtherKind(*module, PathOf(*stored));
    plan->module = *module;
    plan->module->shared_with.clear();
  }
  if (plan->dataset) plan->normalisation = NormalisationFor(*plan, plan->normalisation);
  plan->weights.clear();
  for (const std::string& name : plan->spec.init.weights) {
    const absl::StatusOr<StoredModel> file = models().Get(reader, name);
    if (!file.ok()) return Annotate(file.status(), "init.weights");
    if (!file->is_weights()) return OtherKind(*file, "init.weights");
    plan->weights.push_back(*file);
    plan->weights.back().shared_with.clear();
  }
  return absl::OkStatus();
}

std::string Catalog::NameOfContent(const std::string& tenant, const DigestHex& sha256) const {
  MutexLock lock(&shelves_->models.mutex_);
  for (const auto& [key, model] : shelves_->models.items_) {
    if (model.tenant == tenant && model.object.sha256 == sha256) return model.name;
  }
  return "weights-" + sha256.substr(0, 16);
}

ContentHoldings Catalog::HoldingsOf(const std::string& tenant) const {
  const ContentHoldings of_datasets = datasets().HoldingsOf(tenant), of_models = models().HoldingsOf(tenant);
  return {of_datasets.contents + of_models.contents, of_datasets.bytes + of_models.bytes};
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

void Catalog::Put(const Dataset& dataset, const std::string& upload, const Reply<Dataset>& done,
                  const std::shared_ptr<TenantReservation>& room) {
  const auto take = [shelves = shelves_, room](const ApplyResult& result) {
    shelves->datasets.Put(*result.dataset);
    if (room != nullptr) room->Release();
    return *result.dataset;
  };
  writer_->Write<Dataset>(change::PutDataset{dataset, upload}, EndingUpload(writer_, upload, done), take);
}

void Catalog::Put(const StoredModel& model, const std::string& upload, const Reply<StoredModel>& done,
                  const std::shared_ptr<TenantReservation>& room) {
  const auto take = [shelves = shelves_, room](const ApplyResult& result) {
    shelves->models.Put(*result.model);
    if (room != nullptr) room->Release();
    return *result.model;
  };
  writer_->Write<StoredModel>(change::PutModel{model, upload}, EndingUpload(writer_, upload, done), take);
}

void Catalog::DeleteDataset(const Reader& reader, const std::string& name, const Reply<bool>& done) {
  const absl::StatusOr<Dataset> dataset = datasets().GetOwn(reader, name);
  if (!dataset.ok()) return done(dataset.status());
  const std::string key = ContentKey(*dataset);
  writer_->Write<bool>(change::DeleteDataset{key}, done, [shelves = shelves_, key](const ApplyResult&) {
    shelves->datasets.Erase(key);
    return true;
  });
}

void Catalog::DeleteModel(const Reader& reader, const std::string& name, const Reply<bool>& done) {
  const absl::StatusOr<StoredModel> model = models().GetOwn(reader, name);
  if (!model.ok()) return done(model.status());
  const std::string key = ContentKey(*model);
  writer_->Write<bool>(change::DeleteModel{key}, done, [shelves = shelves_, key](const ApplyResult&) {
    shelves->models.Erase(key);
    return true;
  });
}

void Catalog::ShareDataset(const Reader& reader, const std::string& name, change::ShareContent how,
                           const Reply<Dataset>& done) {
  const absl::StatusOr<Dataset> dataset = datasets().GetOwn(reader, name);
  if (!dataset.ok()) return done(dataset.status());
  if (absl::Status named = CheckTenants(how); !named.ok()) return done(named);
  how.key = ContentKey(*dataset);
  writer_->Write<Dataset>(std::move(how), done, [shelves = shelves_, reader](const ApplyResult& result) {
    shelves->datasets.Put(*result.dataset);
    return Shelf<Dataset>::Shown(reader, *result.dataset);
  });
}

void Catalog::ShareModel(const Reader& reader, const std::string& name, change::ShareContent how,
                         const Reply<StoredModel>& done) {
  const absl::StatusOr<StoredModel> model = models().GetOwn(reader, name);
  if (!model.ok()) return done(model.status());
  if (absl::Status named = CheckTenants(how); !named.ok()) return done(named);
  how.key = ContentKey(*model);
  how.is_model = true;
  writer_->Write<StoredModel>(std::move(how), done, [shelves = shelves_, reader](const ApplyResult& result) {
    shelves->models.Put(*result.model);
    return Shelf<StoredModel>::Shown(reader, *result.model);
  });
}

}  // namespace chainfleet

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/content_limits.h"
#include "core/base/limits.h"
#include "core/domain/wire_bytes.h"
#include "server/control/dispatcher_impl.h"
#include "server/control/page_token.h"

namespace chainfleet {
namespace {

int64_t SizeOf(const Dataset& dataset) { return WireBytes(dataset); }
int64_t SizeOf(const StoredModel&) { return limits::kKiB; }

// A page of `all`, in the order of their names; the token belongs to lists of `kind`.
template <typename Stored>
absl::StatusOr<Page<Stored>> PageOf(const std::map<std::string, Stored>& all, const std::string& kind,
                                    int32_t page_size, const std::string& page_token) {
  const auto limit = static_cast<size_t>(ClampPageSize(page_size));
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string after, CursorOf(kind, page_token));
  Page<Stored> page;
  int64_t bytes = 0;
  for (auto i = all.upper_bound(after); i != all.end(); ++i) {
    bytes += SizeOf(i->second);
    if (page.items.size() == limit || (!page.items.empty() && bytes > limits::kPageBytes)) {
      page.next_page_token = MakePageToken(kind, page.items.back().name);
      break;
    }
    page.items.push_back(i->second);
  }
  return page;
}

}  // namespace

void Dispatcher::Impl::Persist(const StateChange& change) {
  Change(change, [change](Impl& impl, const ApplyResult& result) {
    if (!absl::IsResourceExhausted(result.status)) return;
    impl.executor->ScheduleAfter(limits::kRetryMax, [weak = impl.weak_from_this(), change] {
      const auto alive = weak.lock();
      if (alive == nullptr) return;
      Entered entered(alive.get());
      alive->Persist(change);
    });
  });
}

void Dispatcher::MarkCorrupt(const std::string& job, const std::string& object, Reply<bool> done) {
  Impl::Entered entered(impl_.get());
  impl_->Change(change::MarkCorrupt{job, object, true}, [done](Impl& i, const ApplyResult& result) {
    i.Say<bool>(done, result.status.ok() ? absl::StatusOr<bool>(true) : result.status);
  });
}

void Dispatcher::QueueSweep(const ChainId& chain) {
  Impl::Entered entered(impl_.get());
  impl_->Persist(change::QueueSweep{chain});
}

uint64_t Dispatcher::ObjectNonce() {
  Impl::Entered entered(impl_.get());
  return Fold(impl_->options.id_key, ++impl_->ids_made).value;
}

void Dispatcher::BeginUpload(std::vector<std::string> objects, Reply<std::string> done) {
  Impl::Entered entered(impl_.get());
  impl_->BeginUpload(std::move(objects), false, done);
}

void Dispatcher::BeginRepair(std::vector<std::string> objects, Reply<std::string> done) {
  Impl::Entered entered(impl_.get());
  impl_->BeginUpload(std::move(objects), true, done);
}

void Dispatcher::Impl::BeginUpload(std::vector<std::string> objects, bool repairs, Reply<std::string> done) {
  const std::string upload = absl::StrCat(store->generation(), "-", ++uploads_begun);
  Change(change::BeginUpload{upload, std::move(objects), repairs}, [upload, done](Impl& i, const ApplyResult& result) {
    i.Say<std::string>(done, result.status.ok() ? absl::StatusOr<std::string>(upload) : result.status);
  });
}

void Dispatcher::EndUpload(const std::string& upload) {
  Impl::Entered entered(impl_.get());
  impl_->Persist(change::EndUpload{upload});
}

absl::Status Dispatcher::CheckTenantRoom(const std::string& tenant, int64_t bytes) {
  Impl::Entered entered(impl_.get());
  return CheckTenantLimits(impl_->options.tenant_limits, impl_->holdings(), {.tenant = tenant, .bytes = bytes});
}

void Dispatcher::PutDataset(const Dataset& dataset, const std::string& upload, Reply<Dataset> done) {
  Impl::Entered entered(impl_.get());
  impl_->Change(change::PutDataset{dataset, upload}, [done](Impl& i, const ApplyResult& result) {
    if (!result.status.ok()) return i.Say<Dataset>(done, result.status);
    i.datasets[result.dataset->name] = *result.dataset;
    i.Say<Dataset>(done, *result.dataset);
  });
}

absl::StatusOr<Dataset> Dispatcher::GetDataset(const std::string& name) {
  Impl::Entered entered(impl_.get());
  const auto found = impl_->datasets.find(name);
  if (found != impl_->datasets.end()) return found->second;
  return WithReason(absl::NotFoundError(absl::StrCat("no dataset ", name, ": put it with `chainfleet dataset put`")),
                    "DATASET_NOT_FOUND");
}

absl::StatusOr<Page<Dataset>> Dispatcher::ListDatasets(int32_t page_size, const std::string& page_token) {
  Impl::Entered entered(impl_.get());
  return PageOf(impl_->datasets, "datasets", page_size, page_token);
}

void Dispatcher::DeleteDataset(const std::string& name, Reply<bool> done, const std::optional<std::string>& tenant) {
  Impl::Entered entered(impl_.get());
  impl_->Change(change::DeleteDataset{name, tenant}, [name, done](Impl& i, const ApplyResult& result) {
    if (!result.status.ok()) return i.Say<bool>(done, result.status);
    i.datasets.erase(name);
    i.Say<bool>(done, true);
  });
}

void Dispatcher::PutModel(const StoredModel& model, const std::string& upload, Reply<StoredModel> done) {
  Impl::Entered entered(impl_.get());
  impl_->Change(change::PutModel{model, upload}, [done](Impl& i, const ApplyResult& result) {
    if (!result.status.ok()) return i.Say<StoredModel>(done, result.status);
    i.models[result.model->name] = *result.model;
    i.Say<StoredModel>(done, *result.model);
  });
}

absl::StatusOr<StoredModel> Dispatcher::GetModel(const std::string& name) {
  Impl::Entered entered(impl_.get());
  const auto found = impl_->models.find(name);
  if (found != impl_->models.end()) return found->second;
  return absl::NotFoundError(absl::StrCat("no model ", name, ": put it with `chainfleet model put`"));
}

absl::StatusOr<Page<StoredModel>> Dispatcher::ListModels(int32_t page_size, const std::string& page_token) {
  Impl::Entered entered(impl_.get());
  return PageOf(impl_->models, "models", page_size, page_token);
}

void Dispatcher::DeleteModel(const std::string& name, Reply<bool> done, const std::optional<std::string>& tenant) {
  Impl::Entered entered(impl_.get());
  impl_->Change(change::DeleteModel{name, tenant}, [name, done](Impl& i, const ApplyResult& result) {
    if (!result.status.ok()) return i.Say<bool>(done, result.status);
    i.models.erase(name);
    i.Say<bool>(done, true);
  });
}

void Dispatcher::CreateEvaluation(const EvaluationRow& row, Reply<StoredEvaluation> done) {
  Impl::Entered entered(impl_.get());
  impl_->ChangeEvaluation(change::CreateEvaluation{row}, std::move(done));
}

void Dispatcher::EndEvaluation(const change::EndEvaluation& end, Reply<StoredEvaluation> done) {
  Impl::Entered entered(impl_.get());
  impl_->ChangeEvaluation(end, std::move(done));
}

void Dispatcher::Impl::ChangeEvaluation(StateChange change, Reply<StoredEvaluation> done) {
  Change(std::move(change), [done = std::move(done)](Impl& impl, const ApplyResult& result) {
    if (!result.status.ok()) return impl.Say<StoredEvaluation>(done, result.status);
    impl.Say<StoredEvaluation>(done, StoredEvaluation{*result.evaluation, result.replayed});
  });
}

}  // namespace chainfleet

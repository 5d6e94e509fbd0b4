#include "server/control/sessions.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/store/draw_codec/object_names.h"
#include "server/control/dispatcher_impl.h"

namespace chainfleet {

absl::Status Sessions::CheckLease(const ChainId& id, int64_t lease_epoch,
                                  const std::optional<WorkerIdentity>& session) const {
  Dispatcher::Entered core(impl_.get());
  const ChainEntry* chain = core->jobs.Find(id);
  if (chain != nullptr && chain->row.lease_epoch == lease_epoch && !IsFinal(chain->row.state) &&
      (!session || HeldBy(chain->row, lease_epoch, session->worker, session->incarnation))) {
    return absl::OkStatus();
  }
  return WithReason(absl::FailedPreconditionError(absl::StrCat("chain ", chainfleet::ToString(id), ": lease epoch ",
                                                               lease_epoch, " is not current, drop the chain")),
                    "LEASE_FENCED");
}

bool Sessions::IsPresent(const WorkerIdentity& session) const {
  Dispatcher::Entered core(impl_.get());
  const WorkerEntry* worker = core->fleet.Find(session.worker);
  return worker != nullptr && worker->incarnation == session.incarnation &&
         core->now - worker->last_sync < core->options.lease_ttl;
}

bool Sessions::NeedsObject(const WorkerIdentity& session, const std::string& object) const {
  Dispatcher::Entered core(impl_.get());
  const auto name = ParseChainObjectName(object);
  std::set<const JobPlan*> plans;
  for (const Lease* lease : core->leases.OfWorker(session.worker)) {
    const ChainEntry* chain = core->jobs.Find(lease->chain);
    if (chain == nullptr || lease->incarnation != session.incarnation) continue;
    if (name && name->chain == lease->chain) return true;
    plans.insert(core->jobs.Find(lease->chain.job)->row.plan.get());
  }
  return std::ranges::any_of(plans, [&](const JobPlan* plan) {
    const auto is_it = [&](const BlobRef& ref) { return ref.name == object; };
    return std::ranges::any_of(FilesOf(*plan), is_it, &StoredModel::object) ||
           (plan->dataset && std::ranges::any_of(plan->dataset->shards, is_it, &DatasetShard::object));
  });
}

}  // namespace chainfleet

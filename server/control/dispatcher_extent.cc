// Changes the extent of a job's draws: stop rules, and added chains.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/domain/no_such.h"
#include "server/control/dispatcher_impl.h"
#include "server/control/stop_rule_check.h"

namespace chainfleet {

void Dispatcher::TakeDiagnoses(const std::string& id, const std::vector<PointDiagnosis>& points) {
  Entered core(impl_.get());
  if (JobEntry* job = core->jobs.Find(id)) core->StopWhatHasEnough(job, points);
}

void Dispatcher::Core::StopWhatHasEnough(JobEntry* job, const std::vector<PointDiagnosis>& traces) {
  const JobSpec& spec = job->row.plan->spec;
  if (!spec.until.max_draws && (traces.empty() || !spec.until.any())) return;
  if (job->row.finished_at || job->row.intent > JobIntent::kPause) return;
  std::vector<PointEvidence> points(static_cast<size_t>(NumPoints(spec.sweep)));
  for (const ChainEntry& chain : job->chains) {
    const auto p = static_cast<size_t>(PointOf(spec, chain.row.id.index));
    points[p].num_draws += chain.row.num_draws;
    if (IsFinal(chain.row.state)) continue;
    points[p].chains.push_back(chain.row.id.index);
  }
  for (const PointDiagnosis& found : traces) {
    const auto p = static_cast<size_t>(found.point);
    if (p < points.size()) points[p].traces = &found;
  }
  for (size_t p = 0; p < points.size(); ++p) {
    const auto point = static_cast<int32_t>(p);
    if (points[p].chains.empty() || job->row.stopped.contains(point) || job->stopping.contains(point)) continue;
    if (const auto why = WhyEnough(spec.until, points[p])) StopPoint(job, point, *why);
  }
}

void Dispatcher::Core::StopPoint(JobEntry* job, int32_t point, const std::string& why) {
  job->stopping.insert(point);
  Change(change::StopPoint{job->row.id, point, why},
         [id = job->row.id, point, why](Core& core, const ApplyResult& result) {
           JobEntry* entry = core.jobs.Find(id);
           if (entry == nullptr) return;
           entry->stopping.erase(point);  // if refused (disk full, most likely), the next commit tries again
           if (!result.status.ok()) return;
           core.NoteJob(LogLevel::kInfo, "stop rule met", id, {{"point", point}, {"why", why}});
         });
}

void Dispatcher::ScaleJob(const std::string& id, int32_t chains, Reply<JobView> done) {
  Entered core(impl_.get());
  const JobEntry* scaled = core->jobs.Find(id);
  if (scaled == nullptr) return core->Say<JobView>(done, NoSuch("job", id));
  const int64_t more = std::max<int64_t>(0, chains - static_cast<int64_t>(scaled->chains.size()));
  const auto room = core->quotas.Reserve(core->jobs, *core->catalog,
                                         {scaled->row.tenant, "", 0, more, 0, absl::StrCat(id, " ", chains)});
  if (!room.ok()) return core->Say<JobView>(done, room.status());
  core->Change(change::ScaleJob{id, chains}, [id, done, room = *room](Core& self, const ApplyResult& result) {
    room->Release();
    if (!result.status.ok()) return self.Say<JobView>(done, result.status);
    const JobEntry* job = self.jobs.Find(id);
    if (job == nullptr) return self.Say<JobView>(done, NoSuch("job", id));
    if (!result.chains.empty()) self.NoteJob(LogLevel::kInfo, "chains added", id, {{"chains", job->chains.size()}});
    self.Say<JobView>(done, self.ViewOf(*job));
  });
}

}  // namespace chainfleet

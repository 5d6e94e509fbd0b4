#include "server/rpc/job_watch.h"

#include <utility>

#include "server/rpc/job_render.h"

namespace chainfleet {
namespace {

struct Watch {
  std::shared_ptr<StreamFeed<v1::Job>> feed;
  Dispatcher* dispatcher;
  Executor* executor;
  absl::Duration min_interval;
};

void Next(const std::shared_ptr<Watch>& watch, const std::string& job, uint64_t seen) {
  watch->dispatcher->WatchJob(job, seen, [watch](absl::StatusOr<Dispatcher::Watched> changed) {
    if (!changed.ok()) return watch->feed->End(changed.status());
    const bool wanted = watch->feed->Send(RenderJob(changed->job, /*with_chains=*/true), /*replace=*/true);
    if (!wanted || IsFinal(changed->job.state)) return watch->feed->End(absl::OkStatus());
    watch->executor->ScheduleAfter(
        watch->min_interval, [watch, id = changed->job.id, version = changed->version] { Next(watch, id, version); });
  });
}

}  // namespace

void WatchJobInto(const std::shared_ptr<StreamFeed<v1::Job>>& feed, Dispatcher* dispatcher, Executor* executor,
                  const std::string& name, absl::Duration min_interval) {
  // A version of 0 is always passed: the first message comes at once.
  Next(std::make_shared<Watch>(Watch{feed, dispatcher, executor, min_interval}), name, 0);
}

}  // namespace chainfleet

#include "server/rpc/job_watch.h"

#include <utility>

namespace chainfleet {
namespace {

// Owned by the dispatcher or by the timer, whichever it waits for.
class Watch : public std::enable_shared_from_this<Watch> {
 public:
  Watch(std::shared_ptr<StreamFeed<v1::Job>> feed, Dispatcher* dispatcher, FinalFindings* findings, Executor* executor,
        absl::Duration min_interval)
      : dispatcher_(dispatcher),
        findings_(findings),
        executor_(executor),
        min_interval_(min_interval),
        feed_(std::move(feed)) {}

  void Next(const std::string& job, uint64_t seen) {
    MutexLock lock(&mutex_);
    if (feed_ == nullptr) return;
    ticket_ = dispatcher_->WatchJob(
        job, seen,
        [watch = shared_from_this()](const absl::StatusOr<Dispatcher::Watched>& changed) { watch->Tell(changed); });
  }
  void Cancel() {
    std::shared_ptr<StreamFeed<v1::Job>> dropped;  // freed after the lock is released
    MutexLock lock(&mutex_);
    dropped = std::exchange(feed_, nullptr);
    dispatcher_->Unwatch(ticket_);
  }

 private:
  void Tell(const absl::StatusOr<Dispatcher::Watched>& changed) {
    const std::shared_ptr<StreamFeed<v1::Job>> feed = Feed();
    if (feed == nullptr) return;
    if (!changed.ok()) return feed->End(changed.status());
    if (IsFinal(changed->job->state)) return Conclude(changed->job);
    absl::StatusOr<v1::Job> rendered = findings_->Render(*changed->job);
    if (!rendered.ok()) return feed->End(rendered.status());
    if (!feed->Send(*std::move(rendered), /*replace=*/true)) return feed->End(absl::OkStatus());
    executor_->ScheduleAfter(min_interval_, [watch = shared_from_this(), id = changed->job->id,
                                             version = changed->version] { watch->Next(id, version); });
  }

  // The last message has the traces of all commits, as a restarted server would show them.
  void Conclude(const std::shared_ptr<const JobView>& job) {
    findings_->WhenKept(job->id, [watch = shared_from_this(), job] {
      const std::shared_ptr<StreamFeed<v1::Job>> feed = watch->Feed();
      if (feed == nullptr) return;
      absl::StatusOr<v1::Job> rendered = watch->findings_->Render(*job);
      const absl::Status status = rendered.status();
      if (rendered.ok()) feed->Send(*std::move(rendered), /*replace=*/true);
      feed->End(status);
    });
  }

  std::shared_ptr<StreamFeed<v1::Job>> Feed() {
    MutexLock lock(&mutex_);
    return feed_;
  }

  Dispatcher* const dispatcher_;
  FinalFindings* const findings_;
  Executor* const executor_;
  const absl::Duration min_interval_;
  Mutex mutex_;
  Dispatcher::WatchTicket ticket_ CHAINFLEET_GUARDED_BY(mutex_);
  // Null once cancelled: the timer keeps this Watch until its interval has passed, but no call and no message.
  std::shared_ptr<StreamFeed<v1::Job>> feed_ CHAINFLEET_GUARDED_BY(mutex_);
};

}  // namespace

void WatchJobInto(const std::shared_ptr<StreamFeed<v1::Job>>& feed, Dispatcher* dispatcher, FinalFindings* findings,
                  Executor* executor, const std::string& name, absl::Duration min_interval) {
  const auto watch = std::make_shared<Watch>(feed, dispatcher, findings, executor, min_interval);
  feed->OnCancelled([weak = std::weak_ptr(watch)] {
    if (const auto watching = weak.lock()) watching->Cancel();
  });
  // Every job's version is above 0, so the first message is sent at once.
  watch->Next(name, 0);
}

}  // namespace chainfleet

#include "tests/load/load_worker.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/rng_key.h"
#include "worker/runtime/session/progress_upload.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kSyncDeadline = absl::Seconds(30), kRetry = absl::Milliseconds(200);
constexpr int64_t kStepsPerCommit = 100;
constexpr int kResumeBytes = 512, kParameters = 10;

bool MayRepeat(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsResourceExhausted(status);
}

ProgressUpload NextUpload(int64_t step, int64_t draws) {
  ProgressUpload upload;
  upload.commit.resume_point.step = step + std::max(kStepsPerCommit, draws);
  upload.commit.resume_point.inline_bytes = std::string(kResumeBytes, static_cast<char>('a' + step % 26));
  for (int64_t i = 1; i <= draws; ++i) {
    upload.draws.push_back({step + i, 1, {std::vector<float>(kParameters, static_cast<float>(step + i))}});
  }
  return upload;
}

}  // namespace

LoadWorker::LoadWorker(LoadWorkerOptions options, CoordinatorPort* port, const Clock* clock, Executor* executor,
                       LoadStats* stats)
    : options_(std::move(options)), port_(port), clock_(clock), executor_(executor), stats_(stats) {}

void LoadWorker::Start() {
  executor_->Schedule([this] { Synchronize(); });
}

void LoadWorker::Stop() {
  MutexLock lock(&mutex_);
  stopped_ = true;
}

void LoadWorker::Synchronize() {
  SynchronizeRequest request;
  {
    MutexLock lock(&mutex_);
    if (stopped_) return;
    request.worker = options_.id;
    request.incarnation = options_.id + "-1";
    request.seq = ++seq_;
    request.host = "host-of-" + options_.id;
    request.store_incarnation = store_incarnation_;
    request.devices = {{"cpu", 0, options_.chain_slots}};
    for (const auto& [id, chain] : chains_) request.chains.push_back({id, chain.epoch, chain.step, {}});
  }
  port_->Synchronize(request, kSyncDeadline, [this](const absl::StatusOr<SynchronizeReply>& reply) { OnReply(reply); });
}

void LoadWorker::OnReply(const absl::StatusOr<SynchronizeReply>& reply) {
  absl::Duration pause = kRetry;
  if (reply.ok()) {
    MutexLock lock(&mutex_);
    store_incarnation_ = reply->store_incarnation;
    for (const Grant& grant : reply->grants) Take(grant, clock_->Monotonic());
    for (const StopOrder& order : reply->stop) Obey(order);
    // List new chains at once, to confirm them.
    pause = reply->grants.empty() ? reply->next_sync_in : absl::ZeroDuration();
  } else {
    stats_->Failed(absl::StrCat("Synchronize ", ReasonOf(reply.status()), " ", reply.status().code()));
  }
  executor_->ScheduleAfter(pause, [this] { Synchronize(); });
}

void LoadWorker::Take(const Grant& grant, absl::Duration now) {
  const auto held = chains_.find(grant.chain);
  if (held != chains_.end() && held->second.epoch == grant.lease_epoch) return;  // a repeated grant
  if (seen_.insert(grant.chain).second) stats_->Granted(grant.chain.job, now);
  const double phase = static_cast<double>(Fold(Fold(RngKey{options_.seed}, static_cast<uint64_t>(grant.chain.index)),
                                                std::hash<std::string>()(grant.chain.job))
                                               .value >>
                                           11) *
                       0x1p-53;
  const absl::Duration delay = options_.commit_period * phase;
  chains_[grant.chain] = {grant.lease_epoch, grant.progress.step, grant.progress.num_draws, grant.progress.last_digest,
                          now + delay};
  ScheduleCommit(grant.chain, delay);
}

void LoadWorker::Obey(const StopOrder& order) {
  const auto held = chains_.find(order.chain);
  if (held == chains_.end() || held->second.epoch != order.lease_epoch) return;
  if (order.how == StopOrder::How::kHandBack) {
    held->second.hand_back = true;  // with its next commit
  } else {
    chains_.erase(held);
  }
}

void LoadWorker::ScheduleCommit(const ChainId& chain, absl::Duration delay) {
  executor_->ScheduleAfter(std::max(delay, absl::ZeroDuration()), [this, chain] { Commit(chain); });
}

void LoadWorker::Commit(const ChainId& id) {
  SegmentPlace place;
  ProgressUpload upload;
  {
    MutexLock lock(&mutex_);
    const auto held = chains_.find(id);
    if (stopped_ || held == chains_.end()) return;
    const Chain& chain = held->second;
    place = {store_incarnation_, {id, chain.epoch}, {DrawKind::kTheta}, {{"theta", {kParameters}, 0}},
             chain.num_draws,    chain.last_digest};
    upload = NextUpload(chain.step, options_.draws);
    if (chain.hand_back) upload.commit.ends_as = ChainState::kPending;
  }
  const absl::Duration began = clock_->Monotonic();
  ProgressUpload encoded = EncodeUpload(place, std::move(upload));
  encoded.commit.author.worker = options_.id;
  encoded.commit.incarnation = options_.id + "-1";
  if (encoded.segment_bytes == nullptr) return Send(encoded.commit, began);
  port_->PutBlob(id, place.lease.epoch, encoded.commit.segment->object, encoded.segment_bytes,
                 [this, commit = encoded.commit, began](const absl::StatusOr<bool>& put) {
                   if (put.ok()) return Send(commit, began);
                   OnCommitted(commit, began, put.status());
                 });
}

void LoadWorker::Send(const ProgressCommit& commit, absl::Duration began) {
  port_->CommitProgress(commit, [this, commit, began](const absl::StatusOr<CommitReply>& reply) {
    OnCommitted(commit, began, reply.status());
  });
}

void LoadWorker::OnCommitted(const ProgressCommit& commit, absl::Duration began, const absl::Status& status) {
  const absl::Duration now = clock_->Monotonic();
  if (status.ok()) {
    stats_->Committed(now - began, commit.segment ? commit.segment->num_draws() : 0);
  } else {
    stats_->Failed(absl::StrCat("CommitProgress ", ReasonOf(status), " ", status.code()));
  }
  MutexLock lock(&mutex_);
  const auto held = chains_.find(commit.chain);
  if (held == chains_.end() || held->second.epoch != commit.lease_epoch) return;
  if (status.ok() ? commit.ends_as.has_value() : !MayRepeat(status)) {
    chains_.erase(held);
    return;
  }
  Chain& chain = held->second;
  if (!status.ok()) return ScheduleCommit(commit.chain, kRetry);
  chain.step = commit.resume_point.step;
  if (commit.segment) {
    chain.num_draws += commit.segment->num_draws();
    chain.last_digest = commit.segment->digest;
  }
  chain.due += options_.commit_period;  // an open loop: a slow server gets the same load
  ScheduleCommit(commit.chain, chain.due - now);
}

}  // namespace chainfleet

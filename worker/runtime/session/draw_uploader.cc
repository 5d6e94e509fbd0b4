#include "worker/runtime/session/draw_uploader.h"

#include <utility>

#include "core/base/log.h"

namespace chainfleet {

struct DrawUploader::Flight {
  Flight(LeaseRef lease_in, uint64_t lane_in, SegmentPlace place_in, int64_t queued_bytes_in, RngKey jitter)
      : lease(std::move(lease_in)),
        lane(lane_in),
        place(std::move(place_in)),
        queued_bytes(queued_bytes_in),
        backoff(jitter) {}

  enum class Stage { kSegment, kResumePoint, kCommit };

  const LeaseRef lease;
  const uint64_t lane;  // its number
  const SegmentPlace place;
  const int64_t queued_bytes;
  ProgressUpload encoded;
  Stage stage = Stage::kSegment;
  int object_failures = 0;
  bool commit_may_have_landed = false;
  Backoff backoff;
};

namespace {

bool EndsLease(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  return reason == "LEASE_FENCED" || reason == "CHAIN_FINAL" || reason == "PATH_CONFLICT";
}

// INTERNAL and UNKNOWN say nothing about the chain: a disk or the server is at fault.
bool IsOutage(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsResourceExhausted(status) ||
         absl::IsInternal(status) || absl::IsUnknown(status);
}

// The store has other bytes, or has lost bytes that it confirmed.
bool IsStoreFault(const absl::Status& status) {
  return ReasonOf(status) == "BLOB_MISSING" || absl::IsDataLoss(status) || absl::IsAlreadyExists(status);
}

uint64_t JitterLabel(const LeaseRef& lease) {
  return std::hash<std::string>()(lease.chain.job) ^ (static_cast<uint64_t>(lease.chain.index) << 40) ^
         static_cast<uint64_t>(lease.epoch);
}

}  // namespace

DrawUploader::DrawUploader(Options options, CoordinatorPort* port, HeldChains* held, Executor* executor,
                           RuntimeObserver* observer)
    : options_(std::move(options)), port_(port), held_(held), executor_(executor), observer_(observer) {}

void DrawUploader::Open(const LeasedChain& chain, std::vector<ParameterShape> parameters) {
  Lane lane;
  lane.place.store_incarnation = chain.store_incarnation;
  lane.place.lease = chain.lease();
  lane.place.kinds = KindsOf(chain.grant.plan->spec);
  lane.place.parameters = std::move(parameters);
  lane.place.first_index = chain.grant.progress.num_draws;
  lane.place.parent_digest = chain.grant.progress.last_digest;
  MutexLock lock(&mutex_);
  lane.number = ++num_lanes_;
  lanes_.emplace(chain.lease(), std::move(lane));
}

bool DrawUploader::Offer(const LeaseRef& lease, ProgressUpload* upload) {
  {
    const int64_t bytes = upload->size_bytes();
    MutexLock lock(&mutex_);
    const auto it = lanes_.find(lease);
    if (it == lanes_.end()) return true;
    if (queued_bytes_ > 0 && queued_bytes_ + bytes > options_.capacity_bytes) return false;
    queued_bytes_ += bytes;
    it->second.bytes += bytes;
    it->second.queue.push_back(std::move(*upload));
  }
  StartNext(lease);
  return true;
}

void DrawUploader::ReleaseAfter(const LeaseRef& lease, ReleasedChain::Why why, const std::string& reason) {
  {
    MutexLock lock(&mutex_);
    const auto it = lanes_.find(lease);
    if (it != lanes_.end() && (it->second.busy || !it->second.queue.empty())) {
      it->second.release = ReleasedChain{lease.chain, lease.epoch, why, reason};
      return;
    }
    lanes_.erase(lease);
  }
  held_->Release(lease, why, reason);
}

void DrawUploader::Drop(const LeaseRef& lease) {
  {
    MutexLock lock(&mutex_);
    const auto it = lanes_.find(lease);
    if (it == lanes_.end()) return;
    queued_bytes_ -= it->second.bytes;
    lanes_.erase(it);
  }
  on_room_();
}

int64_t DrawUploader::queued_bytes() const {
  MutexLock lock(&mutex_);
  return queued_bytes_;
}

DrawUploader::Lane* DrawUploader::LaneOf(const Flight& flight) {
  const auto it = lanes_.find(flight.lease);
  return it == lanes_.end() || it->second.number != flight.lane ? nullptr : &it->second;
}

bool DrawUploader::IsOpen(const Flight& flight) {
  MutexLock lock(&mutex_);
  return LaneOf(flight) != nullptr;
}

void DrawUploader::StartNext(const LeaseRef& lease) {
  std::shared_ptr<Flight> flight;
  ProgressUpload upload;
  {
    MutexLock lock(&mutex_);
    const auto it = lanes_.find(lease);
    if (it == lanes_.end() || it->second.busy || it->second.queue.empty()) return;
    Lane& lane = it->second;
    lane.busy = true;
    upload = std::move(lane.queue.front());
    lane.queue.pop_front();
    flight = std::make_shared<Flight>(lease, lane.number, lane.place, upload.size_bytes(),
                                      Fold(options_.jitter_key, JitterLabel(lease)));
  }
  // std::function needs copyable tasks, so a shared pointer holds the draws.
  executor_->Schedule([this, flight, upload = std::make_shared<ProgressUpload>(std::move(upload))] {
    if (!IsOpen(*flight)) return;
    flight->encoded = EncodeUpload(flight->place, std::move(*upload));
    flight->encoded.commit.author = options_.author;
    flight->encoded.commit.incarnation = options_.incarnation;
    Send(flight);
  });
}

void DrawUploader::Send(const std::shared_ptr<Flight>& flight) {
  if (!IsOpen(*flight)) return;
  const ProgressUpload& encoded = flight->encoded;
  if (flight->stage == Flight::Stage::kSegment && encoded.segment_bytes == nullptr) {
    flight->stage = Flight::Stage::kResumePoint;
  }
  if (flight->stage == Flight::Stage::kResumePoint && encoded.resume_bytes == nullptr) {
    flight->stage = Flight::Stage::kCommit;
  }
  const auto on_put = [this, flight](const absl::StatusOr<bool>& result) { OnAnswer(flight, result.status()); };
  switch (flight->stage) {
    case Flight::Stage::kSegment:
      return port_->PutBlob(flight->lease.chain, flight->lease.epoch, encoded.commit.segment->object,
                            encoded.segment_bytes, on_put);
    case Flight::Stage::kResumePoint:
      return port_->PutBlob(flight->lease.chain, flight->lease.epoch, *encoded.commit.resume_point.object,
                            encoded.resume_bytes, on_put);
    case Flight::Stage::kCommit:
      return port_->CommitProgress(encoded.commit, [this, flight](const absl::StatusOr<CommitReply>& reply) {
        OnAnswer(flight, reply.status());
      });
  }
}

void DrawUploader::OnAnswer(const std::shared_ptr<Flight>& flight, const absl::Status& status) {
  if (!IsOpen(*flight)) return;
  if (!status.ok()) return OnFailure(flight, status);
  NoteSuccess();
  flight->backoff.Reset();
  switch (flight->stage) {
    case Flight::Stage::kSegment:
      flight->stage = Flight::Stage::kResumePoint;
      return Send(flight);
    case Flight::Stage::kResumePoint:
      flight->stage = Flight::Stage::kCommit;
      return Send(flight);
    case Flight::Stage::kCommit:
      return OnCommitted(flight);
  }
}

void DrawUploader::OnFailure(const std::shared_ptr<Flight>& flight, const absl::Status& status) {
  if (flight->commit_may_have_landed && ReasonOf(status) == "PATH_CONFLICT" && !flight->encoded.commit.segment) {
    // Only this worker commits under this epoch. The server cannot recognise a repeated resume point without a segment,
    // so the conflict is with the commit whose answer was lost.
    return OnCommitted(flight);
  }
  if (IsOutage(status)) {
    flight->commit_may_have_landed |= flight->stage == Flight::Stage::kCommit && !absl::IsResourceExhausted(status);
    NoteOutage(status);
    return SendAgain(flight);
  }
  const bool object_missing = ReasonOf(status) == "BLOB_MISSING";
  if ((object_missing || absl::IsDataLoss(status)) && ++flight->object_failures < limits::kUploadAttempts) {
    if (object_missing) flight->stage = Flight::Stage::kSegment;
    return SendAgain(flight);
  }
  const LeaseRef& lease = flight->lease;
  const bool ends_lease = EndsLease(status);
  Log(ends_lease ? LogLevel::kWarning : LogLevel::kError,
      ends_lease ? "commit rejected: lease is stale or chain is final" : "upload refused: chain handed back",
      {{"job", lease.chain.job},
       {"chain", lease.chain.index},
       {"lease_epoch", lease.epoch},
       {"worker", options_.author.worker},
       {"error", status.ToString()}});
  Drop(lease);
  if (ends_lease) {
    held_->Drop(lease);
  } else {
    held_->Release(lease, IsStoreFault(status) ? ReleasedChain::Why::kStore : ReleasedChain::Why::kFailed,
                   "upload: " + std::string(status.message()));
  }
}

void DrawUploader::SendAgain(const std::shared_ptr<Flight>& flight) {
  executor_->ScheduleAfter(flight->backoff.Next(), [this, flight] { Send(flight); });
}

void DrawUploader::NoteOutage(const absl::Status& status) {
  const bool full = ReasonOf(status) == "DISK_FULL";
  {
    MutexLock lock(&mutex_);
    if (std::exchange(full ? store_full_ : server_away_, true)) return;
  }
  Log(LogLevel::kWarning, full ? "store full: chains wait until there is room" : "uploads wait for the server",
      {{"worker", options_.author.worker}, {"error", status.ToString()}});
}

void DrawUploader::NoteSuccess() {
  {
    MutexLock lock(&mutex_);
    if (!server_away_ && !store_full_) return;
    server_away_ = store_full_ = false;
  }
  Log(LogLevel::kInfo, "uploads resumed", {{"worker", options_.author.worker}});
}

void DrawUploader::OnCommitted(const std::shared_ptr<Flight>& flight) {
  const LeaseRef& lease = flight->lease;
  const ProgressCommit& commit = flight->encoded.commit;
  const int64_t draws = commit.segment ? commit.segment->num_draws() : 0;
  const bool ended = commit.ends_as.has_value();
  std::optional<ReleasedChain> release;
  {
    MutexLock lock(&mutex_);
    Lane* const lane = LaneOf(*flight);
    if (lane == nullptr) return;
    queued_bytes_ -= flight->queued_bytes;
    lane->bytes -= flight->queued_bytes;
    lane->place.first_index += draws;
    if (commit.segment) lane->place.parent_digest = commit.segment->digest;
    lane->busy = false;
    if (!ended && lane->queue.empty()) release = lane->release;
    if (ended || release) lanes_.erase(lease);
  }
  observer_->OnCommit(draws, flight->encoded.size_bytes());
  if (ended) held_->End(lease);
  if (release) held_->Release(lease, release->why, release->reason);
  on_room_();
  StartNext(lease);
}

}  // namespace chainfleet

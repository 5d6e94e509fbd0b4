#include "server/control/retention_keeper.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "core/base/limits.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "server/control/upkeep.h"

namespace chainfleet {
namespace {

constexpr int kRounds = 16;  // per pass: the number of changes for one chain

// The oldest segment of a chain at the last read. It saves reads until the segment may expire.
struct Oldest {
  int64_t end = 0;  // index after its last draw
  absl::Time committed_at;
};

struct ChainPlace {
  int64_t next = 0;              // every segment before it is a tombstone, or held
  int64_t held = 0;              // number of held draws at the last read
  std::optional<Oldest> oldest;  // the first segment from `next` on, at the last read
};

// At time `at`, all tickets up to `last` existed.
struct Mark {
  absl::Duration at;
  int64_t last = 0;
};

bool Expires(const RetentionSpec& retention, int64_t num_draws, const Oldest& segment, absl::Time now) {
  return (retention.keep_last && segment.end <= num_draws - *retention.keep_last) ||
         (retention.ttl_seconds && segment.committed_at + absl::Seconds(*retention.ttl_seconds) <= now);
}

Oldest OldestOf(const SegmentRecord& record) {
  return {record.segment.first_index + record.segment.num_draws(), record.committed_at};
}

}  // namespace

std::vector<int64_t> ChooseExpired(const RetentionSpec& retention, int64_t num_draws,
                                   std::span<const SegmentRecord> records, absl::Time now) {
  std::vector<int64_t> expired;
  for (const SegmentRecord& record : records) {
    if (record.deleted || !Expires(retention, num_draws, OldestOf(record), now)) continue;
    expired.push_back(record.segment.first_index);
  }
  return expired;
}

struct RetentionKeeper::State {
  const Clock* const clock;
  Executor* const executor;
  StateStore* const store;
  Coordinator* const coordinator;
  const absl::Duration longest_call;
  const std::function<void()> released;
  Mutex running;
  std::map<ChainId, ChainPlace> places CHAINFLEET_GUARDED_BY(running);
  std::deque<Mark> marks CHAINFLEET_GUARDED_BY(running);  // by time and ticket

  absl::StatusOr<Pass> Run() {
    MutexLock lock(&running);
    Pass pass;
    std::vector<RetainedJob> jobs = coordinator->dispatcher().RetainedJobs();
    for (RetainedJob& job : jobs) job.held = coordinator->versions().DrawsHeld(job.id, job.num_draws.size());
    ForgetOthers(jobs);
    for (int round = 0; round < kRounds; ++round) {
      CHAINFLEET_ASSIGN_OR_RETURN(const int64_t expired, ExpireSome(jobs));
      pass.expired += expired;
      if (expired == 0) break;
    }
    CHAINFLEET_ASSIGN_OR_RETURN(pass.released, Release());
    if (pass.expired > 0) Log(LogLevel::kInfo, "draws expired by retention", {{"segments", pass.expired}});
    if (pass.released > 0 && released) released();
    return pass;
  }

  void ForgetOthers(const std::vector<RetainedJob>& jobs) CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(running) {
    std::map<ChainId, ChainPlace> known;
    for (const RetainedJob& job : jobs) {
      for (size_t i = 0; i < job.num_draws.size(); ++i) {
        auto found = places.extract(ChainId{job.id, static_cast<int32_t>(i)});
        if (found) known.insert(std::move(found));
      }
    }
    places.swap(known);
  }

  // Makes at most one change for each chain. Returns the number of segments that became tombstones.
  absl::StatusOr<int64_t> ExpireSome(const std::vector<RetainedJob>& jobs)
      CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(running) {
    std::vector<StateChange> changes;
    int64_t expired = 0;
    for (const RetainedJob& job : jobs) {
      for (size_t i = 0; i < job.num_draws.size(); ++i) {
        CHAINFLEET_ASSIGN_OR_RETURN(change::ExpireSegments change, Look(job, static_cast<int32_t>(i)));
        if (change.first_indices.empty()) continue;
        changes.push_back(std::move(change));
        if (changes.size() < static_cast<size_t>(limits::kStateWriterBatch)) continue;
        CHAINFLEET_ASSIGN_OR_RETURN(const int64_t some, Apply(std::exchange(changes, {})));
        expired += some;
      }
    }
    CHAINFLEET_ASSIGN_OR_RETURN(const int64_t rest, Apply(changes));
    return expired + rest;
  }

  // Returns the chain's next expired segments.
  absl::StatusOr<change::ExpireSegments> Look(const RetainedJob& job, int32_t index)
      CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(running) {
    const auto chain = static_cast<size_t>(index);
    change::ExpireSegments change{{job.id, index}, {}};
    ChainPlace& place = places[change.chain];
    if (place.held != job.held[chain]) {
      // Draws that an alias has released begin at or before the end of those still held.
      place.next = job.held[chain] < place.held ? job.held[chain] : std::max(place.next, job.held[chain]);
      place.held = job.held[chain];
      place.oldest.reset();
    }
    const absl::Time now = clock->Wall();
    const bool worth_it = place.oldest ? Expires(job.retention, job.num_draws[chain], *place.oldest, now)
                                       : place.next < job.num_draws[chain];
    if (!worth_it) return change;
    CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<SegmentRecord> records, ReadBatch(change.chain, place.next));
    place.next = records.empty() ? job.num_draws[chain] : records.front().segment.first_index;
    place.oldest = records.empty() ? std::nullopt : std::optional(OldestOf(records.front()));
    change.first_indices = ChooseExpired(job.retention, job.num_draws[chain], records, now);
    return change;
  }

  // Returns live segments of the chain from the draw `next` on, at most limits::kRetentionBatch.
  absl::StatusOr<std::vector<SegmentRecord>> ReadBatch(const ChainId& chain, int64_t next) {
    const StateStore::SegmentQuery query{.job = chain.job,
                                         .chain = chain.index,
                                         .after_chain = chain.index,
                                         .after_first_index = next - 1,
                                         .live_only = true};
    std::vector<SegmentRecord> batch;
    CHAINFLEET_RETURN_IF_ERROR(VisitSegments(store, query, [&](SegmentRecord record) {
      batch.push_back(std::move(record));
      return batch.size() < limits::kRetentionBatch;
    }));
    return batch;
  }

  absl::StatusOr<int64_t> Apply(const std::vector<StateChange>& changes) {
    if (changes.empty()) return 0;
    int64_t segments = 0;
    CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<ApplyResult> results, coordinator->writer().Commit(changes));
    for (const ApplyResult& result : results) {
      CHAINFLEET_RETURN_IF_ERROR(result.status);
      segments += static_cast<int64_t>(result.objects.size());
    }
    return segments;
  }

  // Each call that looked up its draws before they became tombstones has ended `longest_call` after the mark.
  absl::StatusOr<int64_t> Release() CHAINFLEET_EXCLUSIVE_LOCKS_REQUIRED(running) {
    CHAINFLEET_ASSIGN_OR_RETURN(const int64_t last, store->LastExpired());
    const absl::Duration now = clock->Monotonic();
    if (last > (marks.empty() ? 0 : marks.back().last)) marks.push_back({now, last});
    int64_t count = 0;
    while (!marks.empty() && marks.front().at + longest_call <= now) {
      CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<ExpiredObject> objects,
                                  store->ListExpired(marks.front().last, limits::kRetentionBatch));
      change::ReleaseExpired release;
      for (const ExpiredObject& object : objects) release.tickets.push_back(object.ticket);
      count += static_cast<int64_t>(objects.size());
      if (!objects.empty()) CHAINFLEET_RETURN_IF_ERROR(Apply({std::move(release)}).status());
      if (objects.size() < static_cast<size_t>(limits::kRetentionBatch)) marks.pop_front();
    }
    return count;
  }
};

RetentionKeeper::RetentionKeeper(const Clock* clock, Executor* executor, StateStore* store, Coordinator* coordinator,
                                 absl::Duration longest_call, std::function<void()> released)
    : state_(new State{clock, executor, store, coordinator, longest_call, std::move(released)}) {}

void RetentionKeeper::Start(absl::Duration interval) {
  RunEvery(state_->executor, interval, interval, "retention", std::weak_ptr<State>(state_),
           [](State* state) { return state->Run().status(); });
}

absl::StatusOr<RetentionKeeper::Pass> RetentionKeeper::Run() { return state_->Run(); }

}  // namespace chainfleet
